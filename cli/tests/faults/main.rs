//! Postrider as separate processes, some of which are killed, frozen, stopped or cut off in mid-flight. Whatever happens,
//! each push and each event that was answered 202 is there once and ends as it should.
//!
//! The servers themselves stay up here; `restarts` takes them down.

mod broker_cut;
mod dispatcher_killed;
mod ingest_api_killed;
mod leader_frozen;
mod outcomes_counted;
mod queue_full;
mod replicas;
mod reseller;
mod retry_worker_killed;
mod rig;
mod shutdown;
