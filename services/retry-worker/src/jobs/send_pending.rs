//! SendPendingJob: pushes that once found the queue full go to it now, the oldest first.

use store::push::PromotionQueue;

use super::promotion::promote;
use crate::context::Context;
use crate::periodic::{Job, JobError, Timing};

pub(crate) struct SendPending;

impl Job for SendPending {
    const NAME: &'static str = "send-pending";

    fn timing(&self, context: &Context) -> Timing {
        let job = &context.config.push.job.send_pending;
        Timing {
            start_delay: job.start_delay,
            repeat_interval: job.repeat_interval,
        }
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let portion = context.config.push.job.send_pending.portion_size;
        promote(context, PromotionQueue::Pending, portion, "send_pending").await
    }
}
