//! What is to be done with a claimed push, decided before its turn comes.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use config::PushKeys;
use domain::clock::Clock;
use domain::push::{SendOutcome, SendingWindow};
use http_client::{PreparedPush, SwrveClient};
use store::push::{ClaimedPush, Release};

/// What the decision rests on.
pub(crate) struct Planner {
    pub(crate) swrve: SwrveClient,
    pub(crate) push_keys: PushKeys,
    pub(crate) clock: Arc<dyn Clock>,
    /// The time zone of cron expressions.
    pub(crate) zone: Tz,
    /// How long after its window a push may still be sent.
    pub(crate) grace: Duration,
}

/// The decision.
pub(crate) enum Plan {
    /// This request is to be sent.
    Send(Box<PreparedPush>),
    /// The attempt ends without a request.
    End(SendOutcome),
    /// There is no attempt now.
    Release(Release),
}

impl Planner {
    /// [`Self::plan`], where a panic is an outcome like any other: one push must not take the sender with it.
    pub(crate) fn plan_safely(&self, push: &ClaimedPush) -> Plan {
        let planned = std::panic::catch_unwind(AssertUnwindSafe(|| self.plan(push)));
        planned.unwrap_or_else(|_| {
            Plan::End(SendOutcome::Internal {
                chain: "planning the attempt panicked; see the log".to_owned(),
            })
        })
    }

    fn plan(&self, push: &ClaimedPush) -> Plan {
        if let Some(closed) = self.closed_window(push) {
            return closed;
        }
        let prototype = push.message_prototype_key.as_deref();
        let Some(key) = self.push_keys.find(prototype, push.platform) else {
            return Plan::End(SendOutcome::PrototypeKeyMissing {
                platform: push.platform,
                prototype: push.message_prototype_key.clone(),
            });
        };
        let traceparent = push.traceparent.as_deref();
        Plan::Send(Box::new(self.swrve.prepare(
            key,
            &push.push_key,
            &push.message,
            traceparent,
        )))
    }

    /// What to do with a push that may not be sent now; `None` when it may. Its window was looked at when it was
    /// promoted, and it may have waited in the queue since.
    fn closed_window(&self, push: &ClaimedPush) -> Option<Plan> {
        let expression = push.cron_expression.as_deref()?;
        let now = self.clock.now();
        let ours = |chain| Some(Plan::End(SendOutcome::Internal { chain }));
        let window = match SendingWindow::parse(expression, self.zone) {
            Ok(window) if window.is_open(now, self.grace) => return None,
            Ok(window) => window,
            Err(error) => return ours(format!("the stored cron expression cannot be read: {error}")),
        };
        match window.opens_at_or_after(now) {
            Ok(next) => Some(Plan::Release(Release {
                id: push.id,
                lease_token: push.lease_token,
                deferred_to: Some(next),
            })),
            Err(error) => ours(error.to_string()),
        }
    }
}
