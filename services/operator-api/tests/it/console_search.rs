//! Pages of the console that find things and tell what became of them.

use domain::key::Role;
use domain::notification::NotificationState;
use domain::push::PushState;
use sqlx::PgPool;
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::console::{Browser, HOSTILE, acts, change, holds, shows_hostile};
use crate::rig::Rig;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Pages about a push, a notification, its event and a dead letter, all of one trace.
async fn traced(rig: &Rig) -> [String; 4] {
    let traceparent = format!("00-{TRACE}-b7ad6b7169203331-01");
    let subscription = SubscriptionRow::active().make(&rig.it.pool).await;
    let push = PushRow::in_state(PushState::Failed).traceparent(&traceparent);
    let push = push.make(&rig.it.pool).await.id.uuid();
    let made = NotificationRow::in_state(NotificationState::GivenUp, subscription);
    let made = made.make(&rig.it.pool).await;
    let trace = "UPDATE events SET traceparent = $2 WHERE id = $1";
    change(rig, trace, made.event, &traceparent).await;
    let letters = rig.see("/dead-letters?lane=push").await;
    [
        format!("/console/explain/{push}"),
        format!("/console/explain/{}", made.id.uuid()),
        format!("/console/explain/{}", made.event),
        format!(
            "/console/dead-letters/{}",
            letters["items"][0]["id"].as_str().unwrap()
        ),
    ]
}

#[testkit::test]
async fn a_story_shows_the_codes_and_parameters_that_the_api_gives(rig: &Rig) {
    let push = PushRow::in_state(PushState::Failed).make(&rig.it.pool).await;
    let told = rig.see(&format!("/explain/{}", push.id.uuid())).await;
    let viewer = Browser::of(rig, Role::Viewer).await;
    let page = viewer.see(&format!("/console/explain/{}", push.id.uuid())).await;
    holds(
        &page,
        &[
            "<summary>Codes and parameters</summary>",
            ">Headline<",
            "platform ",
        ],
    );
    let lines = told["story"].as_array().unwrap().iter().map(|line| &line["code"]);
    for code in [&told["headlineCode"], &told["next"]["code"]]
        .into_iter()
        .chain(lines)
    {
        holds(&page, &[&format!(">{}</td>", code.as_str().unwrap())]);
    }
}

#[testkit::test]
async fn the_trace_of_a_story_can_be_copied(rig: &Rig) {
    let viewer = Browser::of(rig, Role::Viewer).await;
    for page in traced(rig).await {
        let copied = format!("<span class=\"mono\">{TRACE}</span> <button class=\"copy script\"");
        holds(&viewer.see(&page).await, &["<dt>Trace</dt>", &copied]);
    }
    let untraced = PushRow::in_state(PushState::Pending).make(&rig.it.pool).await;
    let page = format!("/console/explain/{}", untraced.id.uuid());
    assert!(!viewer.see(&page).await.contains("<dt>Trace</dt>"));
}

#[testkit::test]
async fn the_trace_of_a_story_is_linked_to_where_traces_are(pool: PgPool) {
    let address = "https://traces.example/?id={trace}";
    let rig = Rig::with(pool, |config| {
        config.operator.trace_url = Some(address.to_owned())
    })
    .await;
    let viewer = Browser::of(&rig, Role::Viewer).await;
    for page in traced(&rig).await {
        let link = format!("href=\"https://traces.example/?id={TRACE}\">{TRACE}</a>");
        holds(
            &viewer.see(&page).await,
            &[&link, &format!("data-copy=\"{TRACE}\"")],
        );
    }
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
            &format!("data-copy=\"postrider cancel notification {id} --yes --note &#39;…&#39;\""),
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
    holds(&conflict, &["was cancelled before, at ", " by "]);
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
