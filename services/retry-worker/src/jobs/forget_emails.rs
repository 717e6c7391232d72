//! Forgets e-mails that ended long ago: the addresses and words in them are kept no longer than somebody may ask for them.

use std::time::Duration;

use chrono::TimeDelta;

use crate::context::Context;
use crate::periodic::{Job, JobError, Timing};

/// How long a mail is kept after it was sent or failed. Longer than the hour in which exhausted retries are told once.
const RETENTION: TimeDelta = TimeDelta::days(30);
/// Mails forgotten in one statement.
const BATCH: u32 = 1_000;

pub(crate) struct ForgetEmails;

impl Job for ForgetEmails {
    const NAME: &'static str = "forget-emails";

    fn timing(&self, _: &Context) -> Timing {
        Timing {
            start_delay: Duration::ZERO,
            repeat_interval: Duration::from_secs(600),
        }
    }

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let before = context.clock.now() - RETENTION;
        while context.store.forget_emails(before, BATCH).await? == u64::from(BATCH) {}
        Ok(())
    }
}
