//! Counts the dead letters that wait for an operator to look at them.

use std::time::Duration;

use store::DeadLetterLane;
use telemetry::Metric;

use crate::context::Context;
use crate::periodic::{Job, JobError, UNKNOWN};

pub(crate) struct CountDeadLetters;

impl Job for CountDeadLetters {
    const NAME: &'static str = "count-dead-letters";
    const INTERVAL: Duration = Duration::from_secs(15);

    fn end_of_term(&self) {
        for lane in [DeadLetterLane::Push, DeadLetterLane::Reseller] {
            set(lane, UNKNOWN);
        }
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        for (lane, open) in context.store.count_open_dead_letters().await? {
            set(lane, open as f64);
        }
        Ok(())
    }
}

fn set(lane: DeadLetterLane, open: f64) {
    let lane = match lane {
        DeadLetterLane::Push => "push",
        DeadLetterLane::Reseller => "reseller",
    };
    Metric::DeadLettersOpen.set_with(&[("lane", lane)], open);
}
