//! What memplan claims about a graph is true over all choices: compared with trying every choice of ties, every
//! order of the operators and every place, on graphs of up to nine operators.
//!
//! The oracle reads the declared sequence and follows *values*, byte by byte:
//!
//! - A tensor's content is bytes. Each byte has one writer, and is needed from the step that writes it to the
//!   last step that reads it, in whatever tensor, or to the end if a graph output has it.
//! - An operator reads all bytes of its inputs, and its outputs and its workspace are whole when it ends. Only if
//!   it has no workspace and all of its outputs are views, it reads no more of the inputs that these show than they
//!   show.
//! - A view that is taken is its base's bytes, at an offset. A gather that is taken puts the part inside the
//!   output, so that both have the same bytes. Neither writes anything.
//! - An overwrite that is taken puts the output on the input's bytes, at the offset. In that step alone, both may
//!   need a byte, if no other input has it, unless that input has exactly the output's bytes.
//! - An overlap that is taken lets the output begin at least as far below the input as is declared, if they share a
//!   byte. In that step, both may need a byte, if no other input has it.
//! - A tie that is given up is a copy: the output has bytes of its own, and its operator reads the source.
//! - Two contents may have the same byte of a pool only if every use of one is over before the other is written.
//! - A tensor that overwrites nothing, and is no part through a view either, lies at a multiple of the alignment. A
//!   pool ends at its highest tensor, rounded up.
//!
//! None of memplan's lowering, chunks, lifetimes or checks are used. `MEMPLAN_BUDGET_MS` lets every test draw
//! graphs for as many milliseconds, instead of a fixed number of them, and `MEMPLAN_FIRST` is the number of the first.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "graphs are small"
)]

#[path = "../common/mod.rs"]
mod common;

mod bodies;
mod claims;
mod draw;
mod model;
mod orders;
mod packing;
mod plans;
mod pools;
mod saved;
mod shortcuts;
mod show;
mod shrink;
mod tally;
mod ties;
mod truth;
