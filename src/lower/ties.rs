//! The ties of a sequence that a planner may give up.

use std::{collections::HashSet, ops::Range};

use smallvec::{SmallVec, smallvec};

use crate::{
    Bytes,
    lower::{LoweringOptions, place},
    sequence::{Dependency, OpSequence, OperatorNode, Origin, Overwrite, TensorId, Tie},
    sets::{distinct, find, join},
};

/// The optional ties: those that lowering with these options may accept but need not, in the order of the operators.
/// Views of tensors outside the pool take no bytes, so they are left out, unless they hinder a required overwrite or a
/// required gather.
pub(crate) fn optional_ties(sequence: &OpSequence, options: LoweringOptions) -> Vec<Tie> {
    let is_updated = place::views_with_updates(sequence);
    let updated = overwrites(sequence).filter(|overwrite| overwrite.required).map(|one| one.input);
    let held = sequence.gathers().filter(|gather| gather.required).map(|one| one.input);
    let roots_in_the_way: HashSet<TensorId> =
        updated.chain(held).map(|input| root(sequence, input)).collect();
    let outputs = sequence.operators().iter().flat_map(|operator| &operator.outputs);
    let mut ties = Vec::new();
    for &output in outputs {
        let tensor = sequence.tensor(output);
        let Origin::Output { dependency, .. } = &tensor.origin else { continue };
        if tensor.size == Some(0) {
            continue;
        }
        let has_bytes = |input: TensorId| sequence.tensor(input).size != Some(0);
        let mut add = |place| ties.push(Tie { output, place });
        match dependency {
            Dependency::Fresh => {}
            Dependency::Reads { required, .. } => {
                let is_optional = options.views && !required && !is_updated[output.index()];
                let root = root(sequence, output);
                if is_optional
                    && (is_in_pool(sequence, root, options) || roots_in_the_way.contains(&root))
                {
                    add(0);
                }
            }
            Dependency::Overwrites(overwrites) => {
                for (place, overwrite) in overwrites.iter().enumerate() {
                    if options.inplace && !overwrite.required && has_bytes(overwrite.input) {
                        add(place);
                    }
                }
            }
            Dependency::Gathers(gathers) => {
                for (place, gather) in gathers.iter().enumerate() {
                    if options.gathers && !gather.required && has_bytes(gather.input) {
                        add(place);
                    }
                }
            }
        }
    }
    ties
}

/// Returns whether some tensor in the pool is used in parts: a view of it shows less than all of it. Then its bytes
/// need not live equally long.
pub(crate) fn has_parts(sequence: &OpSequence, options: LoweringOptions) -> bool {
    let is_updated = place::views_with_updates(sequence);
    let outputs = sequence.operators().iter().flat_map(|operator| &operator.outputs);
    outputs.copied().any(|output| {
        let tensor = sequence.tensor(output);
        let Origin::Output { dependency: Dependency::Reads { input, required, .. }, .. } =
            &tensor.origin
        else {
            return false;
        };
        (options.views || *required || is_updated[output.index()])
            && tensor.size != Some(0)
            && tensor.size != sequence.tensor(*input).size
            && is_in_pool(sequence, root(sequence, output), options)
    })
}

/// Returns whether an input may lie inside an output that gathers it, or must.
pub(crate) fn may_gather(sequence: &OpSequence, options: LoweringOptions) -> bool {
    sequence.gathers().any(|gather| options.gathers || gather.required)
}

/// The bytes by which outputs may begin below their inputs: one distance for each overlap.
pub(crate) fn overlap_distances(sequence: &OpSequence) -> impl Iterator<Item = Bytes> + '_ {
    overwrites(sequence).map(|overwrite| overwrite.below).filter(|&below| below > 0)
}

/// Returns whether the bytes alive depend on choices: a tensor is used in parts, is divided, or lies in others.
pub(crate) fn has_shared_content(sequence: &OpSequence, options: LoweringOptions) -> bool {
    has_pieces(sequence, options) || has_parts(sequence, options)
}

/// Returns whether two outputs of an operator may be written over one tensor, and one of them over another one, too, or
/// over a copy of the same bytes.
pub(crate) fn has_rival_outputs(sequence: &OpSequence, options: LoweringOptions) -> bool {
    sequence.operators().iter().any(|operator| {
        let targets = targets(sequence, operator, options);
        let mut outputs: Vec<TensorId> = targets.iter().map(|target| target.output).collect();
        outputs.sort_unstable();
        let has_several = |target: &Target| {
            let first = outputs.partition_point(|&output| output < target.output);
            outputs.get(first + 1) == Some(&target.output)
        };
        let share_a_view = |group: &[Target]| {
            let bytes = group.iter().map(|target| (target.bytes.start, target.bytes.end));
            let bytes = distinct(bytes);
            let is_shared =
                bytes.len() < group.len() || bytes.windows(2).any(|pair| pair[1].0 < pair[0].1);
            is_shared && group.iter().any(|target| target.is_of_view)
        };
        by_root(&targets).any(|group| group.iter().any(has_several) || share_a_view(group))
    })
}

/// Returns whether the search over ties may miss some plans. That is so
///
/// - if a tensor is tied both by a view and in another way: an output gathers a view, or a view shows an output that
///   gathers inputs, an output that is written over an input, or a supplied tensor;
/// - if an output may be written over one of two inputs that may share bytes, or over an input with which it may share
///   bytes in another way; or
/// - if two outputs of one operator may be written over different bytes of one tensor.
pub(crate) fn has_untried(sequence: &OpSequence, options: LoweringOptions) -> bool {
    let dependency = |tensor: TensorId| sequence.dependency(tensor);
    let is_view = |tensor: TensorId| matches!(dependency(tensor), Dependency::Reads { .. });
    let may_gather = may_gather(sequence, options);
    if may_gather && overwrites_a_relative(sequence)
        || divided_bytes(sequence, options).next().is_some()
    {
        return true;
    }
    let mut outputs = sequence.operators().iter().flat_map(|operator| &operator.outputs).copied();
    outputs.any(|output| match dependency(output) {
        Dependency::Gathers(gathers) => {
            may_gather && gathers.iter().any(|gather| is_view(gather.input))
        }
        Dependency::Reads { input, .. } => {
            let root = root(sequence, *input);
            let is_supplied = !matches!(sequence.tensor(root).origin, Origin::Output { .. });
            is_supplied || *dependency(root) != Dependency::Fresh
        }
        Dependency::Fresh | Dependency::Overwrites(_) => false,
    })
}

/// Bytes that an output of an operator may be written over.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The tensor that has the bytes, which is no view.
    pub(super) root: TensorId,
    pub(super) bytes: Range<Bytes>,
    output: TensorId,
    /// True if the output is written over a view of it.
    is_of_view: bool,
}

/// The bytes that outputs of an operator may be written over, by root.
pub(super) fn targets(
    sequence: &OpSequence,
    operator: &OperatorNode,
    options: LoweringOptions,
) -> Vec<Target> {
    let target = |output: TensorId, overwrite: &Overwrite<TensorId>| {
        let (root, low) = place_in_root(sequence, overwrite.input);
        let low = low.saturating_add(overwrite.offset).saturating_sub(overwrite.below);
        let size = sequence.tensor(output).size.unwrap_or(0);
        let is_of_view = root != overwrite.input;
        Target { root, bytes: low..low.saturating_add(size), output, is_of_view }
    };
    let mut targets = Vec::new();
    for &output in &operator.outputs {
        let overwrites = overwrites_of(sequence, output).iter();
        let accepted = overwrites.filter(|one| options.inplace || one.required);
        targets.extend(accepted.map(|overwrite| target(output, overwrite)));
    }
    targets.retain(|target| !target.bytes.is_empty());
    targets.sort_by_key(|target| target.root);
    targets
}

/// The targets of several outputs in one tensor.
fn by_root(targets: &[Target]) -> impl Iterator<Item = &[Target]> {
    let groups = targets.chunk_by(|a, b| a.root == b.root);
    groups.filter(|group| group.iter().any(|target| target.output != group[0].output))
}

/// The bytes of tensors that outputs of one operator may divide between them.
pub(super) fn divided_bytes(
    sequence: &OpSequence,
    options: LoweringOptions,
) -> impl Iterator<Item = Target> + '_ {
    let of_operator = move |operator: &OperatorNode| {
        let targets = targets(sequence, operator, options);
        let is_divided = |group: &&[Target]| {
            let last_start = group.iter().map(|target| target.bytes.start).max();
            last_start >= group.iter().map(|target| target.bytes.end).min()
        };
        by_root(&targets).filter(is_divided).flatten().cloned().collect::<Vec<_>>()
    };
    sequence.operators().iter().flat_map(of_operator)
}

/// Returns whether lowering may cut chunks into pieces: outputs gather inputs, or divide a tensor between them.
pub(crate) fn has_pieces(sequence: &OpSequence, options: LoweringOptions) -> bool {
    may_gather(sequence, options) || divided_bytes(sequence, options).next().is_some()
}

/// Returns whether an output may be written over an input that may share bytes with another input of its operator, or
/// with the output: another output gathers both, or one of them gathers the other, or they are tied so through others.
fn overwrites_a_relative(sequence: &OpSequence) -> bool {
    let mut families: Vec<usize> = (0..sequence.tensors().len()).collect();
    let mut is_gathered = vec![false; families.len()];
    for (output, tensor) in sequence.tensors().iter().enumerate() {
        let Origin::Output { dependency, .. } = &tensor.origin else { continue };
        let inputs: SmallVec<[usize; 4]> = match dependency {
            Dependency::Gathers(all) => all.iter().map(|one| one.input.index()).collect(),
            Dependency::Reads { input, .. } => smallvec![input.index()],
            Dependency::Overwrites(_) | Dependency::Fresh => continue,
        };
        let gathers = matches!(dependency, Dependency::Gathers(_));
        for input in inputs {
            let (output, input) = join(&mut families, output, input);
            is_gathered[output] |= gathers || is_gathered[input];
        }
    }
    sequence.operators().iter().any(|operator| {
        let of_output = |&output: &TensorId| {
            overwrites_of(sequence, output).iter().map(move |overwrite| (output, overwrite.input))
        };
        operator.outputs.iter().flat_map(of_output).any(|(output, overwritten)| {
            let family = find(&mut families, overwritten.index());
            let others = operator.inputs.iter().filter(|&&input| input != overwritten);
            let mut others = others.chain([&output]);
            is_gathered[family] && others.any(|other| find(&mut families, other.index()) == family)
        })
    })
}

/// All write dependencies.
fn overwrites(sequence: &OpSequence) -> impl Iterator<Item = &Overwrite<TensorId>> {
    let tensors = (0..sequence.tensors().len()).map(TensorId::from_index);
    tensors.flat_map(|tensor| overwrites_of(sequence, tensor))
}

/// The write dependencies of a tensor.
fn overwrites_of(sequence: &OpSequence, tensor: TensorId) -> &[Overwrite<TensorId>] {
    match &sequence.tensor(tensor).origin {
        Origin::Output { dependency: Dependency::Overwrites(overwrites), .. } => overwrites,
        _ => &[],
    }
}

/// The tensor that this is a view of, through other views.
pub(super) fn root(sequence: &OpSequence, view: TensorId) -> TensorId {
    place_in_root(sequence, view).0
}

/// The tensor that this is a view of, through other views, and the offset there.
fn place_in_root(sequence: &OpSequence, view: TensorId) -> (TensorId, Bytes) {
    let (mut at, mut low) = (view, 0_u64);
    while let Some((input, offset)) = sequence.tensor(at).viewed() {
        (at, low) = (input, low.saturating_add(offset));
    }
    (at, low)
}

/// Returns whether a tensor that is no view lies in the pool.
pub(super) fn is_in_pool(sequence: &OpSequence, root: TensorId, options: LoweringOptions) -> bool {
    match &sequence.tensor(root).origin {
        Origin::Input => options.inputs_in_pool,
        Origin::Weight => options.weights_in_pool,
        Origin::Output { .. } => true,
    }
}
