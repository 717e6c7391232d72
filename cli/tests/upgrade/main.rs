//! An earlier version of Postrider and this one at work together, under traffic: on a schema that is migrated below them, in
//! every mix, forward and back. Whatever was answered 202, by whichever version, is there once and ends as it should.
//!
//! The earlier version is a binary, which `POSTRIDER_PREVIOUS` names; `scripts/upgrade` builds it from the history. `cargo test`
//! leaves this out unless it is asked for by name. What can be told from the migrations alone is checked in
//! `libs/store/tests/it`.

mod apis;
mod early;
mod estate;
mod killed;
mod newer_messages;
#[path = "../faults/rig/mod.rs"]
mod rig;
mod rolling;
mod stream;
mod tallies;
mod versions;
