//! The harness itself, as far as it can be tried without everything that it runs.

mod program;
