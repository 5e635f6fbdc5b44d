//! In whose memory an output may lie: views of an input, and outputs written over an input.

pub(super) mod inplace;
pub(super) mod views;
