//! Small graphs with the right answers.
