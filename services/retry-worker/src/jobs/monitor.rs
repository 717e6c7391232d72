//! Measures how far behind the lanes are: queue depths, and the age of what has waited longest.

use std::time::Duration;

use broker::Queue;
use chrono::{DateTime, Utc};
use store::Backlog;
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
        set_ages(Metric::PushOldestDueAge, &backlog, now);
        let backlog = context.store.notification_backlog().await?;
        set_ages(Metric::NotificationsOldestDueAge, &backlog, now);
        Metric::EmailsWaiting.set(context.store.outbox().await?.waiting as f64);
        if context.broker.state().borrow().is_connected() {
            for queue in Queue::ALL {
                let depth = context.broker.depth(queue).await?;
                Metric::QueueMessages.set_with(&[("queue", queue.name())], depth.messages);
            }
        }
        Ok(())
    }
}

/// What is not due yet has waited for no time.
fn set_ages(metric: Metric, backlog: &Backlog, now: DateTime<Utc>) {
    for (status, since) in [
        ("pending", backlog.oldest_pending),
        ("due", backlog.oldest_due),
        ("lost", backlog.first_lease_end),
    ] {
        let age = since
            .and_then(|since| (now - since).to_std().ok())
            .unwrap_or(Duration::ZERO);
        metric.set_with(&[("status", status)], age.as_secs_f64());
    }
}
