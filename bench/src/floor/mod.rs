//! What the machine does without Postrider: the same work with nothing around it.

mod amqp;
mod events;
mod http;
mod out;
mod postgres;
mod relay;
mod times;

pub(crate) use amqp::confirmed_publishes;
pub(crate) use events::events;
pub(crate) use http::echoes;
pub(crate) use out::posts;
pub(crate) use postgres::{Inserts, inserts};
pub(crate) use relay::relayed;
pub(crate) use times::{commit_time, echo_time, relay_time};

use std::time::Duration;

/// Load before each floor that is not measured.
pub(crate) const WARM_UP: Duration = Duration::from_secs(1);
/// Length of each floor.
pub(crate) const MEASURED: Duration = Duration::from_secs(4);
