//! The pages of quotas, what waits, metrics, replays, event types and activity.

use std::time::Duration;

use chrono::TimeDelta;
use domain::notification::NotificationState;
use serde_json::json;
use store::webhook::{AttemptEnd, StatisticsDelta, TypeStatistics};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::app::{ALL, HOSTILE, entered, is_safe};
use crate::portal::{Portal, id_of};

async fn event_type(portal: &Portal, name: &str, description: &str) {
    sqlx::query("INSERT INTO event_types (name, description, attributes, example, variants) VALUES ($1, $2, $3, $4, $5)")
        .bind(name)
        .bind(description)
        .bind(json!([{"name": HOSTILE, "type": "string", "description": HOSTILE, "required": true}]))
        .bind(json!({"text": HOSTILE}))
        .bind(json!([{"name": "court-order", "description": "A court ordered it.", "data": {"by": "a court"}}]))
        .execute(&portal.pool)
        .await
        .unwrap();
}

#[testkit::test]
async fn what_the_busiest_day_had_is_one_number(portal: Portal) {
    let id = SubscriptionRow::active()
        .daily_quota(120)
        .make(&portal.pool)
        .await;
    let ended = "INSERT INTO delivery_statistics VALUES ($1, date_trunc('hour', $2::timestamptz), 171, 171, 0, 0, 0, '{}', '{}')";
    sqlx::query(ended)
        .bind(id)
        .bind(portal.now() - TimeDelta::days(1))
        .execute(&portal.pool)
        .await
        .unwrap();
    let seen = portal.see(&format!("/subscriptions/{id}/quota/days")).await;
    assert_eq!(seen["busiest"], 171);
    let browser = entered(&portal, &ALL).await;
    let page = browser.see(&format!("/app/s/{id}/quota")).await;
    let said = "171 a day would have been enough for the busiest of these days";
    assert_eq!(page.matches(said).count(), 2, "{page}");
    assert!(
        page.contains(r#"viewBox="0 0 240 48" preserveAspectRatio="none" role="img" aria-label="0 ended today, by the hour""#),
        "{page}"
    );

    // What ended on a day was charged to others, too: the quota of that day is known.
    let kept = "INSERT INTO quota_days (subscription_id, day, used, quota)
                VALUES ($1, (($2::timestamptz AT TIME ZONE 'UTC') - interval '1 day')::date, 120, 120)";
    sqlx::query(kept)
        .bind(id)
        .bind(portal.now())
        .execute(&portal.pool)
        .await
        .unwrap();
    let seen = portal.see(&format!("/subscriptions/{id}/quota/days")).await;
    assert_eq!(seen["busiest"], 120);
    let page = browser.see(&format!("/app/s/{id}/quota")).await;
    let said = "The quota was used up on 1 of these days; what came after that waited.";
    assert!(
        page.contains(said) && !page.contains("would have been enough"),
        "{page}"
    );
}

#[testkit::test]
async fn more_quota_is_asked_for_and_withdrawn(portal: Portal) {
    let id = SubscriptionRow::active()
        .daily_quota(1_000)
        .make(&portal.pool)
        .await;
    let (browser, path) = (entered(&portal, &ALL).await, format!("/app/s/{id}/quota"));
    let page = browser.see(&path).await;
    assert!(
        page.contains("Ask for a higher quota") && page.contains("None waits or was decided"),
        "{page}"
    );
    let refused = browser
        .refused(&path, &[("dailyQuota", "many"), ("reason", HOSTILE)], 422)
        .await;
    is_safe(&refused);
    assert!(
        refused.contains(r#"value="many""#) && refused.contains("dailyQuota-error"),
        "{refused}"
    );
    assert!(
        refused.contains("&#60;script&#62;alert"),
        "what was typed stays: {refused}"
    );
    let asked = [("dailyQuota", "2,000,000"), ("reason", HOSTILE)];
    let (to, page) = browser.act(&path, &asked).await;
    assert_eq!(to, path);
    is_safe(&page);
    assert!(
        page.contains("2,000,000 a day") && !page.contains("Ask for a higher quota"),
        "{page}"
    );
    browser.refused(&path, &asked, 409).await;
    let request = id_of(&portal.see(&format!("/subscriptions/{id}/quota-requests")).await["items"][0]);
    let withdraw = format!("/app/s/{id}/quota-requests/{request}/withdraw");
    assert!(
        browser
            .see(&withdraw)
            .await
            .contains("Withdraw the quota request")
    );
    let (_, page) = browser.act(&withdraw, &[]).await;
    assert!(
        page.contains("is withdrawn") && page.contains("Ask for a higher quota"),
        "{page}"
    );
    // It is in the list no more, and is not said never to have been made.
    let activity = "/app/activity?action=quota";
    assert!(
        page.contains("None waits or was decided") && page.contains(activity),
        "{page}"
    );
    let told = browser.see(activity).await;
    assert!(
        told.contains("quota-request.create") && told.contains("quota-request.withdraw"),
        "{told}"
    );
}

#[testkit::test]
async fn what_waits_is_added_up_and_can_be_cancelled(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let path = format!("/app/s/{id}/scheduled");
    let browser = entered(&portal, &["manage"]).await;
    let page = browser.see(&path).await;
    assert!(
        page.contains("Nothing waits") && page.contains("what has failed until it is tried again"),
        "{page}"
    );
    let waiting = NotificationRow::in_state(NotificationState::Scheduled, id)
        .due_in(TimeDelta::hours(1))
        .make(&portal.pool)
        .await;
    let page = browser.see(&path).await;
    assert!(page.contains("1 notification waits"), "{page}");
    is_safe(&page);
    let cancel = format!("/app/n/{}/cancel", waiting.id.uuid());
    assert!(browser.see(&cancel).await.contains("Cancel the notification"));
    let resending = entered(&portal, &["resend"]).await;
    resending.refused(&cancel, &[], 403).await;
    let page = resending.see(&path).await;
    assert!(page.contains("your link was made without manage"), "{page}");
    let answer = browser.post(&cancel, &[]).await;
    assert_eq!(answer.status, 303, "{}", answer.html);
    assert!(browser.see(&path).await.contains("Nothing waits"));
    assert_eq!(browser.get(&format!("{path}?reason=LATER")).await.status, 400);
    let mut retries = Vec::new();
    for minutes in [30, 10, 20] {
        let retry =
            NotificationRow::in_state(NotificationState::Retry, id).due_in(TimeDelta::minutes(minutes));
        retries.push(retry.make(&portal.pool).await.id.uuid());
    }
    let page = browser.see(&path).await;
    let place = |id: Uuid| page.find(&format!("id=\"r-{id}\"")).unwrap();
    assert!(
        place(retries[1]) < place(retries[2]) && place(retries[2]) < place(retries[0]),
        "{page}"
    );
}

#[testkit::test]
async fn deliveries_are_shown_as_bars_and_a_table(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let (browser, path) = (entered(&portal, &ALL).await, format!("/app/s/{id}/metrics"));
    assert!(browser.see(&path).await.contains("Nothing was sent in this time"));
    let mut counted = StatisticsDelta::new(id, portal.now());
    for _ in 0..3 {
        counted.record(AttemptEnd::Delivered, Duration::from_millis(20), Some(200), 100);
    }
    counted.record(AttemptEnd::Failed, Duration::from_millis(20), Some(404), 100);
    counted.record(AttemptEnd::Retried, Duration::from_millis(20), None, 100);
    portal.store.add_delivery_statistics(&[counted]).await.unwrap();
    let mut of_type = TypeStatistics::new(id, "domain.created", portal.now());
    of_type.record(AttemptEnd::Delivered, Some(Duration::from_secs(7_200)));
    portal.store.add_type_statistics(&[of_type]).await.unwrap();
    for hours in ["", "?hours=72", "?hours=168", "?hours=672"] {
        let page = browser.see(&format!("{path}{hours}")).await;
        assert!(
            page.contains("3 delivered, 1 tried again and 1 failed"),
            "{hours}: {page}"
        );
        assert!(
            page.contains("url(#dots)") && page.contains("75 %"),
            "{hours}: {page}"
        );
        let of_type = page.split("eventType=domain.created").nth(1).unwrap_or_default();
        assert!(
            of_type.contains("2 h 19 min"),
            "the end of its bucket: {hours}: {page}"
        );
        let lines = page
            .split("From the event to its delivery: half within ")
            .nth(1)
            .unwrap_or_default();
        assert!(
            lines.contains(r#"class="line-warn" d="M"#) && lines.contains(r#"class="line-ok" d="M"#),
            "{hours}: {page}"
        );
        is_safe(&page);
    }
    let export = browser.get(&format!("{path}.csv?hours=24")).await;
    assert_eq!(export.header("content-type"), "text/csv; charset=utf-8");
    assert!(
        export.html.starts_with(
            "hour,attempts,delivered,retried,failed,delay_p50_millis,delay_p95_millis,delay_p99_millis\r\n"
        ),
        "{}",
        export.html
    );
    assert!(export.html.contains(",5,3,1,1,"), "{}", export.html);
    assert_eq!(browser.get(&format!("{path}?hours=0")).await.status, 400);
}

#[testkit::test]
async fn a_replay_is_counted_started_and_cancelled(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let (browser, path) = (entered(&portal, &ALL).await, format!("/app/s/{id}/replays"));
    assert!(browser.see(&path).await.contains("No replay was made so far"));
    let new = format!("{path}/new");
    let since = (portal.now() - TimeDelta::hours(3))
        .format("%Y-%m-%dT%H:%M")
        .to_string();
    let refused = browser
        .refused(
            &new,
            &[("since", &since), ("until", HOSTILE), ("status", "FAILED")],
            422,
        )
        .await;
    is_safe(&refused);
    assert!(
        refused.contains(&since) && refused.contains(r#"value="FAILED" checked"#),
        "{refused}"
    );
    browser.refused(&new, &[("since", "")], 422).await;
    let counted = browser.post(&new, &[("since", &since), ("count", "on")]).await;
    assert_eq!(counted.status, 200, "{}", counted.html);
    assert!(
        counted.html.contains("Nothing would be sent again"),
        "{}",
        counted.html
    );
    assert!(browser.see(&path).await.contains("No replay was made so far"));
    let (_, page) = browser.act(&new, &[("since", &since)]).await;
    assert!(
        page.contains("A replay is running") && page.contains(r#"data-live="2000""#),
        "{page}"
    );
    browser.refused(&new, &[("since", &since)], 409).await;
    assert!(browser.see(&new).await.contains("A replay is running"));
    let replay = id_of(&portal.see(&format!("/subscriptions/{id}/replays")).await["items"][0]);
    let older = browser.see(&format!("{path}?cursor={replay}")).await;
    assert!(
        older.contains("A replay is running") && older.contains("No replay is older"),
        "{older}"
    );
    let cancel = format!("{path}/{replay}/cancel");
    assert!(browser.see(&cancel).await.contains("Cancel the replay"));
    let (_, page) = browser.act(&cancel, &[]).await;
    assert!(
        page.contains("Cancelled") && page.contains("None is running"),
        "{page}"
    );
    let row = format!(r#"id="r-{replay}""#);
    for (status, is_listed) in [("CANCELLED", true), ("RUNNING", false)] {
        let filtered = browser.see(&format!("{path}?status={status}")).await;
        assert_eq!(filtered.contains(&row), is_listed, "{status}: {filtered}");
        let says_so = filtered.contains("No replay has this status");
        assert_eq!(says_so, !is_listed, "{status}: {filtered}");
    }
    assert_eq!(browser.get(&format!("{path}?status=OLD")).await.status, 400);
    let (_, page) = browser.act(&new, &[("since", &since)]).await;
    assert!(page.contains("A replay is running"), "{page}");
    let ended = browser.see(&format!("{path}?status=CANCELLED")).await;
    assert!(
        ended.contains(&row) && ended.contains("A replay is running"),
        "{ended}"
    );
}

#[testkit::test]
async fn the_catalogue_is_searched_and_sent_as_a_test(portal: Portal) {
    let id = SubscriptionRow::active()
        .event_types(&["domain.*"])
        .make(&portal.pool)
        .await;
    event_type(&portal, "zone.hostile", HOSTILE).await;
    let browser = entered(&portal, &ALL).await;
    let all = browser.see("/app/event-types").await;
    is_safe(&all);
    assert!(all.contains("zone.hostile"), "{all}");
    let found = browser.see("/app/event-types?q=zone.hos").await;
    assert!(
        found.contains("zone.hostile") && found.contains("1 of "),
        "{found}"
    );
    assert!(
        browser
            .see("/app/event-types?q=nothing-like-it")
            .await
            .contains("No event type says this")
    );
    let one = browser.see("/app/event-types/zone.hostile").await;
    is_safe(&one);
    assert!(one.contains("None does.") && one.contains("court-order"), "{one}");
    for none in ["no.such", "%ff"] {
        let missing = browser.get(&format!("/app/event-types/{none}")).await;
        assert_eq!(missing.status, 404, "{none}");
        assert!(missing.html.contains("reference <code>"), "{}", missing.html);
    }
    let test = "/app/event-types/zone.hostile/test";
    let subscription = id.to_string();
    let fields = [
        ("subscription", subscription.as_str()),
        ("variant", "court-order"),
    ];
    let sent = browser.post(test, &fields).await;
    assert_eq!(sent.status, 303, "{}", sent.html);
    assert!(sent.header("location").starts_with("/app/n/"), "{sent:?}");
    let live = browser.see("/app/live").await;
    assert!(live.contains("Send a test event"), "{live}");
    assert!(live.contains("zone.hostile"), "{live}");
    is_safe(&live);
    assert!(
        browser
            .see("/app/live?status=FAILED")
            .await
            .contains("Nothing of the last 7 days")
    );
    let looking = entered(&portal, &[]).await;
    looking.refused(test, &fields, 403).await;
    looking.refused("/app/live", &fields, 403).await;
}

#[testkit::test]
async fn a_test_event_is_sent_from_where_it_is_seen(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await.to_string();
    event_type(&portal, "zone.hostile", HOSTILE).await;
    let (browser, path) = (entered(&portal, &ALL).await, "/app/live");
    let subscription = ("subscription", id.as_str());
    for wrong in [
        [("subscription", HOSTILE), ("type", ""), ("variant", "")],
        [subscription, ("type", HOSTILE), ("variant", "")],
        [subscription, ("type", ""), ("variant", "court-order")],
        [subscription, ("type", "zone.hostile"), ("variant", HOSTILE)],
    ] {
        let page = browser.refused(path, &wrong, 422).await;
        is_safe(&page);
        // A page that is asked for again would take away what is wrong and what was typed.
        assert!(
            page.contains("Nothing was sent") && !page.contains(r#"data-live="2000""#),
            "{wrong:?}: {page}"
        );
    }
    let (_, page) = browser.act(path, &[subscription]).await;
    assert!(page.contains("postrider.test"), "{page}");
    let fields = [subscription, ("type", "zone.hostile"), ("variant", "court-order")];
    let (_, page) = browser.act(path, &fields).await;
    assert!(
        page.contains("A test event is on its way") && page.contains("zone.hostile"),
        "{page}"
    );
    is_safe(&page);
}

#[testkit::test]
async fn what_people_do_on_pages_is_told_as_their_own(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let browser = entered(&portal, &ALL).await;
    browser
        .act(
            &format!("/app/s/{id}/quota"),
            &[("dailyQuota", "2,000,000"), ("reason", "x")],
        )
        .await;
    let page = browser.see("/app/activity").await;
    assert!(page.contains("Anna Ozola &#60;user-17@acme&#62;"), "{page}");
    is_safe(&page);
    let none = browser.see("/app/activity?action=replay&by=YOU").await;
    assert!(
        none.contains("Nothing of this kind was done")
            && none.contains("<strong>What</strong> leaves them out: without it there ")
            && none.contains("href=\"/app/activity?by=YOU\" aria-label=\"Clear What\"")
            && !none.contains("Clear Who"),
        "{none}"
    );
    let time = |ahead: i64| (portal.now() + TimeDelta::hours(ahead)).format("%Y-%m-%dT%H:%M");
    let before = browser.see(&format!("/app/activity?until={}", time(-2))).await;
    assert!(before.contains("Nothing of this kind was done"), "{before}");
    let since = time(-2).to_string();
    let within = browser
        .see(&format!("/app/activity?since={since}&until={}", time(2)))
        .await;
    assert!(
        within.contains("Anna Ozola") && within.contains(&format!(r#"value="{since}""#)),
        "{within}"
    );
    assert_eq!(browser.get("/app/activity?since=soon").await.status, 400);
    let name = "by=Anna+Ozola+%3Cuser-17%40acme%3E";
    assert!(within.contains(name), "{within}");
    for (query, is_told) in [("by=YOU", true), (name, true), ("by=OPERATOR", false)] {
        let filtered = browser.see(&format!("/app/activity?{query}")).await;
        let entry = r#"class="mono nowrap">quota-request."#;
        assert_eq!(filtered.contains(entry), is_told, "{query}: {filtered}");
    }
    assert!(
        browser
            .see("/app/activity/mails")
            .await
            .contains("Mails about your subscriptions")
    );
    let stranger = crate::app::entered_by(&portal, &portal.key_of("stranger").await, &ALL).await;
    assert!(!stranger.see("/app/activity").await.contains(&id.to_string()));
}

#[testkit::test]
async fn a_visit_that_may_only_look_can_do_nothing(portal: Portal) {
    let id = id_of(&portal.created().await);
    let secret = id_of(&portal.see(&format!("/subscriptions/{id}/secrets")).await["items"][0]);
    let browser = entered(&portal, &[]).await;
    for (part, capability) in [
        ("quota", "quota"),
        ("secrets", "secrets.rotate"),
        ("secrets/rotate", "secrets.rotate"),
        ("replays", "resend"),
        ("replays/new", "resend"),
    ] {
        let page = browser.see(&format!("/app/s/{id}/{part}")).await;
        let why = format!("your link was made without {capability}");
        assert!(
            page.contains(" disabled") && page.contains(&why),
            "{part}: {page}"
        );
        is_safe(&page);
    }
    for part in [
        "quota".to_owned(),
        format!("quota-requests/{}/withdraw", Uuid::now_v7()),
        "secrets/rotate".to_owned(),
        format!("secrets/{secret}/reveal"),
        format!("secrets/{secret}/revoke"),
        "replays/new".to_owned(),
        format!("replays/{}/cancel", Uuid::now_v7()),
    ] {
        browser.refused(&format!("/app/s/{id}/{part}"), &[], 403).await;
    }
    let stranger = crate::app::entered_by(&portal, &portal.key_of("stranger").await, &ALL).await;
    for part in [
        "quota",
        "secrets",
        "secrets/rotate",
        "scheduled",
        "metrics",
        "metrics.csv",
        "replays",
        "replays/new",
    ] {
        assert_eq!(
            stranger.get(&format!("/app/s/{id}/{part}")).await.status,
            404,
            "{part}"
        );
    }
}
