//! Nothing to link: the rules of the source tree are tests. See `tests/tidy/main.rs`.
