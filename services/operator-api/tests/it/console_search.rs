//! Pages of the console that find things, tell what became of them, list what waits, and show the lanes.

use chrono::TimeDelta;
use domain::key::Role;
use domain::notification::NotificationState;
use domain::push::PushState;
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::console::{Browser, HOSTILE, holds, shows_hostile};
use crate::rig::Rig;

async fn change(rig: &Rig, sql: &'static str, id: Uuid, text: &str) {
    let changing = sqlx::query(sql).bind(id).bind(text);
    changing.execute(&rig.it.pool).await.unwrap();
}

/// What the audit log has of acts of one kind: subjects with notes.
async fn acts(rig: &Rig, action: &str) -> Vec<(String, String)> {
    let log = rig.all(&format!("/audit?action={action}"), 10).await;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    log.iter()
        .map(|it| (text(&it["subject"]), text(&it["note"])))
        .collect()
}

#[testkit::test]
async fn an_identifier_leads_straight_to_what_has_it(rig: &Rig) {
    let browser = Browser::of(rig, Role::Viewer).await;
    let subscription = SubscriptionRow::active()
        .reseller("acme")
        .make(&rig.it.pool)
        .await;
    let push = PushRow::in_state(PushState::Pending)
        .make(&rig.it.pool)
        .await
        .id
        .uuid();
    let made = NotificationRow::in_state(NotificationState::GivenUp, subscription).reseller("acme");
    let made = made.make(&rig.it.pool).await;
    change(
        rig,
        "UPDATE events SET event_id = $2 WHERE id = $1",
        made.event,
        "order-4711",
    )
    .await;
    let notification = made.id.uuid();
    for (query, to) in [
        (push.to_string(), format!("/console/explain/{push}")),
        (
            format!("push%2F{push}+failed"),
            format!("/console/explain/{push}"),
        ),
        (
            notification.to_string(),
            format!("/console/explain/{notification}"),
        ),
        (made.event.to_string(), format!("/console/explain/{}", made.event)),
        (
            subscription.to_string(),
            format!("/console/subscriptions/{subscription}"),
        ),
        ("acme".to_owned(), "/console/resellers/acme".to_owned()),
    ] {
        let answer = browser.get(&format!("/console/search?q={query}")).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, to.as_str()),
            "{query}"
        );
    }
    let wrong = browser.get(&format!("/console/explain/{subscription}")).await;
    assert_eq!(
        wrong.header("location"),
        format!("/console/subscriptions/{subscription}")
    );
}

#[testkit::test]
async fn what_is_not_there_is_told_with_what_was_looked_for(rig: &Rig) {
    let browser = Browser::of(rig, Role::Viewer).await;
    holds(
        &browser.see("/console/search").await,
        &["Any identifier", "name=\"reseller\""],
    );
    let unknown = Uuid::now_v7();
    let page = browser.see(&format!("/console/search?q={unknown}")).await;
    let kinds = "push, notification, event, dead letter, user agent, subscription, job";
    holds(&page, &["Nothing has it", kinds, "older than the retention"]);
    let story = browser.get(&format!("/console/explain/{unknown}")).await;
    assert_eq!(story.status, 404);
    holds(&story.html, &[kinds]);
    let page = browser.see("/console/search?q=order-17&reseller=acme").await;
    holds(
        &page,
        &["Looked for: event, ", "value=\"order-17\"", "value=\"acme\""],
    );
    let hostile: String = url::form_urlencoded::byte_serialize(HOSTILE.as_bytes()).collect();
    shows_hostile(&browser.see(&format!("/console/search?q={hostile}")).await);
    shows_hostile(
        &browser
            .get(&format!("/console/search?q=x&reseller={hostile}"))
            .await
            .html,
    );
}

#[testkit::test]
async fn a_text_finds_endpoints_devices_and_prototypes(rig: &Rig) {
    let browser = Browser::of(rig, Role::Viewer).await;
    let row = SubscriptionRow::active()
        .reseller("acme-eu")
        .url("https://hooks.acme.example/in");
    let subscription = row.make(&rig.it.pool).await;
    let push = PushRow::in_state(PushState::Sent)
        .make(&rig.it.pool)
        .await
        .id
        .uuid();
    change(
        rig,
        "UPDATE push_notifications SET push_key = $2 WHERE id = $1",
        push,
        "463B3209",
    )
    .await;
    let page = browser.see("/console/search?q=acme").await;
    holds(
        &page,
        &[
            "/console/resellers/acme-eu",
            &format!("/console/subscriptions/{subscription}"),
            "https://hooks.acme.example/in",
        ],
    );
    let url = "/console/search?q=https%3A%2F%2Fhooks.acme.example%2Fin";
    let page = browser.see(url).await;
    holds(&page, &["1 found by it", &subscription.to_string()]);
    let only = browser.get("/console/search?q=463B3209").await;
    assert_eq!(only.header("location"), format!("/console/explain/{push}"));
    let other = PushRow::in_state(PushState::Sent)
        .make(&rig.it.pool)
        .await
        .id
        .uuid();
    change(
        rig,
        "UPDATE push_notifications SET push_key = $2 WHERE id = $1",
        other,
        "463B3209",
    )
    .await;
    let page = browser.see("/console/search?q=463B3209").await;
    holds(
        &page,
        &[
            "Pushes for the device",
            &push.to_string(),
            &other.to_string(),
            "/console/waiting?device=463B3209",
        ],
    );
    let list = browser.see("/console/waiting?status=ANY&device=463B3209").await;
    holds(&list, &[&push.to_string(), "Swrve accepted it"]);
    let page = browser.get("/console/search?q=acme-eu/order-17").await;
    holds(&page.html, &["Looked for: event"]);
}

#[testkit::test]
async fn a_story_links_all_it_names_and_offers_what_can_be_done(rig: &Rig) {
    let subscription = SubscriptionRow::active()
        .reseller("acme")
        .make(&rig.it.pool)
        .await;
    let made = NotificationRow::in_state(NotificationState::Pending, subscription).reseller("acme");
    let made = made.make(&rig.it.pool).await;
    let (id, event) = (made.id.uuid(), made.event);
    let browser = Browser::of(rig, Role::Operator).await;
    let path = format!("/console/explain/{id}");
    let page = browser.see(&path).await;
    holds(
        &page,
        &[
            "Waits for room in the queue.",
            &format!("href=\"/console/explain/{event}\""),
            &format!("href=\"/console/subscriptions/{subscription}\""),
            "href=\"/console/resellers/acme\"",
            &format!("data-copy=\"postrider cancel notification {id} --note &#39;…&#39;\""),
            &format!("action=\"/console/notifications/{id}/cancel\""),
        ],
    );
    let of_event = browser.see(&format!("/console/explain/{event}")).await;
    holds(
        &of_event,
        &[
            &format!("href=\"/console/explain/{id}\""),
            &format!("href=\"/console/subscriptions/{subscription}\""),
        ],
    );
    let form = browser.see(&format!("/console/notifications/{id}/cancel")).await;
    holds(&form, &["cannot be undone", "Waits for room in the queue."]);

    let cancel = format!("/console/notifications/{id}/cancel");
    let again = browser.refused(&cancel, &[("note", "  ")], 422).await;
    holds(&again, &["Nothing was done", "aria-invalid=\"true\""]);
    let long = format!("{HOSTILE}{}", "x".repeat(2_000));
    let again = browser.refused(&cancel, &[("note", &long)], 422).await;
    shows_hostile(&again);
    let viewer = Browser::of(rig, Role::Viewer).await;
    holds(&viewer.see(&path).await, &["needs the role operator"]);
    viewer.refused(&cancel, &[("note", "no")], 403).await;

    let fields = [("note", HOSTILE), ("back", "//evil.example")];
    let (to, page) = browser.act(&cancel, &fields).await;
    assert_eq!(to, "/console", "the console and nothing else");
    holds(&page, &["was cancelled; it was PENDING before"]);
    shows_hostile(&browser.see(&path).await);
    assert_eq!(
        acts(rig, "notification.cancel").await,
        [(format!("notification/{id}"), HOSTILE.to_owned())]
    );
    let conflict = browser.refused(&cancel, &[("note", "again")], 409).await;
    holds(&conflict, &["has ended before"]);
}

#[testkit::test]
async fn what_ended_in_vain_is_replayed_from_its_story(rig: &Rig) {
    let push = rig
        .it
        .accept(
            domain::push::PushStatus::Pending,
            testkit::push_request("device", "Hello"),
        )
        .await;
    change(
        rig,
        "UPDATE push_notifications SET status = 'FAILED', finished_at = now() WHERE id = $1 AND $2 <> ''",
        push.uuid(),
        "x",
    )
    .await;
    let letter = Uuid::now_v7();
    sqlx::query(
        "INSERT INTO dead_letters (id, lane, reason, fingerprint, target, detail, push_id) \
         VALUES ($1, 'push', 'FAILED', 'swrve/400', '400', 'Swrve refused it', $2)",
    )
    .bind(letter)
    .bind(push.uuid())
    .execute(&rig.it.pool)
    .await
    .unwrap();
    let browser = Browser::of(rig, Role::Operator).await;
    let page = browser.see(&format!("/console/explain/{push}")).await;
    holds(
        &page,
        &[
            &format!("action=\"/console/dead-letters/{letter}/replay\""),
            &format!("href=\"/console/dead-letters/{letter}\""),
        ],
    );
    let found = browser.get(&format!("/console/search?q={letter}")).await;
    assert_eq!(
        found.header("location"),
        format!("/console/dead-letters/{letter}")
    );
    holds(
        &browser.see(&format!("/console/explain/{letter}")).await,
        &["Dead letter", "Swrve refused it"],
    );
}

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
        assert!(
            !page.contains("Cancel all that match"),
            "what only a list knows is cancelled one by one: {query}"
        );
    }
    for (wrong, field) in [("code=all", "code"), ("code=99", "code"), ("error=SLOW", "error")] {
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
    let before = of("&endedUntil=2020-01-01T00:00:00Z").await;
    assert!(!before.contains(&row(sent.id.uuid())));
    holds(
        &of("&reseller=other").await,
        &["No notification waits that matches the filter."],
    );
}

#[testkit::test]
async fn a_lane_is_paused_and_resumed_by_its_name_and_with_a_note(rig: &Rig) {
    PushRow::in_state(PushState::Pending).make(&rig.it.pool).await;
    let browser = Browser::of(rig, Role::Operator).await;
    let page = browser.see("/console/lanes").await;
    holds(
        &page,
        &[
            "Both lanes are open",
            "push.ready",
            "reseller.retry",
            "1 push waits now",
            "data-expect=\"push\"",
        ],
    );
    let pause = "/console/lanes/push/pause";
    holds(
        &browser.see(pause).await,
        &[
            "Pause the push lane",
            "1 push waits now",
            "Resuming it undoes this",
        ],
    );
    let again = browser
        .refused(pause, &[("name", "pus"), ("note", HOSTILE)], 422)
        .await;
    holds(&again, &["must be push", "value=\"pus\""]);
    shows_hostile(&again);
    let again = browser.refused(pause, &[], 422).await;
    holds(&again, &["must be push", "is needed here"]);
    assert!(acts(rig, "lane").await.is_empty());
    browser
        .refused(
            "/console/lanes/pushes/pause",
            &[("name", "pushes"), ("note", "a")],
            404,
        )
        .await;
    let viewer = Browser::of(rig, Role::Viewer).await;
    viewer
        .refused(pause, &[("name", "push"), ("note", "a")], 403)
        .await;
    holds(&viewer.see("/console/lanes").await, &["needs the role operator"]);

    let (to, page) = browser.act(pause, &[("name", "push"), ("note", HOSTILE)]).await;
    assert_eq!(to, "/console/lanes");
    holds(
        &page,
        &[
            "The push lane is paused. What comes is stored, and waits until you resume it.",
            "1 waits because of it",
            "/console/lanes/push/resume",
        ],
    );
    shows_hostile(&page);
    shows_hostile(&browser.see("/console/waiting").await);
    let resume = "/console/lanes/push/resume";
    browser.refused(resume, &[("name", "reseller")], 422).await;
    let (_, page) = browser
        .act(resume, &[("name", "push"), ("note", "Swrve is back")])
        .await;
    holds(&page, &["The push lane goes on", "Both lanes are open"]);
    assert_eq!(
        acts(rig, "lane.pause").await,
        [("lane/push".to_owned(), HOSTILE.to_owned())]
    );
    assert_eq!(
        acts(rig, "lane.resume").await,
        [("lane/push".to_owned(), "Swrve is back".to_owned())]
    );
}

#[testkit::test]
async fn what_waits_for_a_retry_is_made_due_from_where_it_is_seen(rig: &Rig) {
    let subscription = SubscriptionRow::active().make(&rig.it.pool).await;
    let hour = TimeDelta::hours(1);
    let waiting = NotificationRow::in_state(NotificationState::Retry, subscription).due_in(hour);
    let one = waiting.make(&rig.it.pool).await.id.uuid();
    waiting.make(&rig.it.pool).await;
    let push = PushRow::in_state(PushState::Retry).due_in(hour);
    let push = push.make(&rig.it.pool).await.id.uuid();
    let browser = Browser::of(rig, Role::Operator).await;
    let viewer = Browser::of(rig, Role::Viewer).await;
    let lanes = "/console/lanes";
    for (page, place, said, came) in [
        (
            format!("/console/explain/{one}"),
            format!("/console/notifications/{one}"),
            "One notification: ",
            "1 retry is due now.",
        ),
        (
            format!("/console/subscriptions/{subscription}"),
            format!("/console/subscriptions/{subscription}"),
            "2 notifications wait for a retry now",
            "1 retry is due now.",
        ),
        (
            format!("/console/explain/{push}"),
            format!("/console/pushes/{push}"),
            "One push: ",
            "1 retry is due now.",
        ),
        (
            lanes.to_owned(),
            format!("{lanes}/push"),
            "1 push waits for a retry now.",
            "Nothing waits for a retry that is not due already.",
        ),
    ] {
        let act = format!("{place}/retry-now");
        holds(&browser.see(&page).await, &[&format!("action=\"{act}\""), said]);
        holds(
            &browser.see(&act).await,
            &[said, "cannot be undone", "name=\"note\""],
        );
        viewer.see(&act).await;
        viewer.refused(&act, &[("note", "no")], 403).await;
        let long = "x".repeat(2_001);
        let again = browser.refused(&act, &[("note", &*long)], 422).await;
        holds(&again, &["Nothing was done", "aria-invalid=\"true\""]);
        let (to, shown) = browser.act(&act, &[("note", "mended")]).await;
        assert_eq!(to, page);
        holds(&shown, &[came]);
    }
    let act = format!("/console/pushes/{push}/retry-now");
    let again = browser.refused(&act, &[], 409).await;
    holds(&again, &["is due already"]);
    browser.refused("/console/lanes/pushes/retry-now", &[], 404).await;
    for (action, subject) in [
        ("notification.retry-now", format!("notification/{one}")),
        ("subscription.retry-now", format!("subscription/{subscription}")),
        ("push.retry-now", format!("push/{push}")),
    ] {
        assert_eq!(acts(rig, action).await, [(subject, "mended".to_owned())]);
    }
    holds(
        &browser.see("/console").await,
        &["<dt>Leader</dt><dd>none: no push is sent"],
    );
    let page = browser.see("/console/lanes?minutes=15").await;
    holds(&page, &["The last 15 minutes: ", "viewBox=\"0 0 60 48\""]);
    assert_eq!(browser.get("/console/lanes?minutes=61").await.status, 400);
}

#[testkit::test]
async fn what_is_held_is_shown_with_the_lane(rig: &Rig) {
    let sql = "INSERT INTO holds (class, since, probes, probed_at, last_answer) VALUES ('SWRVE', now(), 3, now(), $1)";
    sqlx::query(sql)
        .bind(HOSTILE)
        .execute(&rig.it.pool)
        .await
        .unwrap();
    let browser = Browser::of(rig, Role::Viewer).await;
    for path in ["/console/lanes", "/console/waiting"] {
        let page = browser.see(path).await;
        holds(&page, &["Swrve is out of order"]);
        shows_hostile(&page);
    }
}
