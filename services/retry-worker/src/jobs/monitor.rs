//! Measures how far behind the lane is: queue depths, and the age of what has waited longest.

use std::time::Duration;

use broker::Queue;
use chrono::{DateTime, Utc};
use telemetry::Metric;

use crate::context::Context;
use crate::periodic::{Job, JobError, Timing};

pub(crate) struct Monitor;

impl Job for Monitor {
    const NAME: &'static str = "monitor";

    fn timing(&self, _: &Context) -> Timing {
        Timing {
            start_delay: Duration::ZERO,
            repeat_interval: Duration::from_secs(2),
        }
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let backlog = context.store.backlog().await?;
        let now = context.clock.now();
        set_age("pending", backlog.oldest_pending, now);
        set_age("due", backlog.oldest_due, now);
        set_age("lost", backlog.first_lease_end, now);
        if context.broker.state().borrow().is_connected() {
            for (queue, label) in [(Queue::PushReady, "push.ready"), (Queue::PushDead, "push.dead")] {
                let depth = context.broker.depth(queue).await?;
                Metric::QueueMessages.set_with(&[("queue", label)], depth.messages);
            }
        }
        Ok(())
    }
}

/// What is not due yet has waited for no time.
fn set_age(status: &'static str, since: Option<DateTime<Utc>>, now: DateTime<Utc>) {
    let age = since
        .and_then(|since| (now - since).to_std().ok())
        .unwrap_or(Duration::ZERO);
    Metric::PushOldestDueAge.set_with(&[("status", status)], age.as_secs_f64());
}
