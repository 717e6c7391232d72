//! How a notification ended that was not delivered, and what its reseller can do, in a sentence. Pure.

use domain::counted;
use domain::notification::NotificationStatus;
use domain::reason::NotificationReason;

/// `None` for one that has not ended, or ended well.
pub(super) fn said_of(
    status: NotificationStatus,
    reason: Option<&NotificationReason>,
    attempts: u32,
) -> Option<String> {
    let said = match (status, reason) {
        (NotificationStatus::Failed, Some(reason)) if !reason.as_str().starts_with("delivery/http/") => {
            "Failed: it could not be sent. A resend or a replay sends it."
        }
        (NotificationStatus::Failed, _) => {
            "Failed: the endpoint refused it in a way that is not retried. A resend or a replay sends it."
        }
        (NotificationStatus::GivenUp, Some(NotificationReason::Expired)) => {
            "Given up: it waited for too long. A resend or a replay sends it."
        }
        (NotificationStatus::GivenUp, Some(NotificationReason::Cancelled)) => {
            "Cancelled: it is not sent any more."
        }
        (NotificationStatus::GivenUp, Some(NotificationReason::SubscriptionDeactivated)) => {
            "Given up: the subscription was deactivated. A resend or a replay sends it once the subscription is active."
        }
        (NotificationStatus::GivenUp, Some(NotificationReason::SubscriptionDeleted)) => {
            "Given up: the subscription was deleted."
        }
        (NotificationStatus::GivenUp, Some(reason)) if reason.is_possibly_sent() => {
            "May have been delivered before an outage of Postrider, which does not know it any more. A resend or a replay sends it."
        }
        (NotificationStatus::GivenUp, _) => {
            return Some(format!(
                "Given up: the last of {} failed. A resend or a replay sends it.",
                counted::of(attempts.into(), "attempt", "attempts")
            ));
        }
        _ => return None,
    };
    Some(said.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_delivered_says_how_it_ended_and_nothing_else_does() {
        let said = |status, reason: &str| said_of(status, Some(&reason.parse().unwrap()), 4);
        for (reason, part) in [
            ("EXPIRED", "waited for too long"),
            ("CANCELLED", "not sent any more"),
            ("SUBSCRIPTION_DEACTIVATED", "deactivated"),
            ("SUBSCRIPTION_DELETED", "deleted"),
            ("delivery/timeout", "the last of 4 attempts"),
            ("delivery/possibly-sent", "May have been delivered"),
        ] {
            let text = said(NotificationStatus::GivenUp, reason).unwrap_or_default();
            assert!(text.contains(part), "{reason}: {text}");
        }
        let once = said_of(NotificationStatus::GivenUp, None, 1).unwrap_or_default();
        assert!(once.contains("the last of 1 attempt failed"), "{once}");
        assert!(said(NotificationStatus::Failed, "delivery/http/404/empty").is_some());
        for status in NotificationStatus::ALL {
            let ended_badly = matches!(status, NotificationStatus::Failed | NotificationStatus::GivenUp);
            assert_eq!(said(status, "QUOTA").is_some(), ended_badly, "{status}");
        }
    }
}
