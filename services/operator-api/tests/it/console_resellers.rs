//! The pages of resellers and subscriptions on the console.

use chrono::TimeDelta;
use domain::key::Role;
use domain::notification::NotificationState;
use domain::subscription::SubscriptionState;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::console::{Browser, HOSTILE, entries, holds, shows_hostile};
use crate::rig::Rig;

#[testkit::test]
async fn resellers_are_searched_and_those_in_trouble_come_first(rig: &Rig) {
    let browser = Browser::of(rig, Role::Viewer).await;
    let empty = browser.see("/console/resellers").await;
    holds(
        &empty,
        &["No reseller has a subscription", "postrider keys create"],
    );
    let healthy = SubscriptionRow::active().make(&rig.it.pool).await;
    let degraded = SubscriptionRow::in_state(SubscriptionState::Degraded)
        .reseller("beta & sons")
        .url("https://hooks.beta.example/in");
    let degraded = degraded.make(&rig.it.pool).await;

    let page = browser.see("/console/resellers").await;
    holds(
        &page,
        &[
            "1 subscription is",
            "/console/resellers/beta%20%26%20sons",
            "/console/resellers/acme",
            "data-live=\"5000\"",
        ],
    );
    assert!(page.find("In trouble</h2>").unwrap() < page.find("Resellers with subscriptions").unwrap());
    for query in [
        "state=trouble",
        "state=DEGRADED",
        "text=beta",
        "text=beta%20%26%20sons",
        "failing=false&state=DEGRADED",
    ] {
        let page = browser.see(&format!("/console/resellers?{query}")).await;
        if query.starts_with("failing") {
            continue;
        }
        assert!(
            page.contains(&degraded.to_string()) && !page.contains(&healthy.to_string()),
            "{query}: {page}"
        );
    }
    let named = browser.see("/console/resellers?text=BET").await;
    holds(
        &named,
        &["whose names begin so", "/console/resellers/beta%20%26%20sons"],
    );
    let whole = browser.see("/console/resellers?text=acme").await;
    assert!(!whole.contains("names begin so"), "it is no other one: {whole}");
    let page = browser.see("/console/resellers?state=trouble&paused=true").await;
    holds(
        &page,
        &[&degraded.to_string(), "that filter leaves none of them out"],
    );
    let none = browser
        .see(&format!("/console/resellers?text={}", "%3Cscript%3E"))
        .await;
    holds(&none, &["No subscription matches", "&#60;script&#62;"]);
    let answer = browser.get(&format!("/console/resellers?text={healthy}")).await;
    assert_eq!(
        answer.header("location"),
        format!("/console/subscriptions/{healthy}")
    );
    assert_eq!(browser.get("/console/resellers?state=LOST").await.status, 400);
    let undecodable = browser.get("/console/resellers/%ff").await;
    assert!(
        undecodable.status == 404 && undecodable.html.contains("reference <code>"),
        "{}",
        undecodable.html
    );
    let missing = browser.get("/console/resellers/unknown").await;
    assert_eq!(missing.status, 404);
    let (_, reference) = missing.html.split_once("reference <code>").unwrap();
    let reference = reference.split('<').next().unwrap();
    assert!(reference.len() >= 16 && reference.bytes().all(|it| it.is_ascii_hexdigit()));
    assert_eq!(
        browser
            .get(&format!("/console/subscriptions/{}", Uuid::nil()))
            .await
            .status,
        404
    );
}

#[testkit::test]
async fn a_subscription_says_why_it_is_as_it_is_and_what_waits_for_what(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    let id = SubscriptionRow::active().daily_quota(7).make(&rig.it.pool).await;
    for state in [
        NotificationState::Scheduled,
        NotificationState::Retry,
        NotificationState::Retry,
    ] {
        NotificationRow::in_state(state, id).make(&rig.it.pool).await;
    }
    sqlx::query("UPDATE subscriptions SET description = $2, failing_since = $3 WHERE id = $1")
        .bind(id)
        .bind(HOSTILE)
        .bind(rig.now() - TimeDelta::hours(2))
        .execute(&rig.it.pool)
        .await
        .unwrap();
    // Its quota was lowered since.
    sqlx::query(
        "INSERT INTO subscription_budgets (subscription_id, day, used, quota) VALUES ($1, $2, 12, 5000)
         ON CONFLICT (subscription_id) DO UPDATE SET day = excluded.day, used = 12, quota = 5000",
    )
    .bind(id)
    .bind(rig.now().date_naive())
    .execute(&rig.it.pool)
    .await
    .unwrap();
    let page = browser.see(&format!("/console/subscriptions/{id}")).await;
    shows_hostile(&page);
    holds(
        &page,
        &[
            "every attempt since its last success has failed",
            "The first failed attempt since its last success was <time",
            "<dt>2</dt><dd>for another attempt after a failed one</dd>",
            "<dt>A day</dt><dd>7</dd>",
            "<dt>Used today</dt><dd>12, 100 %",
            "https://acme.example/hook",
            "/console/explain/",
            &format!("/console/audit?subject=subscription/{id}"),
        ],
    );
    assert!(!page.contains("href=\"https://"), "an endpoint is a link: {page}");
    let page = browser.see("/console/resellers/acme").await;
    holds(&page, &["1 subscription, 1 failing", &id.to_string()]);
}

#[testkit::test]
async fn what_its_reseller_has_paused_is_not_said_to_be_paused_by_an_operator(rig: &Rig) {
    let id = SubscriptionRow::active().paused().make(&rig.it.pool).await;
    let browser = Browser::with_key(rig, &rig.key).await;
    let place = format!("/console/subscriptions/{id}");
    let page = browser.see(&place).await;
    holds(
        &page,
        &[
            "Its reseller has paused it: what comes is stored and waits.",
            "only the reseller can end that",
            &format!("{place}/pause"),
        ],
    );
    assert!(!page.contains(&format!("{place}/resume")), "{page}");
    let resume = browser.see(&format!("{place}/resume")).await;
    holds(&resume, &["How many notifications wait for it is not known."]);
}

#[testkit::test]
async fn a_subscription_and_a_reseller_are_paused_and_resumed_with_a_note(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    let id = SubscriptionRow::active().reseller("a b").make(&rig.it.pool).await;
    NotificationRow::in_state(NotificationState::Pending, id)
        .make(&rig.it.pool)
        .await;
    let (subscription, reseller) = (format!("/console/subscriptions/{id}"), "/console/resellers/a%20b");
    for (place, number) in [
        (subscription.as_str(), "1 subscription is paused: "),
        (
            reseller,
            "1 subscription of a b is paused, and those that it makes meanwhile.",
        ),
    ] {
        let pause = format!("{place}/pause");
        holds(
            &browser.see(&pause).await,
            &["what comes is stored and waits", "Back", "required", number],
        );
        let page = browser.refused(&pause, &[("note", " ")], 422).await;
        holds(&page, &["aria-invalid", "say why"]);
        let long = "x".repeat(2_001);
        let page = browser.refused(&pause, &[("note", &long)], 422).await;
        holds(&page, &[&long]);
        let (to, page) = browser.act(&pause, &[("note", HOSTILE), ("until", "4")]).await;
        assert_eq!(to, place);
        shows_hostile(&page);
        holds(
            &page,
            &["is paused. What comes is stored", ", until <time", "Resume…"],
        );
        let (_, page) = browser.act(&pause, &[("note", "again")]).await;
        holds(
            &page,
            &[
                "class=\"flash warn\"",
                "was paused before",
                "the new note and end were ignored",
            ],
        );
        let waits = ["1 notification waits for it now."];
        holds(&browser.see(&format!("{place}/resume")).await, &waits);
        holds(&browser.see(place).await, &waits);
    }
    let pauses = browser.see("/console/pauses").await;
    shows_hostile(&pauses);
    holds(
        &pauses,
        &[
            "2 pauses are in force",
            "/console/audit?action=lane.pause,reseller.pause,subscription.pause",
            &format!("{subscription}/resume"),
            &format!("{reseller}/resume"),
        ],
    );

    let (_, page) = browser.act(&format!("{subscription}/resume"), &[]).await;
    holds(&page, &["it does not go on yet", "all of reseller a b is paused"]);
    let (_, page) = browser
        .act(&format!("{reseller}/resume"), &[("note", "mended")])
        .await;
    holds(&page, &["a b goes on"]);
    holds(&browser.see("/console/pauses").await, &["Nothing is paused"]);
    let notes: Vec<_> = entries(rig, "reseller")
        .await
        .iter()
        .map(|it| it["note"].clone())
        .collect();
    assert_eq!(notes, ["mended", HOSTILE]);
    assert_eq!(entries(rig, "subscription.pause").await.len(), 1);
}

#[testkit::test]
async fn those_who_may_only_look_see_why_an_act_is_closed_to_them(rig: &Rig) {
    let viewer = Browser::of(rig, Role::Viewer).await;
    let id = SubscriptionRow::active().make(&rig.it.pool).await;
    for page in [
        &format!("/console/subscriptions/{id}"),
        "/console/resellers/acme",
        "/console/system",
        "/console/mails",
    ] {
        holds(&viewer.see(page).await, &["needs the role operator", " disabled"]);
    }
    for act in [
        &format!("/console/subscriptions/{id}/pause"),
        "/console/resellers/acme/pause",
        "/console/resellers/acme/resume",
        "/console/resellers/acme/dashboard",
        "/console/system/rescue",
        "/console/system/rebuild",
        "/console/mails/retry",
    ] {
        holds(&viewer.see(act).await, &[" disabled", "needs the role operator"]);
        holds(&viewer.refused(act, &[("note", "why")], 403).await, &["operator"]);
    }
    assert!(rig.see("/pauses").await["items"].as_array().unwrap().is_empty());
}
