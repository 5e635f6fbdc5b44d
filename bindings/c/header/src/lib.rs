//! Nothing: the test generates the header.
