//! From a problem to bodies: chunks that overwrites and parts join, which move as one. A plan chooses a place for each
//! body, and two bodies of one pool may not clash.
//!
//! | file | idea |
//! | --- | --- |
//! | `body` | a body: its chunks, its extent, and where it may lie |
//! | `builder` | joins chunks into bodies |
//! | `join_error` | why chunks cannot be one body |
//! | `boxes` | the bytes that a chunk needs, and the time in which it needs them |
//! | `bytes` | the bytes that parts share with their wholes |
//! | `footprint` | the segments of a chain |
//! | `pinned` | clashes between pinned bodies |
//! | `gather` | puts chunks inside others where that costs no memory |
//! | `lifetimes`, `chains` | lifetimes on several streams, and chains of clocks |
//! | `chain_index`, `chain_projection`, `clock_tree` | what may be alive together on several streams |
//! | `collapse_streams` | the same problem on one stream, where that is possible |

mod body;
pub(crate) mod boxes;
pub(crate) mod builder;
pub(crate) mod bytes;
mod chain_index;
mod chain_projection;
pub(crate) mod chains;
mod clock_tree;
mod collapse_streams;
mod footprint;
mod gather;
mod join_error;
mod lifetimes;
mod pinned;

pub(crate) use body::{AllowedPool, Body, ShortList};
pub(crate) use boxes::{TimedBox, TimedBoxes, View, concurrent, happens_before};
pub(crate) use builder::{BodyBuilder, Resolved, single_bodies};
pub(crate) use chain_index::ChainIndex;
pub(crate) use chain_projection::{ChainProjection, longest_chains};
pub(crate) use chains::{Chains, by_sum, chains, wide_sum};
pub(crate) use clock_tree::{ClockTree, ranks};
pub(crate) use footprint::Segment;
pub(crate) use gather::Gathered;
pub(crate) use join_error::JoinError;
pub(crate) use lifetimes::{BodyLifetimes, Lifetimes};
pub(crate) use pinned::clash_of_pins;
