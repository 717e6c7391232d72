//! The problems that only this service has, and how the common ones are worded here.

use chrono::{DateTime, Utc};
use domain::subscription::SubscriptionState;
use http::StatusCode;
use http_api::{Problem, ProblemKind};

/// The reseller has as many subscriptions as it may.
pub(crate) const TOO_MANY_SUBSCRIPTIONS: ProblemKind = ProblemKind::new(
    "too-many-subscriptions",
    StatusCode::CONFLICT,
    "There are as many subscriptions as there may be",
    "The reseller has reseller.subscription.maximum subscriptions; one of them has to be deleted first.",
);

/// What is asked for makes no sense in the subscription's state.
pub(crate) const SUBSCRIPTION_STATE: ProblemKind = ProblemKind::new(
    "subscription-state",
    StatusCode::CONFLICT,
    "The subscription's state does not allow this",
    "The subscription is in a state in which the request makes no sense; detail names it.",
);

/// The last secret cannot be revoked.
pub(crate) const LAST_SECRET: ProblemKind = ProblemKind::new(
    "last-secret",
    StatusCode::CONFLICT,
    "The last secret cannot be revoked",
    "Without this secret nothing could be signed any more, now or once the others have expired. Make a new one first.",
);

/// Secrets are not shown again.
pub(crate) const SECRETS_HIDDEN: ProblemKind = ProblemKind::new(
    "secrets-hidden",
    StatusCode::FORBIDDEN,
    "Secrets are not shown again",
    "The operator of the platform has switched off looking at secrets; make another one, which the answer shows.",
);

/// A person who has signed in too long ago to see a secret. Only a visit to the dashboard is ever answered with it.
pub(crate) const AUTHENTICATION_TOO_OLD: ProblemKind = ProblemKind::new(
    "authentication-too-old",
    StatusCode::FORBIDDEN,
    "Show once more who you are",
    "The person has not shown for a quarter of an hour who it is, and asks to see a secret.",
);

/// There are too many secrets.
pub(crate) const TOO_MANY_SECRETS: ProblemKind = ProblemKind::new(
    "too-many-secrets",
    StatusCode::CONFLICT,
    "Too many secrets are valid",
    "Each valid secret signs every request. Revoke one, or wait for one to expire, before making another.",
);

/// A quota request is open.
pub(crate) const QUOTA_REQUEST_OPEN: ProblemKind = ProblemKind::new(
    "quota-request-open",
    StatusCode::CONFLICT,
    "A quota request is waiting already",
    "The subscription has a quota request that is not decided yet.",
);

/// A quota request is decided.
pub(crate) const QUOTA_REQUEST_DECIDED: ProblemKind = ProblemKind::new(
    "quota-request-decided",
    StatusCode::CONFLICT,
    "The quota request has been decided",
    "A quota request that was approved or denied cannot be withdrawn any more; make another one.",
);

/// A notification is still on its way.
pub(crate) const NOTIFICATION_UNFINISHED: ProblemKind = ProblemKind::new(
    "notification-unfinished",
    StatusCode::CONFLICT,
    "The notification has not ended",
    "Only a notification that is SENT, FAILED or GIVEN_UP can be sent again, or one in RETRY at once; this one will be sent anyhow: when its turn comes if it waits in line, and after the end of a pause if it waits for one.",
);

/// A notification was cancelled.
pub(crate) const NOTIFICATION_CANCELLED: ProblemKind = ProblemKind::new(
    "notification-cancelled",
    StatusCode::CONFLICT,
    "The notification was cancelled",
    "The notification was cancelled, by you or by the operator of the platform, so that it is not sent any more; its story says by whom.",
);

/// A notification cannot be cancelled any more.
pub(crate) const NOTIFICATION_BEYOND: ProblemKind = ProblemKind::new(
    "notification-beyond",
    StatusCode::CONFLICT,
    "The notification cannot be cancelled any more",
    "The notification is being sent at this moment, or has ended; detail says which.",
);

/// More match than are sent again at once.
pub(crate) const TOO_MANY_MATCH: ProblemKind = ProblemKind::new(
    "too-many-match",
    StatusCode::CONFLICT,
    "Too many notifications match",
    "At most 10,000 notifications are sent again at once. Narrow the time, or make a replay, which has no such bound.",
);

/// The subscription is not the one that the change was made of.
pub(crate) const CHANGED_MEANWHILE: ProblemKind = ProblemKind::new(
    "changed-meanwhile",
    StatusCode::PRECONDITION_FAILED,
    "The subscription was changed meanwhile",
    "The subscription has another version than If-Match says; detail names both. Read it again, then change what it is now.",
);

/// The reseller asks too much.
pub(crate) const TOO_MANY_REQUESTS: ProblemKind = ProblemKind::TOO_MANY_REQUESTS.meant(
    "There were more requests with keys of the reseller, or more of them at once, than are answered in so short a time, or \
     more unknown API keys than are looked up; Retry-After says when to try again.",
);

/// A replay is running.
pub(crate) const REPLAY_RUNNING: ProblemKind = ProblemKind::new(
    "replay-running",
    StatusCode::CONFLICT,
    "A replay is running already",
    "The subscription has a replay that has not ended; wait for its end or cancel it.",
);

/// A replay is through.
pub(crate) const REPLAY_COMPLETED: ProblemKind = ProblemKind::new(
    "replay-completed",
    StatusCode::CONFLICT,
    "The replay has been through",
    "A replay that has been through all of its events cannot be cancelled any more.",
);

/// A code that cannot be used any more.
pub(crate) const CODE_VOID: ProblemKind = ProblemKind::new(
    "code-void",
    StatusCode::CONFLICT,
    "The code cannot be used any more",
    "No code was sent to the address, or too many that were given back were wrong, or it was sent too long ago. Have another one sent.",
);

/// Something is done so often and not more often.
pub(crate) fn not_before(detail: &'static str, then: DateTime<Utc>, now: DateTime<Utc>) -> Problem {
    let seconds = u32::try_from((then - now).num_seconds().max(0)).unwrap_or(u32::MAX);
    // A part of a second counts as a whole one.
    Problem::new(TOO_MANY_REQUESTS, detail).retry_after(seconds.saturating_add(1))
}

pub(crate) fn no_subscription() -> Problem {
    Problem::new(ProblemKind::NOT_FOUND, "no subscription has this identifier")
}

pub(crate) fn no_notification() -> Problem {
    Problem::new(ProblemKind::NOT_FOUND, "no notification has this identifier")
}

pub(crate) fn no_event() -> Problem {
    let detail = "no event of yours has this id: none was accepted, or it is forgotten";
    Problem::new(ProblemKind::NOT_FOUND, detail)
}

/// The subscription gets nothing at present.
pub(crate) fn not_active(state: SubscriptionState) -> Problem {
    let detail = format!("the subscription is {state}, so that nothing is sent to it");
    Problem::new(SUBSCRIPTION_STATE, detail)
}
