//! The periodic jobs, one file each.

mod forget_idempotency_keys;
mod keep_partitions;
mod monitor;
mod promotion;
mod rescue_lost;
mod send_pending;
mod send_scheduled;

pub(crate) use forget_idempotency_keys::ForgetIdempotencyKeys;
pub(crate) use keep_partitions::KeepPartitions;
pub(crate) use monitor::Monitor;
pub(crate) use rescue_lost::RescueLost;
pub(crate) use send_pending::SendPending;
pub(crate) use send_scheduled::SendScheduled;
