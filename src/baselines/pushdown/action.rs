//! The kinds of events in the simulation.

/// The effect of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// The block of a chunk becomes free.
    Free,
    /// A chunk gets a new block at the top.
    Append,
    /// A chunk gets a free block of its size.
    Fit,
    /// A chunk gets the low end of a free block.
    Split,
    /// A chunk gets a free block that was too small and has grown.
    Grow,
    /// A chunk gets its part of the block of the chunk that it overwrites.
    Overwrite,
}

impl Action {
    /// The name that traces and pictures use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Append => "alloc (append)",
            Self::Fit => "alloc (fit)",
            Self::Split => "alloc (split)",
            Self::Grow => "alloc (grow)",
            Self::Overwrite => "alloc_overwrite",
        }
    }
}
