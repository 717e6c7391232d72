//! The page of what waits, and cancelling one of it.

use domain::key::Role;
use domain::notification::NotificationState;
use domain::push::PushState;
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::console::{Browser, HOSTILE, acts, change, holds, shows_hostile};
use crate::rig::Rig;

#[testkit::test]
async fn what_waits_is_listed_with_why_and_one_is_cancelled(rig: &Rig) {
    let pending = PushRow::in_state(PushState::Pending)
        .make(&rig.it.pool)
        .await
        .id
        .uuid();
    let retry = PushRow::in_state(PushState::Retry)
        .make(&rig.it.pool)
        .await
        .id
        .uuid();
    let sent = PushRow::in_state(PushState::Sent)
        .make(&rig.it.pool)
        .await
        .id
        .uuid();
    change(
        rig,
        "UPDATE push_notifications SET message_prototype_key = $2 WHERE id = $1",
        pending,
        HOSTILE,
    )
    .await;
    let browser = Browser::of(rig, Role::Operator).await;
    let page = browser.see("/console/waiting").await;
    holds(
        &page,
        &[
            &format!("row-{pending}"),
            &format!("row-{retry}"),
            "Waits for room in the queue",
            "Waits to be tried again",
            "In the lane: 1 for another attempt, 1 for room in the queue.",
        ],
    );
    assert!(!page.contains(&sent.to_string()), "what has ended does not wait");
    shows_hostile(&page);
    let page = browser.see("/console/waiting?status=PENDING").await;
    assert!(page.contains(&pending.to_string()) && !page.contains(&retry.to_string()));
    let all = browser
        .see("/console/waiting?status=SCHEDULED,PENDING,IN_MEMORY,RETRY")
        .await;
    let rows = [format!("row-{pending}"), format!("row-{retry}")];
    holds(
        &all,
        &[&rows[0], &rows[1], "The pushes that wait, the oldest first."],
    );
    assert!(!all.contains(&sent.to_string()) && !all.contains(">Ended<"));
    holds(
        &browser.see("/console/waiting?status=SENT&platform=IOS").await,
        &["Status"],
    );

    let wrong = browser.get("/console/waiting?status=LOST&since=yesterday").await;
    assert_eq!(wrong.status, 400);
    holds(
        &wrong.html,
        &["The filter needs another value", "since must be a time"],
    );
    let wrong = browser
        .get("/console/waiting?lane=reseller&eventId=order-17")
        .await;
    holds(&wrong.html, &["value=\"order-17\"", "href=\"#reseller\""]);

    let back = "/console/waiting?status=PENDING";
    let fields = [("note", "sent by mistake"), ("back", back)];
    let (to, page) = browser
        .act(&format!("/console/pushes/{pending}/cancel"), &fields)
        .await;
    assert_eq!(to, back);
    holds(&page, &["will not be sent"]);
    assert_eq!(
        acts(rig, "push.cancel").await,
        [(format!("push/{pending}"), "sent by mistake".to_owned())]
    );
}

#[testkit::test]
async fn notifications_that_wait_are_found_by_their_filters(rig: &Rig) {
    let browser = Browser::of(rig, Role::Viewer).await;
    let subscription = SubscriptionRow::active()
        .reseller("acme")
        .url("https://hooks.acme.example/<b>");
    let subscription = subscription.make(&rig.it.pool).await;
    let make = async |state| {
        let row = NotificationRow::in_state(state, subscription).reseller("acme");
        row.make(&rig.it.pool).await
    };
    let scheduled = make(NotificationState::Scheduled).await;
    let sent = make(NotificationState::Sent).await;
    change(
        rig,
        "UPDATE notifications SET reason = $2 WHERE id = $1",
        scheduled.id.uuid(),
        "QUOTA",
    )
    .await;
    let of = async |query: &str| {
        browser
            .see(&format!("/console/waiting?lane=reseller{query}"))
            .await
    };
    let row = |id: Uuid| format!("row-{id}");
    let all = of("").await;
    holds(
        &all,
        &[
            &row(scheduled.id.uuid()),
            "daily quota is used up",
            "In the lane: 1 in line for a daily quota.",
            "needs the role operator",
            &format!("/console/subscriptions/{subscription}"),
        ],
    );
    assert!(!all.contains("<b>"), "{all}");
    let filtered = of("&reseller=acme").await;
    assert!(!filtered.contains("In the lane"), "sums know no filter");
    for (query, is_there) in [
        ("&reason=QUOTA", true),
        ("&reason=RATE", false),
        ("&reseller=acme", true),
        ("&reseller=other", false),
        ("&status=RETRY", false),
        ("&status=SCHEDULED&since=2020-01-01T10:00:00Z", true),
        ("&until=2020-01-01T10:00:00Z", false),
    ] {
        assert_eq!(
            of(query).await.contains(&row(scheduled.id.uuid())),
            is_there,
            "{query}"
        );
    }
    let retry = make(NotificationState::Retry).await;
    for (query, is_there) in [
        ("&code=503", true),
        ("&code=503&error=HTTP&status=RETRY", true),
        ("&code=404", false),
        ("&error=TIMEOUT", false),
    ] {
        let page = of(query).await;
        assert_eq!(page.contains(&row(retry.id.uuid())), is_there, "{query}");
        assert!(!page.contains(&row(scheduled.id.uuid())), "{query}");
        assert_eq!(page.contains("Cancel all that match"), is_there, "{query}");
    }
    for (wrong, field) in [
        ("code=all", "code"),
        ("code=99", "code"),
        ("error=SLOW", "error"),
        ("lateBySeconds=10m", "lateBySeconds"),
    ] {
        let path = format!("/console/waiting?lane=reseller&{wrong}");
        let answer = browser.get(&path).await;
        assert_eq!(answer.status, 400, "{wrong}");
        holds(&answer.html, &[&format!("href=\"#{field}\"")]);
    }
    let of_event = of(&format!("&eventId={}", sent.event)).await;
    holds(
        &of_event,
        &[
            &row(sent.id.uuid()),
            "The endpoint accepted it",
            "data-label=\"Ended\"",
        ],
    );
    let ended = of("&endedSince=2020-01-01T00:00:00Z").await;
    holds(&ended, &[&row(sent.id.uuid())]);
    assert!(!ended.contains(&row(retry.id.uuid())), "what waits has not ended");
    let took = "UPDATE notifications SET finished_at = created_at + $2::interval WHERE id = $1";
    change(rig, took, sent.id.uuid(), "900 seconds").await;
    let late = of("&lateBySeconds=600").await;
    holds(&late, &[&row(sent.id.uuid())]);
    assert!(!late.contains(&row(retry.id.uuid())), "what waits has not ended");
    let later = of("&lateBySeconds=1000").await;
    assert!(!later.contains(&row(sent.id.uuid())));
    let before = of("&endedUntil=2020-01-01T00:00:00Z").await;
    assert!(!before.contains(&row(sent.id.uuid())));
    holds(
        &of("&reseller=other").await,
        &["No notification waits that matches the filter."],
    );
}
