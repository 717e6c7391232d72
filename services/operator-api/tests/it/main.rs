//! The service over HTTP, in process, on a database and queues of each test's own.

#![allow(
    clippy::unwrap_used,
    reason = "what the tests are built of fails like the tests themselves"
)]

mod answers;
mod cancellations;
mod console;
mod console_access;
mod console_addresses;
mod console_around;
mod console_dead_letters;
mod console_files;
mod console_lanes;
mod console_oidc;
mod console_pages;
mod console_resellers;
mod console_roles;
mod console_runbook;
mod console_search;
mod console_visits;
mod console_waiting;
mod controls;
mod dead_letter_jobs;
mod dead_letters;
mod dead_letters_by_reseller;
mod documents;
mod event_types;
mod explain;
mod group_notes;
mod history;
mod keys;
mod limits;
mod mails;
mod operations;
mod outages;
mod portal_links;
mod provider;
mod quota_requests;
mod rig;
mod roles;
mod search;
mod searching;
mod searching_by_reason;
mod status;
mod user_agents;
mod waiting;
