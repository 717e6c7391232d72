//! What the lists of pushes, notifications and events show.

use crate::output::Column;
use crate::shown::ShownColumn;

/// Of pushes.
pub(super) const PUSHES: [ShownColumn; 9] = [
    (Column::whole("push"), "/id"),
    (Column::time("accepted").spare(2), "/createdAt"),
    (Column::whole("status"), "/status"),
    (Column::whole("paused by").spare(3), "/pausedBy"),
    (Column::time("ended").spare(5), "/finishedAt"),
    (Column::time("due").spare(4), "/nextAttemptAt"),
    (Column::whole("attempts").spare(6), "/attempts"),
    (Column::whole("prototype").spare(7), "/messagePrototypeKey"),
    (
        Column::prose("last failure").spare(1),
        "/lastFailure/code /lastFailure/error",
    ),
];

/// Of pushes that ended late: how long each took, from when it was last replayed, if it was.
pub(super) const LATE_PUSHES: [ShownColumn; 9] = [
    (Column::whole("push"), "/id"),
    (Column::time("accepted").spare(2), "/createdAt"),
    (Column::time("replayed").spare(6), "/replayedAt"),
    (Column::whole("status"), "/status"),
    (Column::time("ended").spare(3), "/finishedAt"),
    (Column::span("took"), "/createdAt /replayedAt /finishedAt"),
    (Column::whole("attempts").spare(4), "/attempts"),
    (Column::whole("prototype").spare(5), "/messagePrototypeKey"),
    (
        Column::prose("last failure").spare(1),
        "/lastFailure/code /lastFailure/error",
    ),
];

/// Of notifications.
pub(super) const NOTIFICATIONS: [ShownColumn; 12] = [
    (Column::whole("notification"), "/id"),
    (Column::whole("event").spare(9), "/eventId"),
    (Column::whole("event type").spare(8), "/eventType"),
    (Column::whole("subscription").spare(10), "/subscriptionId"),
    (Column::whole("to").spare(4), "/url"),
    (Column::whole("status"), "/status"),
    (Column::whole("reason").spare(1), "/reason"),
    (Column::whole("paused by").spare(3), "/pausedBy"),
    (Column::time("accepted").spare(7), "/acceptedAt"),
    (Column::time("ended").spare(6), "/finishedAt"),
    (Column::time("due").spare(5), "/nextAttemptAt"),
    (Column::prose("last failure").spare(2), "/error"),
];

/// Of notifications that ended late: how long each took, from when a person last had it sent again, if one had.
pub(super) const LATE_NOTIFICATIONS: [ShownColumn; 12] = [
    (Column::whole("notification"), "/id"),
    (Column::whole("event").spare(7), "/eventId"),
    (Column::whole("event type").spare(6), "/eventType"),
    (Column::whole("subscription").spare(9), "/subscriptionId"),
    (Column::whole("to").spare(3), "/url"),
    (Column::whole("status"), "/status"),
    (Column::whole("reason").spare(1), "/reason"),
    (Column::time("accepted").spare(5), "/acceptedAt"),
    (Column::time("resent").spare(8), "/resentAt"),
    (Column::time("ended").spare(4), "/finishedAt"),
    (Column::span("took"), "/acceptedAt /resentAt /finishedAt"),
    (Column::prose("last failure").spare(2), "/error"),
];

/// Of events.
pub(super) const EVENTS: [ShownColumn; 6] = [
    (Column::whole("event"), "/id"),
    (Column::whole("event id").spare(4), "/eventId"),
    (Column::whole("reseller"), "/resellerId"),
    (Column::whole("event type").spare(2), "/eventType"),
    (Column::time("accepted").spare(1), "/acceptedAt"),
    (Column::whole("notifications"), "/notifications"),
];

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{output, shown};

    #[test]
    fn pushes_fit_the_terminal() {
        let pushes = json!([
            {"id": "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d", "createdAt": "2026-11-21T12:00:00.123456Z", "status": "SENT",
             "finishedAt": "2026-11-21T12:00:01.123456Z", "attempts": 1, "messagePrototypeKey": "Good bye"},
            {"id": "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5e", "createdAt": "2026-11-21T12:00:00.123456Z", "status": "RETRY",
             "nextAttemptAt": "2026-11-21T12:01:00Z", "attempts": 2, "messagePrototypeKey": "Hello client",
             "pausedBy": "LANE", "lastFailure": {"code": 503, "error": "503 Service Unavailable: the platform is busy, try again later"}},
        ]);
        insta::assert_snapshot!(output::at_widths(&shown::list(&pushes, PUSHES)));
    }

    #[test]
    fn a_push_that_failed_shows_the_code() {
        let failed = |failure: Value| {
            let push = json!([{"id": "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d", "status": "RETRY", "lastFailure": failure}]);
            output::at_widths(&shown::list(&push, PUSHES))
        };
        let coded = failed(json!({"code": 5031, "error": "try later"}));
        assert!(coded.contains("5031 try later"), "{coded}");
        let unanswered = failed(json!({"code": null, "error": "no answer"}));
        assert!(unanswered.contains("no answer"), "{unanswered}");
        let wordless = failed(json!({"code": 503, "error": null}));
        assert!(wordless.contains("503"), "{wordless}");
    }

    #[test]
    fn notifications_fit_the_terminal() {
        let notifications = json!([
            {"id": "019aa2f0-5b1c-8025-9519-0863916ea2df", "eventId": "order-4711-created", "eventType": "domain.created",
             "url": "https://hooks.reseller.example/postrider/notifications?tenant=4711", "status": "RETRY",
             "acceptedAt": "2026-11-21T12:00:00.123456Z",
             "error": "the endpoint answered 503 Service Unavailable"},
            {"id": "019aa2f0-5b1c-8025-9519-0863916ea2e0", "eventId": "order-4712", "eventType": "contact.updated",
             "url": "https://a.example/", "status": "PENDING", "reason": "PAUSED", "pausedBy": "ALL_OF_RESELLER",
             "acceptedAt": "2026-11-21T12:00:00Z"},
        ]);
        insta::assert_snapshot!(output::at_widths(&shown::list(&notifications, NOTIFICATIONS)));
    }

    #[test]
    fn what_was_late_says_how_long_it_took_since_it_was_last_sent_again() {
        let mut late = json!([{"id": "019aa2f0-5b1c-8025-9519-0863916ea2df", "status": "SENT", "createdAt": "2026-11-21T12:00:00Z",
                               "acceptedAt": "2026-11-21T12:00:00Z", "finishedAt": "2026-11-21T12:20:04.5Z"}]);
        for (again, took) in [(None, "20 min 4 s"), (Some("2026-11-21T12:08:04Z"), "12 min")] {
            (late[0]["replayedAt"], late[0]["resentAt"]) = (json!(again), json!(again));
            for table in [
                shown::list(&late, LATE_PUSHES),
                shown::list(&late, LATE_NOTIFICATIONS),
            ] {
                let shown = output::at_widths(&table);
                assert!(shown.contains(took), "{shown}");
            }
        }
    }

    #[test]
    fn a_list_that_is_shown_whole_says_of_which_subscriptions_notifications_are() {
        let of = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
        let one = json!([{"id": "019aa2f0-5b1c-8025-9519-0863916ea2df", "subscriptionId": of, "status": "SCHEDULED", "reason": "QUOTA",
                          "acceptedAt": "2026-11-21T12:00:00Z"}]);
        for table in [
            shown::list(&one, NOTIFICATIONS),
            shown::list(&one, LATE_NOTIFICATIONS),
        ] {
            let shown = output::at_widths(&table);
            assert!(shown.contains(of), "{shown}");
        }
    }

    #[test]
    fn a_notification_that_has_ended_says_when() {
        let ended = json!([{"id": "019aa2f0-5b1c-8025-9519-0863916ea2df", "status": "SENT",
                            "acceptedAt": "2026-11-21T12:00:00Z", "finishedAt": "2026-11-21T12:00:07Z"}]);
        let shown = output::at_widths(&shown::list(&ended, NOTIFICATIONS));
        assert!(shown.contains("2026-11-21T12:00:07Z"), "{shown}");
    }
}
