//! The store against a real PostgreSQL, a database for each test. `DATABASE_URL` must name a server and a user that may
//! create databases.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

mod api_keys;
mod claims;
mod completions;
mod constraints;
mod dead_letters;
mod failures;
mod idempotency;
mod ingest;
mod leases;
mod outcomes;
mod partitions;
mod plans;
mod promotion;
mod reading;
mod releases;
mod rescue;
mod scene;
mod schema;
mod state_table;
