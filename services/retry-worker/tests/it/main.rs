//! The retry worker in process, against a real database and a real broker.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

mod dead_letter_jobs;
mod dead_letters;
mod ending;
mod expiry;
mod full_queue;
mod health;
mod lane;
mod mailing;
mod mailing_again;
mod notification_promotion;
mod notification_rescue;
mod outages;
mod pauses;
mod post;
mod promotion;
mod recoveries;
mod replaying;
mod replicas;
mod rescue;
mod resealing;
mod rig;
mod upkeep;
mod verification;
mod wrong_clocks;
