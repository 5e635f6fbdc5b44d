//! Wrong variants of the rules. The tests switch each of them on and must notice it; elsewhere all
//! of them are off at compile time.

/// A rule that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutation {
    /// A forced move may raise the live bytes by one.
    RaisingMove,
    /// A step may exceed the budget by one byte.
    LooseBudget,
    /// A lazy operator may have an output that nobody reads, or a workspace.
    LazyWithHill,
    /// An operator that consumes may have a workspace.
    ConsumerWithHill,
    /// A raise may have an output that nobody reads, or a workspace.
    RaiseWithHill,
    /// A block never has the other readers of a chunk.
    BlockWithoutReaders,
    /// A valley may lie one byte higher than where the dive began.
    HighValley,
    /// A valley is taken as it was found, without a cut.
    ValleyWithoutCut,
    /// A search that has dropped states proves something.
    ProofWithGaps,
    /// The bound of a failed search is above the least step that it rejected.
    HighRefusal,
    /// An output always counts in the cut bound.
    CutWithoutOverwriting,
    /// Siblings in a tree run by falling hill.
    TreeByHill,
    /// An operator that rewrites a chunk may need bytes besides it.
    RewriteWithHill,
    /// A chunk that an operator updates may have other readers.
    UpdateBesideReaders,
    /// In a tree, what an operator produces may be read above its parent.
    ReadAboveParent,
    /// Inside a module, fewer bytes may be live than before it.
    ModuleBelowStart,
    /// Inside a module, fewer bytes may be live than after it.
    ModuleAboveEnd,
    /// The hill of a module is that of its mortal variant.
    ModuleByMortalEntries,
    /// Branches of equal colours are symmetric.
    SymmetryByColour,
    /// Symmetric branches need not be alike in the goal.
    SymmetryInAnyGoal,
    /// Inputs that nobody reads are never taken for the peak.
    UnreadIsNoPeak,
    /// The least first step does not bound the budgets.
    FreeFirstStep,
    /// In the search for the fewest moves, operators that have been passed do not count.
    FewestWithoutPassed,
    /// There, the first way to a state is kept.
    FewestByFirstWay,
    /// There, unread inputs need no bytes.
    FewestWithoutUnread,
    /// There, the order may exceed the budget by one byte.
    FewestWithLooseBudget,
}

#[cfg(test)]
thread_local! {
    static FAULT: std::cell::Cell<Option<Mutation>> = const { std::cell::Cell::new(None) };
}

/// Runs something with a mutation.
#[cfg(test)]
pub(super) fn with<T>(mutation: Option<Mutation>, run: impl FnOnce() -> T) -> T {
    FAULT.set(mutation);
    let result = run();
    FAULT.set(None);
    result
}

#[cfg(test)]
pub(super) fn has_mutation(mutation: Mutation) -> bool {
    FAULT.get() == Some(mutation)
}

#[cfg(not(test))]
pub(super) const fn has_mutation(_: Mutation) -> bool {
    false
}
