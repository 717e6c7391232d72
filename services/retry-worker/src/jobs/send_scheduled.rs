//! SendScheduledJob: pushes whose window has opened, and retries that are due, go to the queue.

use store::push::PromotionQueue;

use super::closed_windows::move_on;
use super::promotion::promote;
use crate::context::Context;
use crate::periodic::{Job, JobError, Timing};

pub(crate) struct SendScheduled;

impl Job for SendScheduled {
    const NAME: &'static str = "send-scheduled";

    fn timing(&self, context: &Context) -> Timing {
        let job = &context.config.push.job.send_scheduled;
        Timing {
            start_delay: job.start_delay,
            repeat_interval: job.repeat_interval,
        }
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        // First, so that what may not be sent now does not stand before what may.
        move_on(context).await?;
        let portion = context.config.push.job.send_scheduled.portion_size;
        promote(
            context,
            PromotionQueue::Due(context.clock.now()),
            portion,
            "send_scheduled",
        )
        .await
    }
}
