//! Measures how far behind the lanes are: queue depths, and the age of what has waited longest.

use std::time::Duration;

use broker::Queue;
use chrono::{DateTime, Utc};
use domain::notification::OutageClass;
use store::push::HoldView;
use store::{Backlog, PauseCounts};
use telemetry::Metric;

use crate::context::Context;
use crate::periodic::{Job, JobError, UNKNOWN};

/// What waits, in the order of [`set_ages`].
const STATUSES: [&str; 3] = ["pending", "due", "lost"];

/// What can be paused, in the order of [`set_pauses`].
const PAUSABLE: [&str; 4] = ["push_lane", "reseller_lane", "subscription", "reseller"];

/// What can be held, each with a label of the same name in lower case.
fn holdable() -> impl Iterator<Item = &'static str> {
    let classes = OutageClass::ALL.into_iter().map(OutageClass::as_str);
    std::iter::once(store::push::SWRVE).chain(classes)
}

pub(crate) struct Monitor;

impl Job for Monitor {
    const NAME: &'static str = "monitor";
    const INTERVAL: Duration = Duration::from_secs(2);

    fn end_of_term(&self) {
        for status in STATUSES {
            Metric::PushOldestDueAge.set_with(&[("status", status)], UNKNOWN);
            Metric::NotificationsOldestDueAge.set_with(&[("status", status)], UNKNOWN);
        }
        for scope in PAUSABLE {
            Metric::Paused.set_with(&[("scope", scope)], UNKNOWN);
        }
        for class in holdable() {
            Metric::Held.set_with(&[("class", class.to_ascii_lowercase().as_str())], UNKNOWN);
        }
        Metric::EmailsWaiting.set(UNKNOWN);
        Metric::EmailsOldestDueAge.set(UNKNOWN);
        for queue in Queue::ALL {
            Metric::QueueMessages.set_with(&[("queue", queue.name())], UNKNOWN);
            Metric::QueueConsumers.set_with(&[("queue", queue.name())], UNKNOWN);
        }
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let backlog = context.store.backlog().await?;
        let now = context.clock.now();
        set_ages(Metric::PushOldestDueAge, &backlog, now);
        let backlog = context.store.notification_backlog().await?;
        set_ages(Metric::NotificationsOldestDueAge, &backlog, now);
        set_pauses(context.store.count_pauses().await?);
        set_holds(&context.store.list_holds().await?);
        let outbox = context.store.outbox().await?;
        Metric::EmailsWaiting.set(outbox.waiting as f64);
        Metric::EmailsOldestDueAge.set(age(outbox.oldest_due, now));
        if context.broker.state().borrow().is_connected() {
            for queue in Queue::ALL {
                let depth = context.broker.depth(queue).await?;
                Metric::QueueMessages.set_with(&[("queue", queue.name())], depth.messages);
                Metric::QueueConsumers.set_with(&[("queue", queue.name())], depth.consumers);
                if let Some(capacity) = capacity(queue, context) {
                    Metric::QueueCapacity.set_with(&[("queue", queue.name())], capacity);
                }
            }
        }
        Ok(())
    }
}

/// The most messages that a queue takes; the queues of dead letters take any number.
fn capacity(queue: Queue, context: &Context) -> Option<u32> {
    match queue {
        Queue::PushReady => Some(context.config.push.queue.capacity),
        Queue::ResellerReady | Queue::ResellerRetry => Some(context.config.reseller.queue.capacity),
        Queue::PushDead | Queue::ResellerDead => None,
    }
}

fn set_ages(metric: Metric, backlog: &Backlog, now: DateTime<Utc>) {
    let since = [
        backlog.oldest_pending,
        backlog.oldest_due,
        backlog.first_lease_end,
    ];
    for (status, since) in STATUSES.into_iter().zip(since) {
        metric.set_with(&[("status", status)], age(since, now));
    }
}

fn set_pauses(pauses: PauseCounts) {
    let counts = [
        u64::from(pauses.push_lane),
        u64::from(pauses.reseller_lane),
        pauses.subscriptions,
        pauses.resellers,
    ];
    for (scope, count) in PAUSABLE.into_iter().zip(counts) {
        Metric::Paused.set_with(&[("scope", scope)], count as f64);
    }
}

fn set_holds(holds: &[HoldView]) {
    for class in holdable() {
        let value = match holds.iter().find(|hold| hold.class == class) {
            None => 0.0,
            Some(hold) if hold.answered_at.is_some() => 0.5,
            Some(_) => 1.0,
        };
        Metric::Held.set_with(&[("class", class.to_ascii_lowercase().as_str())], value);
    }
}

/// In seconds. What is not due yet has waited for no time.
fn age(since: Option<DateTime<Utc>>, now: DateTime<Utc>) -> f64 {
    let age = since.and_then(|since| (now - since).to_std().ok());
    age.unwrap_or(Duration::ZERO).as_secs_f64()
}
