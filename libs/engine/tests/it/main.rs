//! The engine against a real database, a real broker and a real receiver.

mod answers;
mod backlog;
mod changes;
mod fairness;
mod held;
mod outages;
mod outcomes;
mod pauses;
mod quotas;
mod repeats;
mod requests;
mod retries;
mod rig;
mod secrets;
mod statistics;
mod stopping;
