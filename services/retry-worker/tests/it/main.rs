//! The retry worker in process, against a real database and a real broker.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

mod dead_letters;
mod ending;
mod full_queue;
mod outages;
mod promotion;
mod replicas;
mod rescue;
mod rig;
mod upkeep;
