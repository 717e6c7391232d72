//! The story of a notification for its reseller. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::{NotificationId, NotificationStatus};
use domain::push::AttemptStatus;
use domain::reason::NotificationReason;
use domain::subscription::{PausedBy, SubscriptionState};
use serde::Serialize;
use store::timeline::NotificationTimeline;
use store::webhook::{DeliveryAttemptView, StateEntry};
use utoipa::ToSchema;

use super::{Sentence, late};
use crate::attempt::cause;
use crate::explanation::{Rules, sentence};
use crate::item::{after, is_lost};
use crate::quota_wait::QuotaWait;
use crate::words::{number, of, when};

/// Something that happened or will, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = StoryStep)]
pub struct Step {
    /// When; null when that depends on something else than time.
    pub at: Option<DateTime<Utc>>,
    /// What.
    #[serde(flatten)]
    pub sentence: Sentence,
}

/// What became of a notification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "019aa2f0-5b1c-8025-9519-0863916ea2df",
    "status": "RETRY",
    "headline": {
        "code": "retry",
        "params": {"at": "2026-11-20T00:02:30Z", "attempt": 2, "errorType": "HTTP", "retries": 3, "retry": 2, "status": 503},
        "text": "Retry 2 of 3 is at 2026-11-20 00:02:30 UTC (in 1 min 50 s): attempt 2 failed: the endpoint answered 503."
    },
    "story": [
        {
            "at": "2026-11-20T00:00:00Z",
            "code": "accepted",
            "params": {"eventId": "order-17", "eventType": "domain.created"},
            "text": "The event order-17 (domain.created) was accepted for this subscription."
        }
    ],
    "next": {
        "at": "2026-11-20T00:02:30Z",
        "code": "retried",
        "params": {"at": "2026-11-20T00:02:30Z"},
        "text": "It is sent again."
    },
    "waited": [
        {
            "code": "waited-retry",
            "params": {"millis": 31000},
            "text": "31 s: between attempts, since the one before had failed."
        }
    ]
}))]
pub struct Story {
    /// The notification's identifier.
    #[schema(value_type = uuid::Uuid)]
    pub id: NotificationId,
    /// Where it stands.
    pub status: NotificationStatus,
    /// The most important thing.
    pub headline: Sentence,
    /// What happened, in the order in which it did.
    pub story: Vec<Step>,
    /// What happens next.
    pub next: Step,
    /// Why it is late: what its time went to, from its event or its last sending again until it ended, or until now; the largest part first. Empty
    /// when that was less than ten seconds.
    pub waited: Vec<Sentence>,
}

/// What telling needs to know besides the rows.
#[derive(Debug)]
pub struct Teller<'a> {
    /// The present time.
    pub now: DateTime<Utc>,
    /// What is configured.
    pub rules: &'a Rules,
    /// Whose pause holds the subscription back, if one does.
    pub paused_by: Option<PausedBy>,
    /// Which states the subscription has had, in any order.
    pub states: &'a [StateEntry],
    /// By which names the reseller's own acts are signed in the audit log.
    pub own_names: &'a [String],
}

/// What became of a notification. The errors of its attempts have to be those that its reseller may be told.
pub fn describe(history: &NotificationTimeline, teller: &Teller<'_>) -> Story {
    let told = Told { it: history, teller };
    let (headline, next) = told.state();
    Story {
        id: history.id,
        status: history.status,
        headline,
        story: told.steps(),
        next,
        waited: late::causes(history, teller),
    }
}

/// A notification, and what telling of it needs to know.
pub(super) struct Told<'a> {
    pub(super) it: &'a NotificationTimeline,
    pub(super) teller: &'a Teller<'a>,
}

/// What is said of one that has to wait for the quota.
const DEFERRED: (&str, &str) = ("deferred-quota", "Was put in line: the daily quota was used up.");

/// A step of which it is known when it was or will be.
pub(super) fn step(at: DateTime<Utc>, sentence: Sentence) -> Step {
    Step {
        at: Some(at),
        sentence,
    }
}

fn some_time(code: &'static str, text: &str) -> Step {
    Step {
        at: None,
        sentence: Sentence::new(code, text),
    }
}

impl Told<'_> {
    fn steps(&self) -> Vec<Step> {
        let it = self.it;
        let event = it
            .event_id
            .as_deref()
            .map_or(String::new(), |id| format!(" {id}"));
        let replayed = it.replayed_event();
        let accepted = match replayed {
            Some(_) => "was accepted, and nothing was sent of it to this subscription",
            None => "was accepted for this subscription",
        };
        let accepted = Sentence::new(
            "accepted",
            format!("The event{event} ({}) {accepted}.", it.event_type),
        )
        .with("eventId", &it.event_id)
        .with("eventType", &it.event_type);
        let mut steps = vec![step(replayed.unwrap_or(it.created_at), accepted)];
        steps.extend(replayed.map(|_| {
            let made = Sentence::new(
                "made-by-replay",
                "Replayed: a replay of yours made this notification.",
            );
            step(it.created_at, made)
        }));
        if let Some(wait) = QuotaWait::of(it, self.teller.rules) {
            let (code, text) = DEFERRED;
            steps.push(step(it.created_at, Sentence::new(code, text)));
            steps.push(step(wait.until, wait.said(false)));
        }
        steps.extend(it.history.iter().map(of_attempt));
        steps.extend(self.resent());
        steps.extend(self.cancelled());
        steps.extend(self.resend_ended());
        steps.extend(self.sent_again());
        steps.extend(self.waiting());
        steps.sort_by_key(|step| step.at);
        steps
    }

    /// Since when it waits, for what is not told by an attempt.
    fn waiting(&self) -> Option<Step> {
        let it = self.it;
        let (code, text) = match (it.status, &it.reason) {
            (NotificationStatus::Scheduled, Some(NotificationReason::Quota)) => DEFERRED,
            (NotificationStatus::Scheduled, Some(NotificationReason::Postponed)) => (
                "deferred-by-us",
                "Was put off: it could not be tried on our side.",
            ),
            (NotificationStatus::Scheduled, _) => {
                ("deferred-rate", "Was put in line for the requests per second.")
            }
            (NotificationStatus::Pending, Some(NotificationReason::Paused)) => {
                ("held-by-pause", "Was held back by a pause.")
            }
            (NotificationStatus::Pending, Some(NotificationReason::Unverified)) => {
                ("held-unverified", "Was held back: the endpoint is not verified.")
            }
            (NotificationStatus::Pending, _) => ("turn", "Began to wait for its turn."),
            _ => return None,
        };
        Some(step(it.updated_at.max(it.created_at), Sentence::new(code, text)))
    }

    /// The headline, and what happens next.
    fn state(&self) -> (Sentence, Step) {
        let it = self.it;
        match it.status {
            NotificationStatus::Sent => (self.delivered(), some_time("done", "Nothing: it is done.")),
            NotificationStatus::Failed => (
                self.with_failure("failed", &format!("Failed: attempt {}", it.attempts)),
                self.resend(),
            ),
            NotificationStatus::GivenUp => self.given_up(),
            NotificationStatus::InMemory if it.claimed => (
                Sentence::new("sending", format!("Is being sent: attempt {}.", it.attempts))
                    .with("attempt", it.attempts),
                some_time("answer-decides", "The answer of the endpoint decides."),
            ),
            _ => self.obstacle().unwrap_or_else(|| match it.status {
                NotificationStatus::Scheduled => self.scheduled(),
                NotificationStatus::Retry => self.retry(),
                _ => (
                    Sentence::new(
                        "turn",
                        "Waits for its turn among the notifications of this subscription.",
                    ),
                    some_time("sent-soon", "It is sent within moments."),
                ),
            }),
        }
    }

    fn delivered(&self) -> Sentence {
        let it = self.it;
        let (attempt, since) = match (it.resend_ended_at(), it.resend_cancellation()) {
            (None, _) => (it.attempts, ""),
            (Some(_), ended) => (
                it.accepted_at_attempt().unwrap_or(it.resent_after),
                match ended {
                    Some(_) => " Sending it again was cancelled.",
                    None => " It was not sent again after all.",
                },
            ),
        };
        let text = format!("Delivered: the endpoint took it at attempt {attempt}.{since}");
        Sentence::new("delivered", text).with("attempt", attempt)
    }

    /// What keeps everything of its subscription from being sent.
    fn obstacle(&self) -> Option<(Sentence, Step)> {
        let subscription = &self.it.subscription;
        if subscription.deleted_at.is_some() || subscription.state == SubscriptionState::Deactivated {
            return Some((
                Sentence::new("deactivated", "Is not sent: the subscription is deactivated."),
                // Until a job has given it up, it goes on where it was.
                some_time(
                    "replay",
                    "It is given up within seconds, unless the subscription is activated before that. A replay sends what was given up once the \
                     subscription is active again.",
                ),
            ));
        }
        match self.teller.paused_by {
            Some(PausedBy::Reseller) => {
                return Some((
                    Sentence::new("paused", "Is held back: you have paused the subscription."),
                    self.held_until("resume", "It goes on when you resume the subscription"),
                ));
            }
            Some(PausedBy::Lane | PausedBy::AllOfReseller | PausedBy::Operator) => {
                return Some((
                    Sentence::new("held", "Is held back by the operators of the platform."),
                    self.held_until("released", "It goes on by itself when they let it"),
                ));
            }
            None => {}
        }
        if subscription.state == SubscriptionState::PendingVerification {
            return Some((
                Sentence::new("unverified", "Is held back: the endpoint is not verified."),
                some_time(
                    "verified",
                    "It goes on when the endpoint has answered its challenge.",
                ),
            ));
        }
        subscription.withheld_for.map(|_| {
            (
                Sentence::new("withheld", "Is held back while a disturbance on our side lasts."),
                some_time(
                    "released",
                    "It is sent by itself afterwards. No attempt is used up meanwhile.",
                ),
            )
        })
    }

    /// What ends a pause, and when that is too late for this one: with every sending again its age counts from the beginning.
    fn held_until(&self, code: &'static str, ends: &str) -> Step {
        let since = self.it.resent_at.unwrap_or(self.it.created_at);
        let age = TimeDelta::from_std(self.teller.rules.delivery_max_age).ok();
        let Some(at) = age.and_then(|age| since.checked_add_signed(age)) else {
            return some_time(code, &format!("{ends}."));
        };
        let text = format!(
            "{ends}. If it still waits at {}, it is given up.",
            when(at, self.teller.now)
        );
        Step {
            at: None,
            sentence: Sentence::new(code, text).with("givenUpAt", at),
        }
    }

    /// Of what has ended, that it can be sent again, and what to look at before.
    fn resend(&self) -> Step {
        match self.failed().and_then(|attempt| attempt.response_status) {
            Some(401 | 403) => some_time(
                "check-secret",
                "Nothing, unless you have it sent again. Check first that the endpoint verifies with a secret that is valid now, that its clock is \
                 right, and that no gateway before it asks for a login.",
            ),
            _ => some_time("resend", "Nothing, unless you have it sent again."),
        }
    }

    /// The last attempt that failed.
    fn failed(&self) -> Option<&DeliveryAttemptView> {
        let mut latest = self.it.history.iter().rev();
        latest.find(|attempt| attempt.error_type.is_some())
    }

    fn scheduled(&self) -> (Sentence, Step) {
        let (it, rules) = (self.it, self.teller.rules);
        let due = it.next_attempt_at.unwrap_or(it.updated_at);
        let at = when(due, self.teller.now);
        let headline = match it.reason {
            Some(NotificationReason::Quota) => {
                let quota = it.subscription.daily_quota.unwrap_or(rules.daily_quota);
                let text = format!(
                    "Waits in line: the daily quota of {} is used up. Its turn comes at {at}.",
                    number(quota.into())
                );
                Sentence::new("quota", text).with("dailyQuota", quota)
            }
            Some(NotificationReason::Postponed) => Sentence::new(
                "postponed",
                format!("Was put off on our side, without an attempt, until {at}."),
            ),
            _ => {
                let rate = it.subscription.requests_per_second.or(rules.requests_per_second);
                let named = rate.map_or(String::new(), |rate| format!(" ({})", number(rate.into())));
                let text =
                    format!("Waits in line for the requests per second{named}. Its turn comes at {at}.");
                Sentence::new("rate", text).with("requestsPerSecond", rate)
            }
        };
        let next = Sentence::new("turn-comes", "It is sent when its turn comes.").with("at", due);
        (headline.with("at", due), step(due, next))
    }

    fn retry(&self) -> (Sentence, Step) {
        let it = self.it;
        let due = it.next_attempt_at.filter(|at| *at > self.teller.now);
        if it.attempts == it.resent_after {
            let headline = Sentence::new("resend-due", "Is sent again, as was asked for.");
            let next = match due {
                Some(at) => step(
                    at,
                    Sentence::new("sent-at", "It is sent in its turn.").with("at", at),
                ),
                None => some_time("sent-soon", "It is sent within moments."),
            };
            return (headline, next);
        }
        let retry = it.attempts - it.resent_after.min(it.attempts);
        let retries = it
            .subscription
            .retry_plan
            .retries(self.teller.rules.delivery_retry.max_retries);
        let retries = retries.max(retry);
        let begin = due.map_or(format!("Retry {retry} of {retries} is due"), |at| {
            format!("Retry {retry} of {retries} is at {}", when(at, self.teller.now))
        });
        let headline = self
            .with_failure("retry", &format!("{begin}: attempt {}", it.attempts))
            .with("retry", retry)
            .with("retries", retries);
        match due {
            Some(at) => {
                let next = Sentence::new("retried", "It is sent again.").with("at", at);
                (headline.with("at", at), step(at, next))
            }
            None => (headline, some_time("sent-soon", "It is sent within moments.")),
        }
    }

    fn given_up(&self) -> (Sentence, Step) {
        let it = self.it;
        let replay = some_time(
            "replay",
            "A resend or a replay sends it once the subscription is active.",
        );
        match &it.reason {
            Some(NotificationReason::SubscriptionDeleted) => (
                Sentence::new("given-up-deleted", "Given up: the subscription was deleted."),
                some_time("done", "Nothing: it is done."),
            ),
            Some(NotificationReason::SubscriptionDeactivated) => (
                Sentence::new(
                    "given-up-deactivated",
                    "Given up: the subscription was deactivated.",
                ),
                replay,
            ),
            Some(NotificationReason::Expired) => (
                Sentence::new("given-up-expired", "Given up: it had waited for too long."),
                some_time("resend", "Nothing, unless you have it sent again."),
            ),
            Some(NotificationReason::Cancelled) => {
                let headline = if self.is_cancelled_by_own() {
                    Sentence::new("cancelled-by-you", "Cancelled by you.")
                } else {
                    Sentence::new(
                        "cancelled-by-operators",
                        "Cancelled by the operators of the platform.",
                    )
                };
                let next = some_time("done", "Nothing: what was cancelled is not sent any more.");
                (headline, next)
            }
            Some(reason) if reason.is_possibly_sent() => (
                Sentence::new(
                    "possibly-sent",
                    "May have been delivered before an outage of Postrider, which does not know it any more.",
                ),
                some_time(
                    "resend",
                    "Nothing, until the operators or you have it sent again.",
                ),
            ),
            _ => {
                let attempts = of(it.attempts.into(), "attempt", "attempts");
                let headline = self.with_failure("given-up", &format!("Given up: the last of {attempts}"));
                let switch = it.subscription.resend_after_outage;
                if it.outage && switch.unwrap_or(self.teller.rules.after_outage) {
                    let text = "It is sent again by itself within minutes after the endpoint has taken another one, three times at most.";
                    return (headline, some_time("recovery", text));
                }
                (headline, self.resend())
            }
        }
    }

    /// A sentence that ends with why the last attempt failed.
    fn with_failure(&self, code: &'static str, begin: &str) -> Sentence {
        let failed = self.failed();
        let why = failed.map_or(
            "failed for a reason that was not recorded".to_owned(),
            |attempt| format!("failed: {}", cause_of(attempt)),
        );
        let told = Sentence::new(code, sentence(&format!("{begin} {why}"))).with("attempt", self.it.attempts);
        match failed {
            Some(attempt) => told
                .with("errorType", &attempt.error_type)
                .with("status", attempt.response_status),
            None => told,
        }
    }
}

fn of_attempt(attempt: &DeliveryAttemptView) -> Step {
    let (number, took) = (attempt.number, after(attempt.millis));
    let lost = attempt.error_type.as_deref() == Some("OTHER") && is_lost(attempt.error.as_deref());
    let said = match attempt.status {
        AttemptStatus::InProcess => Sentence::new("attempt-began", format!("Attempt {number} began.")),
        AttemptStatus::Ok => {
            let status = attempt
                .response_status
                .map_or(String::new(), |status| format!(" with {status}"));
            let text = format!("Attempt {number}: the endpoint took it{status}{took}.");
            Sentence::new("attempt-delivered", text).with("status", attempt.response_status)
        }
        AttemptStatus::Error if lost => {
            let text = format!(
                "Attempt {number} began, and its outcome was not recorded; it may have been delivered."
            );
            Sentence::new("attempt-lost", text)
        }
        AttemptStatus::Error => {
            let text = sentence(&format!("Attempt {number} failed{took}: {}", cause_of(attempt)));
            Sentence::new("attempt-failed", text)
                .with("errorType", &attempt.error_type)
                .with("status", attempt.response_status)
        }
    };
    step(
        attempt.started_at,
        said.with("attempt", number).with("millis", attempt.millis),
    )
}

/// Of faults of ours it is told that they are ours, and no more.
fn cause_of(attempt: &DeliveryAttemptView) -> String {
    let kind = attempt.error_type.as_deref();
    let error = attempt.error.as_deref().filter(|_| kind != Some("OTHER"));
    cause(kind, attempt.response_status.map(i32::from), error)
}
