//! Empty: this package exists for its test, which generates the header.
