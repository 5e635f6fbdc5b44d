//! The memory that a runtime takes for a model, in a plan's file.

use crate::Bytes;
#[cfg(feature = "serde")]
use crate::file::is_zero;

/// The sizes of a runtime's arena for a model without and with the plan. The runtime also places scratch
/// memory in it, so the arena may be larger than the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
#[non_exhaustive]
pub struct ArenaEntry {
    /// The runtime.
    pub runtime: Box<str>,
    /// The number of models that share the arena, which all figures are for together; omitted for one.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub models: Option<usize>,
    /// The kernels that it is built with, if they decide the scratch memory; otherwise omitted.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub kernels: Option<Box<str>>,
    /// Bytes of the arena for the unchanged model; if the model contains a wrong plan, for the model without that plan.
    pub own: Bytes,
    /// True if the model has a right plan already, which `own` comes from; otherwise it comes from the
    /// runtime's own planner.
    pub planned_already: bool,
    /// All that is wrong with the plan in the model; omitted if nothing is.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub wrong_plan: Vec<String>,
    /// Bytes of the arena with this plan; for several models, with a plan for each.
    pub planned: Bytes,
    /// Number of scratch buffers that are counted.
    pub scratch_buffers: usize,
    /// Operators whose scratch memory is unknown and counted as 0 bytes, with their kinds.
    pub unknown_scratch: Vec<String>,
    /// Memory that the runtime needs besides and these figures do not count.
    pub not_included: Vec<String>,
    /// Bytes of the tail of the arena, which these figures do not count; omitted if it is not known. The sum
    /// with `own` or `planned` is the whole arena.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub tail: Option<Bytes>,
    /// The release of the runtime that the tail is for; omitted with it.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub tail_release: Option<Box<str>>,
    /// Bytes of constants that the interpreter widens once and keeps beside its arena; omitted if 0.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "is_zero"))]
    pub persistent: Bytes,
    /// Bytes of tensors on the heap, whose sizes the interpreter finds when their operators run; omitted if 0.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "is_zero"))]
    pub heap: Bytes,
    /// Bytes of variables, which lie in the tail or elsewhere.
    pub variables: Bytes,
    /// Bytes of the arenas of called subgraphs, which are not counted; omitted if 0.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "is_zero"))]
    pub called: Bytes,
}
