//! The store against a real PostgreSQL, a database for each test. `DATABASE_URL` must name a server and a user that may
//! create databases.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

mod api_keys;
mod careful_jobs;
mod catalogue;
mod changes;
mod claims;
mod completions;
mod constraints;
mod dead_letter_contents;
mod dead_letter_jobs;
mod dead_letter_lists;
mod dead_letter_scene;
mod dead_letter_tallies;
mod dead_letters;
mod demo;
mod emails;
mod event_batches;
mod event_types;
mod failures;
mod given_up;
mod health;
mod holds;
mod idempotency;
mod inactive;
mod ingest;
mod leases;
mod migrations;
mod names;
mod outcomes;
mod partitions;
mod pauses;
mod plans;
mod portal_visits;
mod processes;
mod promotion;
mod quota_requests;
mod reading;
mod recoveries;
mod releases;
mod rescue;
mod reseller;
mod resolution;
mod restoring;
mod retention;
mod retry_now;
mod scene;
mod schema;
mod searching;
mod state_table;
mod status;
mod verification;
mod visits;
mod webpush;
