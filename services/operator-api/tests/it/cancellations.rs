//! Cancelling what waits by a filter, over the API and on the console.

use chrono::{DateTime, TimeDelta, Utc};
use domain::push::{PushId, PushState};
use serde_json::{Value, json};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::console::{Browser, holds};
use crate::rig::{Rig, fields, problem};

async fn pushes(rig: &Rig, state: PushState, count: usize) {
    for _ in 0..count {
        let accepted_at = rig.now() - TimeDelta::hours(1);
        let push = PushRow::in_state(state).created_at(accepted_at);
        push.make(&rig.it.pool).await;
    }
}

/// So many scheduled pushes that were accepted an hour ago.
pub(crate) async fn scheduled(rig: &Rig, count: i32) {
    let accepted_at = rig.now() - TimeDelta::hours(1);
    let many = "INSERT INTO push_notifications (id, status, platform, push_key, message, cron_expression, next_attempt_at, created_at)
        SELECT (left(replace($1::uuid::text, '-', ''), 13) || left(md5(n::text), 3) || '8' || right(md5(n::text), 15))::uuid,
               'SCHEDULED', 'IOS', 'device-1', 'Hello', '* * * * * ?', $2::timestamptz + interval '1 year', $2::timestamptz
        FROM generate_series(1, $3::integer) AS n";
    sqlx::query(many)
        .bind(PushId::at(accepted_at).uuid())
        .bind(accepted_at)
        .bind(count)
        .execute(&rig.it.pool)
        .await
        .unwrap();
}

async fn cancel(rig: &Rig, body: Value) -> Value {
    rig.act("/cancellations", &body, 200).await
}

async fn refused(rig: &Rig, body: Value) -> Value {
    let request = rig.call("POST", "/cancellations").json(&body);
    problem(request.send().await.unwrap(), 422, "validation").await
}

#[testkit::test]
async fn what_waits_and_matches_is_cancelled_and_nothing_else(rig: &Rig) {
    pushes(rig, PushState::Scheduled, 3).await;
    pushes(rig, PushState::Retry, 2).await;
    pushes(rig, PushState::Failed, 1).await;
    let dry = json!({"lane": "push", "filter": {"since": "2020-01-01T00:00:00Z"}, "dryRun": true});
    let counted = cancel(rig, dry).await;
    assert_eq!(
        (
            &counted["matching"],
            &counted["byStatus"],
            &counted["cancelled"],
            &counted["more"]
        ),
        (
            &json!(5),
            &json!({"SCHEDULED": 3, "RETRY": 2}),
            &json!(0),
            &json!(false)
        )
    );
    let bounds = [&counted["oldest"], &counted["newest"]];
    let bounds = bounds.map(|at| at.as_str().and_then(|at| at.parse::<DateTime<Utc>>().ok()));
    assert!(bounds[0].is_some() && bounds[0] <= bounds[1], "{counted}");
    let scheduled = json!({"lane": "push", "filter": {"status": "SCHEDULED"}, "note": "called off"});
    let done = cancel(rig, scheduled.clone()).await;
    assert_eq!((&done["matching"], &done["cancelled"]), (&json!(3), &json!(3)));
    assert_eq!(cancel(rig, scheduled).await["matching"], json!(0), "asked again");
    assert_eq!(
        rig.all("/pushes?status=RETRY", 10).await.len(),
        2,
        "others are left alone"
    );
    let cancelled = rig.all("/pushes?status=GIVEN_UP&reason=CANCELLED", 10).await;
    assert_eq!(cancelled.len(), 3);
    let letters = rig.all("/dead-letters?state=DISCARDED", 10).await;
    assert_eq!(letters.len(), 3);
    assert_eq!(letters[0]["note"], json!("called off"));
    let log = rig.all("/audit?action=push.cancel-many", 10).await;
    assert_eq!(log.len(), 1);
    assert_eq!(
        (&log[0]["subject"], &log[0]["details"], &log[0]["note"]),
        (
            &json!("lane/push"),
            &json!({"cancelled": 3, "filter": {"status": "SCHEDULED"}}),
            &json!("called off")
        )
    );
}

#[testkit::test]
async fn notifications_are_cancelled_by_reseller(rig: &Rig) {
    let subscription = SubscriptionRow::active().make(&rig.it.pool).await;
    for state in [
        domain::notification::NotificationState::Scheduled,
        domain::notification::NotificationState::Retry,
    ] {
        NotificationRow::in_state(state, subscription)
            .make(&rig.it.pool)
            .await;
    }
    let of =
        |reseller: &str| json!({"lane": "reseller", "filter": {"reseller": reseller}, "note": "has left"});
    assert_eq!(cancel(rig, of("unknown")).await["matching"], json!(0));
    assert_eq!(cancel(rig, of("acme")).await["cancelled"], json!(2));
    let log = rig.all("/audit?action=notification.cancel-many", 10).await;
    assert_eq!(log[0]["subject"], json!("reseller/acme"));
}

#[testkit::test]
async fn what_is_cancelled_is_found_in_the_audit_log_by_what_it_was_of(rig: &Rig) {
    let subscription = SubscriptionRow::active().make(&rig.it.pool).await;
    let subject = format!("subscription/{subscription}");
    for (filter, about) in [
        (json!({"subscription": subscription}), subject.as_str()),
        (
            json!({"reseller": "acme", "subscription": subscription}),
            subject.as_str(),
        ),
        (json!({"reseller": "acme"}), "reseller/acme"),
        (json!({"status": "RETRY"}), "lane/reseller"),
    ] {
        NotificationRow::in_state(domain::notification::NotificationState::Retry, subscription)
            .make(&rig.it.pool)
            .await;
        let body = json!({"lane": "reseller", "filter": filter, "note": "has left"});
        assert_eq!(cancel(rig, body).await["cancelled"], json!(1), "{filter}");
        let log = rig.all("/audit?action=notification.cancel-many", 10).await;
        let mut details = json!({"cancelled": 1, "filter": filter});
        if about == "lane/reseller" {
            details["resellers"] = json!({"acme": 1});
        }
        assert_eq!(
            (&log[0]["subject"], &log[0]["details"]),
            (&json!(about), &details)
        );
    }
    let of_reseller = rig.all("/audit?reseller=acme", 10).await;
    assert_eq!(of_reseller.len(), 4, "that of the whole lane as well");
    assert!(rig.all("/audit?reseller=stranger", 10).await.is_empty());
    let of_subscription = rig.all(&format!("/audit?subject={subject}"), 10).await;
    assert_eq!(of_subscription.len(), 2);
}

#[testkit::test]
async fn notifications_are_cancelled_by_what_the_lists_of_waiting_are_filtered_by(rig: &Rig) {
    let paused = SubscriptionRow::active().make(&rig.it.pool).await;
    let other = SubscriptionRow::active()
        .reseller("bolt")
        .url("https://hooks.bolt.example/in")
        .make(&rig.it.pool)
        .await;
    rig.act(
        &format!("/subscriptions/{paused}/pause"),
        &json!({"note": "it is moved"}),
        200,
    )
    .await;
    for (subscription, reseller) in [(paused, "acme"), (other, "bolt")] {
        for state in [
            domain::notification::NotificationState::Scheduled,
            domain::notification::NotificationState::Retry,
        ] {
            NotificationRow::in_state(state, subscription)
                .reseller(reseller)
                .make(&rig.it.pool)
                .await;
        }
    }
    let count = async |filter: Value| {
        let body = json!({"lane": "reseller", "filter": filter, "dryRun": true});
        let counted = cancel(rig, body).await;
        assert_eq!(
            (&counted["left"], &counted["leftAtLeast"]),
            (&json!(0), &json!(false)),
            "{counted}"
        );
        counted["matching"].clone()
    };
    for (filter, matching) in [
        (json!({"reason": "PAUSED"}), 1),
        (json!({"url": "bolt.example"}), 2),
        (json!({"url": "bolt.example", "reseller": "acme"}), 0),
        (json!({"url": "bolt.example", "reason": "PAUSED"}), 0),
        (json!({"code": "418"}), 0),
        (json!({"error": "EGRESS"}), 0),
        (json!({"since": "2020-01-01T00:00:00Z"}), 4),
    ] {
        assert_eq!(count(filter.clone()).await, json!(matching), "{filter}");
    }
    let of_url = json!({"lane": "reseller", "filter": {"url": "bolt.example"}, "note": "it is gone"});
    assert_eq!(cancel(rig, of_url).await["cancelled"], json!(2));
    let log = rig.all("/audit?action=notification.cancel-many", 10).await;
    assert_eq!(
        (&log[0]["subject"], &log[0]["details"]),
        (
            &json!("lane/reseller"),
            &json!({"cancelled": 2, "filter": {"url": "bolt.example"}, "resellers": {"bolt": 2}})
        )
    );
}

#[testkit::test]
async fn a_whole_lane_and_what_does_not_wait_are_not_meant(rig: &Rig) {
    for (body, field) in [
        (json!({"filter": {"status": "RETRY"}, "note": "a"}), "lane"),
        (json!({"lane": "push", "note": "a"}), "filter"),
        (
            json!({"lane": "push", "filter": {"status": "SENT"}, "note": "a"}),
            "filter.status",
        ),
        (
            json!({"lane": "push", "filter": {"reseller": "acme"}, "note": "a"}),
            "filter.reseller",
        ),
        (
            json!({"lane": "push", "filter": {"url": "acme.example"}, "note": "a"}),
            "filter.url",
        ),
        (
            json!({"lane": "push", "filter": {"reason": "QUOTA"}, "note": "a"}),
            "filter.reason",
        ),
        (
            json!({"lane": "reseller", "filter": {"reason": "EXPIRED"}, "note": "a"}),
            "filter.reason",
        ),
        (
            json!({"lane": "reseller", "filter": {"code": "99"}, "note": "a"}),
            "filter.code",
        ),
        (
            json!({"lane": "push", "filter": {"platform": "TV"}, "note": "a"}),
            "filter.platform",
        ),
        (
            json!({"lane": "reseller", "filter": {"prototype": "a"}, "note": "a"}),
            "filter.prototype",
        ),
        (
            json!({"lane": "reseller", "filter": {"eventType": "contact.*"}, "note": "a"}),
            "filter.eventType",
        ),
        (json!({"lane": "push", "filter": {"status": "RETRY"}}), "note"),
    ] {
        assert_eq!(fields(&refused(rig, body).await), [field]);
    }
    let all_at_once = refused(rig, json!({"filter": {"status": "SENT"}})).await;
    assert_eq!(fields(&all_at_once), ["lane", "filter.status", "note"]);
}

/// Where the form of a page is sent to.
fn action_of(html: &str) -> String {
    let (_, form) = html
        .split_once("class=\"form\" method=\"post\" action=\"")
        .unwrap();
    let (action, _) = form.split_once('"').unwrap();
    action.replace("&#38;", "&").replace("&amp;", "&")
}

/// What the form of a page that goes on sends by itself.
fn next_fields(html: &str) -> Vec<(&str, &str)> {
    let (_, form) = html.split_once(" data-goes-on>").expect("a form that goes on");
    let (form, _) = form.split_once("</form>").unwrap();
    let inputs = form.split("<input type=\"hidden\" name=\"").skip(1);
    let fields = inputs.map(|input| {
        let (name, rest) = input.split_once("\" value=\"").unwrap();
        let (value, _) = rest.split_once('"').unwrap();
        (name, value)
    });
    fields.collect()
}

#[testkit::test]
async fn the_console_counts_before_it_cancels(rig: &Rig) {
    pushes(rig, PushState::Scheduled, 2).await;
    let operator = Browser::with_key(rig, &rig.key).await;
    assert!(
        !operator
            .see("/console/waiting")
            .await
            .contains("Cancel all that match"),
        "a whole lane is not meant"
    );
    let list = operator.see("/console/waiting?status=SCHEDULED").await;
    let place = "/console/waiting/cancel?lane=push&#38;status=SCHEDULED";
    holds(&list, &["Cancel all that match…", place]);
    let several = operator.see("/console/waiting?status=SCHEDULED,GIVEN_UP").await;
    holds(&several, &["<tr id=\"row-"]);
    assert!(
        !several.contains("Cancel all that match"),
        "what is cancelled together is in one status"
    );
    let form = operator.see(&place.replace("&#38;", "&")).await;
    holds(
        &form,
        &[
            "<h1>Cancel 2 pushes</h1>",
            "2 SCHEDULED",
            "this cannot be undone",
            "counted=2",
        ],
    );
    let action = action_of(&form);
    assert!(
        action.contains("until="),
        "what comes later is not meant: {action}"
    );
    let page = operator.refused(&action, &[], 422).await;
    holds(&page, &["The note is needed"]);
    let (to, page) = operator.act(&action, &[("note", "called off")]).await;
    assert_eq!(to, "/console/waiting");
    holds(
        &page,
        &["class=\"flash ok\"", "2 were cancelled and will not be sent."],
    );
    let (_, page) = operator.act(&action, &[("note", "once more")]).await;
    holds(&page, &["class=\"flash warn\"", "None was cancelled."]);
    let none = operator.get(&place.replace("&#38;", "&")).await;
    assert_eq!((none.status, none.header("location")), (303, "/console/waiting"));
    let page = operator.see("/console/waiting").await;
    holds(&page, &["there is nothing to cancel"]);
}

#[testkit::test]
async fn the_console_goes_on_until_none_is_left_where_that_is_chosen(rig: &Rig) {
    scheduled(rig, 10_100).await;
    let operator = Browser::with_key(rig, &rig.key).await;
    let form = operator
        .see("/console/waiting/cancel?lane=push&status=SCHEDULED")
        .await;
    let chosen = [
        "<h1>Cancel 5,000 pushes</h1>",
        "5,100 more match",
        // Where no script runs there is no such choice.
        "<div class=\"field script\">",
        "name=\"goOn\" value=\"on\"",
        "Go on until none is left",
    ];
    holds(&form, &chosen);

    let agreed = [("name", "5000"), ("note", "called off")];
    let (to, page) = operator.act(&action_of(&form), &agreed).await;
    assert!(to.starts_with("/console/waiting/cancel?"), "{to}");
    let next_click = [
        "5,000 were cancelled and will not be sent.",
        "<h1>Cancel 5,000 pushes</h1>",
        " 100 more match",
    ];
    holds(&page, &next_click);

    let action = action_of(&page);
    let page = operator.refused(&action, &[agreed[0], ("goOn", "on")], 422).await;
    holds(
        &page,
        &["The note is needed", "name=\"goOn\" value=\"on\" checked"],
    );
    let accepted_later =
        PushRow::in_state(PushState::Scheduled).created_at(rig.now() + TimeDelta::seconds(1));
    accepted_later.make(&rig.it.pool).await;
    let first = operator
        .post(&action, &[agreed[0], agreed[1], ("goOn", "on")])
        .await;
    assert_eq!(first.status, 200, "{first:?}");
    let goes_on = [
        "<h1>Cancelling pushes</h1>",
        "5,000 were cancelled and will not be sent. 100 are left.",
        " data-goes-on>",
    ];
    holds(&first.html, &goes_on);
    assert_eq!(action_of(&first.html), action, "the same is asked for");
    let last = operator.post(&action, &next_fields(&first.html)).await;
    assert_eq!(last.status, 200, "{last:?}");
    holds(
        &last.html,
        &["5,100 were cancelled and will not be sent. No more match."],
    );
    assert!(!last.html.contains("data-goes-on"), "{}", last.html);

    assert_eq!(
        rig.all("/pushes?status=SCHEDULED", 10).await.len(),
        1,
        "what came after the count is left alone"
    );
    let log = rig.all("/audit?action=push.cancel-many", 10).await;
    let mut cancelled: Vec<_> = log
        .iter()
        .map(|entry| entry["details"]["cancelled"].as_u64().unwrap())
        .collect();
    cancelled.sort_unstable();
    assert_eq!(cancelled, [100, 5_000, 5_000]);
    assert!(
        log.iter().all(|entry| entry["note"] == json!("called off")),
        "{log:?}"
    );
}
