//! Details of the pages: what leads from one to another, and what they say where something is not as usual.

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::NotificationState;
use domain::subscription::SubscriptionState;
use serde_json::Value;
use sqlx::PgPool;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::app::{ALL, entered};
use crate::portal::{Portal, id_of};

#[testkit::test]
async fn what_mends_a_challenge_follows_from_how_it_was_answered(portal: Portal) {
    let browser = entered(&portal, &ALL).await;
    for (told, mend) in [
        (engine::webhook::told::ANOTHER_TEXT, "the text of data.challenge"),
        (engine::webhook::told::ANOTHER_STATUS, "knows the secret"),
        (engine::webhook::told::NO_ANSWER, "certificate is valid"),
    ] {
        let id = SubscriptionRow::in_state(SubscriptionState::PendingVerification)
            .make(&portal.pool)
            .await;
        let answered =
            "UPDATE subscriptions SET verification_error = $2, verification_attempts = 1 WHERE id = $1";
        sqlx::query(answered)
            .bind(id)
            .bind(told)
            .execute(&portal.pool)
            .await
            .unwrap();
        let page = browser.see(&format!("/app/s/{id}/verify")).await;
        assert!(page.contains(mend), "{told}: {page}");
    }
}

#[testkit::test]
async fn an_attempt_leads_to_the_check_of_its_signature(portal: Portal) {
    let subscription = SubscriptionRow::active().make(&portal.pool).await;
    SubscriptionRow::active().make(&portal.pool).await;
    let row = NotificationRow::in_state(NotificationState::GivenUp, subscription);
    let id = row.make(&portal.pool).await.id.uuid();
    let browser = entered(&portal, &ALL).await;
    let page = browser.see(&format!("/app/n/{id}?a=1")).await;
    let check = format!("/app/tools/signature?notification={id}");
    assert!(page.contains(&format!("{check}&amp;a=1")), "{page}");
    let found = portal.see(&format!("/notifications/{id}")).await;
    let filled = browser.see(&format!("{check}&a=1")).await;
    for part in [
        format!(r#"<option value="{subscription}" selected>"#),
        "webhook-timestamp: ".to_owned(),
        "webhook-signature: </textarea>".to_owned(),
        body_of(&found),
        r#"value="recorded" checked"#.to_owned(),
    ] {
        assert!(filled.contains(&part), "{part}: {filled}");
    }
    let subscription = subscription.to_string();
    let unsigned = [
        ("subscription", &*subscription),
        (
            "headers",
            "webhook-id: 1\nwebhook-timestamp: 1\nwebhook-signature: ",
        ),
        ("body", "{}"),
    ];
    let asked = browser.refused("/app/tools/signature", &unsigned, 422).await;
    assert!(
        asked.contains("must have the webhook-signature that your endpoint got")
            && !asked.contains("is not accepted"),
        "{asked}"
    );
    let looking = entered(&portal, &[]).await;
    let filled = looking.see(&check).await;
    assert!(filled.contains("webhook-timestamp: ") && !filled.contains(&body_of(&found)));
    assert!(filled.contains("Your link was made without bodies"), "{filled}");
}

fn body_of(found: &Value) -> String {
    found["body"].as_str().unwrap().replace('"', "&#34;")
}

#[testkit::test]
async fn an_attempt_that_is_not_there_is_not_said_to_be_none(portal: Portal) {
    let subscription = SubscriptionRow::active().make(&portal.pool).await;
    let row = NotificationRow::in_state(NotificationState::GivenUp, subscription);
    let id = row.make(&portal.pool).await.id.uuid();
    let browser = entered(&portal, &ALL).await;
    let page = browser.see(&format!("/app/n/{id}?a=99")).await;
    assert!(!page.contains("No attempt was made yet"), "{page}");
}

#[testkit::test]
async fn a_body_is_folded_and_each_attempt_is_reached_from_the_page(portal: Portal) {
    let subscription = SubscriptionRow::active().make(&portal.pool).await;
    let row = NotificationRow::in_state(NotificationState::GivenUp, subscription).attempts(15);
    let id = row.make(&portal.pool).await.id.uuid();
    let browser = entered(&portal, &ALL).await;
    let page = browser.see(&format!("/app/n/{id}")).await;
    for part in [
        "id=\"body\"><details id=\"body-0\" open><summary",
        "<details id=\"older\"><summary>3 older attempts</summary>",
        &format!("<a href=\"/app/n/{id}?a=3\">Attempt 3</a>"),
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let page = browser.see(&format!("/app/n/{id}?a=2")).await;
    for part in [
        "<details id=\"older\" open>",
        "aria-current=\"page\">Attempt 2</a>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[testkit::test]
async fn what_was_missed_while_deactivated_is_a_replay_away(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    portal
        .done("POST", &format!("/subscriptions/{id}/deactivate"), 200)
        .await;
    let states = portal.see(&format!("/subscriptions/{id}/states")).await;
    let off: DateTime<Utc> = states["items"][0]["at"].as_str().unwrap().parse().unwrap();
    let since = (off - TimeDelta::hours(1)).format("%Y-%m-%dT%H:%M").to_string();
    let (verify, activate) = (format!("/app/s/{id}/verify"), format!("/app/s/{id}/activate"));
    let browser = entered(&portal, &ALL).await;
    let page = browser.see(&verify).await;
    assert!(
        page.contains("The subscription is deactivated and gets nothing.") && !page.contains("from now on"),
        "{page}"
    );
    portal.clock.advance(TimeDelta::minutes(1));
    let (to, page) = browser.act(&activate, &[]).await;
    let form = format!("/app/s/{id}/replays/new?since={since}");
    assert!(to.starts_with(&form), "{to}");
    let typed = format!("step=\"1\" required value=\"{since}");
    assert!(
        page.contains("What it missed is not sent by itself") && page.contains(&typed),
        "{page}"
    );
    let page = browser.see(&verify).await;
    assert!(
        page.contains("What came before is not sent") && page.contains(&form),
        "{page}"
    );
    portal
        .done("POST", &format!("/subscriptions/{id}/deactivate"), 200)
        .await;
    portal.clock.advance(TimeDelta::minutes(1));
    let managing = entered(&portal, &["manage"]).await;
    let (to, _) = managing.act(&activate, &[]).await;
    assert_eq!(to, format!("/app/s/{id}/settings"));
}

#[testkit::test]
async fn an_address_that_gets_no_mails_yet_is_told_until_it_is_confirmed(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let set = async |at: &str| {
        let change = format!("UPDATE email_addresses SET confirmed_at = {at} WHERE reseller_id = 'acme'");
        sqlx::query(sqlx::AssertSqlSafe(change))
            .execute(&portal.pool)
            .await
            .unwrap();
    };
    let browser = entered(&portal, &ALL).await;
    for (at, is_told) in [("NULL", true), ("now()", false)] {
        set(at).await;
        for path in ["/app".to_owned(), format!("/app/s/{id}/verify")] {
            let page = browser.see(&path).await;
            assert_eq!(
                page.contains("gets no mails about trouble"),
                is_told,
                "{path}: {page}"
            );
        }
    }
}

#[testkit::test]
async fn what_a_visit_may_not_do_stays_with_the_reason_beside_it(portal: Portal) {
    let unverified = SubscriptionRow::in_state(SubscriptionState::PendingVerification)
        .make(&portal.pool)
        .await;
    let active = SubscriptionRow::active().make(&portal.pool).await;
    let waiting = NotificationRow::in_state(NotificationState::Scheduled, active);
    let waiting = waiting.make(&portal.pool).await.id.uuid();
    let looking = entered(&portal, &[]).await;
    for (path, control, lacks) in [
        (format!("/app/s/{unverified}/verify"), "Challenge", "manage"),
        (format!("/app/s/{active}/scheduled"), "Cancel all…", "manage"),
        (format!("/app/n/{waiting}"), ">Cancel</button>", "manage"),
    ] {
        let page = looking.see(&path).await;
        let why = format!("your link was made without {lacks}</span>");
        assert!(page.contains(control) && page.contains(&why), "{path}: {page}");
    }
}

#[testkit::test]
async fn what_would_be_refused_is_not_offered_and_says_why(portal: Portal) {
    let unverified = SubscriptionRow::in_state(SubscriptionState::PendingVerification)
        .make(&portal.pool)
        .await;
    let ended = NotificationRow::in_state(NotificationState::GivenUp, unverified);
    let ended = ended.make(&portal.pool).await.id;
    let active = SubscriptionRow::active().make(&portal.pool).await;
    let cancelled = NotificationRow::in_state(NotificationState::Cancelled, active);
    let cancelled = cancelled.make(&portal.pool).await.id;
    let failed = NotificationRow::in_state(NotificationState::Failed, active);
    let failed = failed.make(&portal.pool).await.id;
    let browser = entered(&portal, &ALL).await;
    for (path, why) in [
        (
            format!("/app/s/{unverified}/settings"),
            "has not answered a challenge yet",
        ),
        (format!("/app/n/{ended}"), "has not answered a challenge yet"),
        (format!("/app/n/{cancelled}"), "which is final"),
    ] {
        let page = browser.see(&path).await;
        let reason = page.contains("disabled aria-describedby=\"why-") && page.contains(why);
        assert!(reason, "{path}: {page}");
    }
    let page = browser.see(&format!("/app/n/{failed}")).await;
    assert!(!page.contains("why-resend"), "{page}");
    for path in ["/app/live", "/app/event-types/domain.created"] {
        let page = browser.see(path).await;
        assert_eq!(
            page.matches(", which gets nothing now</option>").count(),
            1,
            "{path}: {page}"
        );
    }
}

#[testkit::test]
async fn one_that_waits_is_told_as_one(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let row = NotificationRow::in_state(NotificationState::Scheduled, id);
    row.make(&portal.pool).await;
    let browser = entered(&portal, &ALL).await;
    let page = browser.see(&format!("/app/s/{id}/deactivate")).await;
    assert!(
        page.contains("1 notification that waits in line is given up"),
        "{page}"
    );
    let page = browser.see(&format!("/app/s/{id}/delete")).await;
    assert!(page.contains("1 notification waits in line."), "{page}");
    for said in ["can no longer be seen", "unless it begins at the deletion"] {
        assert!(page.contains(said), "{page}");
    }
}

#[testkit::test]
async fn where_there_is_no_room_the_page_says_which_there_are(pool: PgPool) {
    let portal = Portal::start_with(pool, |config| config.reseller.subscription.maximum = 1).await;
    let browser = entered(&portal, &ALL).await;
    let path = "/app/subscriptions/new";
    let full = "You have 1 subscription, which is as many as there may be.";
    let page = browser.see(path).await;
    assert!(!page.contains(full), "{page}");
    let offered = portal.see("/limits").await;
    let retries = format!("Short: {}, after ", offered["retries"]["SHORT"]);
    let group = "<span>All that begin with <code>domain.*</code></span></label>\n<details><summary>Single ones of <code>domain.*</code>";
    assert!(page.contains(&retries) && page.contains(group), "{page}");
    let id = id_of(&portal.created().await);
    let typed = [
        ("url", "https://reseller.example/hooks"),
        ("eventTypes", "domain.*"),
        ("email", "ops@reseller.example"),
    ];
    let settings = format!("/app/s/{id}/settings");
    let refused = browser.refused(path, &typed, 422).await;
    for part in [
        full,
        &settings,
        "the reseller has 1 ",
        "delete one first",
        r#"value="https://reseller.example/hooks""#,
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let page = browser.see(path).await;
    assert!(page.contains(full) && page.contains(&settings), "{page}");
}

#[testkit::test]
async fn all_that_match_in_a_range_of_time_are_sent_again(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let row = NotificationRow::in_state(NotificationState::Sent, id);
    row.make(&portal.pool).await;
    let browser = entered(&portal, &ALL).await;
    let at = |hours| {
        let at = portal.now() + TimeDelta::hours(hours);
        at.format("%Y-%m-%dT%H:%M").to_string()
    };
    let (early, late) = (at(-2), at(1));
    let list = format!("/app/s/{id}/deliveries?since={early}&until={late}");
    assert!(browser.see(&list).await.contains("Send all again that match"));
    let again = format!("/app/s/{id}/resend");
    let form = browser.see(&format!("{again}?since={early}&until={late}")).await;
    for value in [&early, &late] {
        assert!(form.contains(&format!(r#"value="{value}""#)), "{form}");
    }
    for (since, until, is_found) in [(&early, &late, true), (&at(-5), &at(-3), false)] {
        let typed = [
            ("since", since.as_str()),
            ("until", until.as_str()),
            ("count", "on"),
        ];
        let counted = browser.post(&again, &typed).await;
        assert_eq!(counted.status, 200, "{}", counted.html);
        assert_eq!(
            counted.html.contains("Send 1 again"),
            is_found,
            "{}",
            counted.html
        );
    }
    let all = browser.post(&again, &[("count", "on")]).await;
    assert!(
        all.html.contains("Send 1 again"),
        "no filter is all: {}",
        all.html
    );
    for (wrong, said) in [
        ([("since", "soon"), ("until", "")], "must be a time such as"),
        ([("since", &*late), ("until", &*early)], "must be before until"),
    ] {
        let refused = browser.refused(&again, &wrong, 422).await;
        assert!(
            refused.contains(said) && refused.contains(r#"id="since-error""#),
            "{refused}"
        );
    }
}

#[testkit::test]
async fn a_quota_that_is_nearly_used_leads_to_where_more_is_asked_for(portal: Portal) {
    let id = SubscriptionRow::active().daily_quota(10).make(&portal.pool).await;
    sqlx::query(
        "INSERT INTO subscription_budgets (subscription_id, day, used, quota) VALUES ($1, $2, 8, 10)
         ON CONFLICT (subscription_id) DO UPDATE SET day = excluded.day, used = 8, quota = 10",
    )
    .bind(id)
    .bind(portal.now().date_naive())
    .execute(&portal.pool)
    .await
    .unwrap();
    let page = entered(&portal, &[]).await.see("/app").await;
    let leads = format!(r#"href="/app/s/{id}/quota" aria-label="Quota: "#);
    assert!(page.contains(&leads), "{page}");
}
