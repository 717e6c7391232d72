//! The models hold, and would not if a safeguard were missing.

mod broken;
mod documented;
mod graphs;
