//! The service over HTTP, in process, on a database of each test's own.

#![allow(
    clippy::unwrap_used,
    reason = "what the tests are built of fails like the tests themselves"
)]

mod activity;
mod addresses;
mod administration;
mod all_notifications;
mod app;
mod app_details;
mod app_entering;
mod app_isolation;
mod app_lists;
mod app_operations;
mod app_pages;
mod app_secrets;
mod app_telling;
mod bulk;
mod cancelling;
mod changes;
mod commands;
mod creating;
mod documents;
mod endpoint_checks;
mod events;
mod following;
mod hostile;
mod isolation;
mod maximum;
mod metrics;
mod notifications;
mod outages;
mod overview;
mod portal;
mod problems;
mod quota_races;
mod quotas;
mod replay_steps;
mod replays;
mod resending;
mod secrecy;
mod secrets;
mod signature_checks;
mod site;
