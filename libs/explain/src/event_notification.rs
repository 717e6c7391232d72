//! One sentence on where a notification of an event stands, by the little that is read of it with the event.

use chrono::{DateTime, Utc};
use domain::notification::NotificationStatus;
use domain::reason::NotificationReason;
use domain::subscription::PausedBy;
use store::webhook::EventNotification;

use crate::attempt::cause;
use crate::explanation::POSSIBLY_SENT;
use crate::words::{of, time};

/// Where `notification` stands at `now`, in a sentence.
pub fn describe(notification: &EventNotification, now: DateTime<Utc>) -> String {
    if let Some(by) = notification.waits_for() {
        return paused(notification, by);
    }
    match notification.status {
        NotificationStatus::Scheduled => scheduled(notification, now),
        NotificationStatus::Pending => pending(notification),
        NotificationStatus::InMemory => in_memory(notification, now),
        NotificationStatus::Retry => retry(notification, now),
        NotificationStatus::Sent => {
            format!("The endpoint accepted it at attempt {}.", notification.attempts)
        }
        NotificationStatus::Failed => format!(
            "Will not be sent again: attempt {} failed: {}.",
            notification.attempts,
            last_failure(notification)
        ),
        NotificationStatus::GivenUp => given_up(notification),
    }
}

/// What a pause holds back may be due or not, and be in the queue or not: it waits for the end of the pause.
fn paused(notification: &EventNotification, by: PausedBy) -> String {
    let waits = format!("Waits because {}", by.said());
    if notification.status == NotificationStatus::Retry {
        let (attempt, failure) = (notification.attempts, last_failure(notification));
        return format!("{waits}; attempt {attempt} failed: {failure}.");
    }
    format!("{waits}.")
}

fn scheduled(notification: &EventNotification, now: DateTime<Utc>) -> String {
    let when = match notification.next_attempt_at {
        Some(at) if at > now => format!("until {}", time(at)),
        _ => "and is due".to_owned(),
    };
    match &notification.reason {
        Some(NotificationReason::Quota) => {
            format!("The subscription's daily quota is used up; waits in line, {when}.")
        }
        Some(NotificationReason::Rate) => {
            format!("Waits in line for the subscription's requests per second, {when}.")
        }
        Some(NotificationReason::Postponed) => {
            format!("Could not be tried for want of something of Postrider's own, {when}.")
        }
        _ => format!("Waits {when}."),
    }
}

fn pending(notification: &EventNotification) -> String {
    match &notification.reason {
        Some(NotificationReason::Paused) => {
            "Was held back by a pause that has ended; waits for room in the queue.".to_owned()
        }
        Some(NotificationReason::Unverified) if !notification.held_back.is_unverified => {
            "Was held back until its endpoint was verified; waits for room in the queue.".to_owned()
        }
        Some(NotificationReason::Unverified) => {
            "Came while the subscription's endpoint had not answered its challenge; waits for that, and for room in the queue.".to_owned()
        }
        Some(NotificationReason::Busy) => {
            "Waits because as many notifications of its subscription are being sent as may be at once."
                .to_owned()
        }
        _ => "Waits for room in the queue.".to_owned(),
    }
}

fn in_memory(notification: &EventNotification, now: DateTime<Utc>) -> String {
    let overdue = notification.leased_until.is_some_and(|until| until < now);
    match (notification.claimed, overdue) {
        (true, false) => format!("Is being sent: attempt {}.", notification.attempts),
        (true, true) => format!(
            "The outcome of attempt {} is overdue; the notification will be rescued and sent again if attempts are left.",
            notification.attempts
        ),
        (false, false) => "Is in the queue.".to_owned(),
        (false, true) => "Is overdue in the queue; will be rescued and put there again.".to_owned(),
    }
}

fn retry(notification: &EventNotification, now: DateTime<Utc>) -> String {
    let when = match notification.next_attempt_at {
        Some(at) if at > now => format!("Will be tried again after {}", time(at)),
        _ => "Is due to be tried again".to_owned(),
    };
    let obstacle = match &notification.reason {
        Some(NotificationReason::Unverified) if notification.held_back.is_unverified => {
            ", unless its endpoint is still not verified then"
        }
        Some(NotificationReason::Quota) => ", since the subscription's daily quota is used up",
        _ => "",
    };
    format!(
        "{when}{obstacle}: attempt {} failed: {}.",
        notification.attempts,
        last_failure(notification)
    )
}

fn given_up(notification: &EventNotification) -> String {
    match &notification.reason {
        Some(NotificationReason::SubscriptionDeleted) => "Given up: the subscription was deleted.".to_owned(),
        Some(NotificationReason::Expired) => "Given up: it waited for too long.".to_owned(),
        Some(NotificationReason::Cancelled) => "Given up: it was cancelled.".to_owned(),
        Some(reason) if reason.is_possibly_sent() => POSSIBLY_SENT.to_owned(),
        Some(NotificationReason::SubscriptionDeactivated) => {
            "Given up: the subscription was deactivated; a replay sends it.".to_owned()
        }
        _ => format!(
            "Given up: the last of {} failed: {}.",
            of(notification.attempts.into(), "attempt", "attempts"),
            last_failure(notification)
        ),
    }
}

fn last_failure(notification: &EventNotification) -> String {
    match &notification.last {
        Some(last) => {
            // What it says besides its kind may name addresses; of our own faults it is all there is.
            let ours = last.error_type.as_deref().is_none_or(|kind| kind == "OTHER");
            let error = last.error.as_deref().filter(|_| ours);
            cause(last.error_type.as_deref(), last.response_status, error)
        }
        None => "the reason was not recorded".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use chrono::{TimeDelta, TimeZone as _};
    use domain::notification::NotificationId;
    use domain::subscription::HeldBack;
    use store::webhook::LastAttempt;
    use uuid::Uuid;

    use super::*;

    fn now() -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap()
    }

    fn notification(status: NotificationStatus, attempts: u32) -> EventNotification {
        EventNotification {
            id: NotificationId::of(Uuid::nil(), Uuid::nil()),
            subscription_id: Uuid::nil(),
            url: "https://example.org".to_owned(),
            held_back: HeldBack::default(),
            status,
            claimed: false,
            reason: None,
            attempts,
            next_attempt_at: Some(now() + TimeDelta::seconds(90)),
            leased_until: Some(now() + TimeDelta::seconds(60)),
            updated_at: now(),
            finished_at: None,
            last: (attempts > 0).then(|| LastAttempt {
                number: attempts,
                response_status: Some(503),
                error_type: Some("HTTP".to_owned()),
                error: None,
            }),
            dead_letter: None,
            outage: false,
            resend_after_outage: None,
        }
    }

    fn said(status: NotificationStatus, attempts: u32, reason: &str) -> String {
        let mut notification = notification(status, attempts);
        notification.reason = (!reason.is_empty()).then(|| reason.parse().unwrap());
        describe(&notification, now())
    }

    #[test]
    fn waiting_names_what_for_and_until_when() {
        let quota = said(NotificationStatus::Scheduled, 0, "QUOTA");
        assert!(quota.contains("daily quota") && quota.ends_with("until 2026-11-21 12:01:30 UTC."));
        assert!(said(NotificationStatus::Scheduled, 0, "RATE").contains("requests per second"));
        assert!(said(NotificationStatus::Pending, 0, "PAUSED").contains("a pause that has ended"));
        assert!(said(NotificationStatus::Pending, 0, "BUSY").contains("at once"));
        assert_eq!(
            said(NotificationStatus::Pending, 0, ""),
            "Waits for room in the queue."
        );
    }

    #[test]
    fn that_an_endpoint_is_not_verified_is_told_until_it_is() {
        for (status, before, after) in [
            (
                NotificationStatus::Pending,
                "waits for that",
                "until its endpoint was verified",
            ),
            (
                NotificationStatus::Retry,
                "still not verified",
                "30 UTC: attempt 1 failed",
            ),
        ] {
            let mut waiting = notification(status, 1);
            waiting.reason = Some(NotificationReason::Unverified);
            waiting.held_back.is_unverified = true;
            let said = describe(&waiting, now());
            assert!(said.contains(before), "{said}");
            waiting.held_back.is_unverified = false;
            let said = describe(&waiting, now());
            assert!(!said.contains(before), "{said}");
            assert!(said.contains(after), "{said}");
        }
    }

    #[test]
    fn whatever_a_pause_holds_back_says_whose_pause_it_is() {
        for by in PausedBy::ALL {
            for status in NotificationStatus::ALL {
                let mut waiting = notification(status, 1);
                waiting.held_back.paused_by = Some(by);
                let said = describe(&waiting, now());
                let waits = said.starts_with(&format!("Waits because {}", by.said()));
                assert_eq!(waits, !status.is_terminal(), "{said}");
            }
        }
        let mut waiting = notification(NotificationStatus::Retry, 2);
        waiting.held_back.paused_by = Some(PausedBy::AllOfReseller);
        assert_eq!(
            describe(&waiting, now()),
            "Waits because its reseller is paused by an operator; attempt 2 failed: the endpoint answered 503."
        );
        let mut sending = notification(NotificationStatus::InMemory, 1);
        (sending.held_back.paused_by, sending.claimed) = (Some(PausedBy::Lane), true);
        assert_eq!(describe(&sending, now()), "Is being sent: attempt 1.");
    }

    #[test]
    fn in_memory_tells_the_queue_from_the_sender_and_late_from_lost() {
        let mut queued = notification(NotificationStatus::InMemory, 0);
        assert_eq!(describe(&queued, now()), "Is in the queue.");
        queued.leased_until = Some(now() - TimeDelta::seconds(1));
        assert!(describe(&queued, now()).contains("rescued"));
        queued.claimed = true;
        assert!(describe(&queued, now()).contains("overdue"));
    }

    #[test]
    fn a_retry_and_an_end_name_their_cause() {
        assert_eq!(
            said(NotificationStatus::Retry, 2, ""),
            "Will be tried again after 2026-11-21 12:01:30 UTC: attempt 2 failed: the endpoint answered 503."
        );
        assert!(
            said(NotificationStatus::GivenUp, 4, "delivery/http/503/json").contains("the last of 4 attempts")
        );
        assert!(said(NotificationStatus::GivenUp, 0, "SUBSCRIPTION_DELETED").contains("deleted"));
        assert!(said(NotificationStatus::GivenUp, 2, "EXPIRED").contains("waited for too long"));
        assert!(said(NotificationStatus::GivenUp, 2, "CANCELLED").contains("cancelled"));
        assert_eq!(
            said(NotificationStatus::GivenUp, 0, "delivery/possibly-sent"),
            POSSIBLY_SENT
        );
        let mut failed = notification(NotificationStatus::Failed, 1);
        failed.last = Some(LastAttempt {
            number: 1,
            response_status: None,
            error_type: Some("EGRESS".to_owned()),
            error: None,
        });
        assert!(describe(&failed, now()).contains("not a public one"));
        assert_eq!(
            said(NotificationStatus::Sent, 1, ""),
            "The endpoint accepted it at attempt 1."
        );
    }
}
