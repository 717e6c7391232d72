//! The same for events: each is fanned out once, and each notification arrives, duplicates being what was in flight.

mod broker_cut;
mod deactivated;
mod dispatcher_killed;
mod endpoint_fails;
mod endpoint_redirects;
mod ingest_api_killed;
mod lost_attempt;
mod replicas;
mod retry_worker_killed;
