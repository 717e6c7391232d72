//! What the machine does without Postrider: the same work with nothing around it.

mod amqp;
mod events;
mod http;
mod out;
mod postgres;
mod relay;

pub(crate) use amqp::confirmed_publishes;
pub(crate) use events::events;
pub(crate) use http::echoes;
pub(crate) use out::posts;
pub(crate) use postgres::{Inserts, fill_waiting, inserts};
pub(crate) use relay::relayed;

use std::time::Duration;

/// Load before each floor that is not measured.
const WARM_UP: Duration = Duration::from_secs(1);
/// Length of each floor.
const MEASURED: Duration = Duration::from_secs(4);
