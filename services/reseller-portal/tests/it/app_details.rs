//! Details of the pages: what leads from one to another, and what they say where something is not as usual.

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::NotificationState;
use domain::subscription::SubscriptionState;
use serde_json::Value;
use sqlx::PgPool;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

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
async fn a_list_has_as_many_rows_as_are_chosen(portal: Portal) {
    let subscription = SubscriptionRow::active().make(&portal.pool).await;
    let row = NotificationRow::in_state(NotificationState::Sent, subscription);
    let id = row.make(&portal.pool).await.id.uuid();
    copies(&portal, id, 60).await;
    let browser = entered(&portal, &ALL).await;
    let path = format!("/app/s/{subscription}/deliveries");
    for (limit, rows) in [("", 50), ("?limit=25", 25), ("?limit=100", 61)] {
        let page = browser.see(&format!("{path}{limit}")).await;
        assert_eq!(page.matches("<tr id=\"n-").count(), rows, "{limit}: {page}");
        assert_eq!(
            page.contains("ask your registrar for older ones"),
            rows == 61,
            "{limit}: {page}"
        );
    }
    let page = browser.see(&format!("{path}?limit=30")).await;
    assert!(
        page.contains(r#"<option value="30" selected>30</option>"#),
        "{page}"
    );
    for wrong in ["0", "201", "many"] {
        let answer = browser.get(&format!("{path}?limit={wrong}")).await;
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.html);
    }
    let named = browser.get(&format!("{path}?q={id}")).await;
    assert_eq!(named.header("location"), format!("/app/n/{id}"));
}

/// More notifications like this one.
async fn copies(portal: &Portal, id: Uuid, count: i32) {
    sqlx::query(
        "INSERT INTO notifications
         SELECT (jsonb_populate_record(n, jsonb_build_object('id', left(n.id::text, 24) || lpad(to_hex(i), 12, '0')))).*
         FROM notifications n, generate_series(1, $2) i WHERE n.id = $1",
    )
    .bind(id)
    .bind(count)
    .execute(&portal.pool)
    .await
    .unwrap();
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
async fn a_filter_that_cannot_be_read_keeps_what_was_typed_and_says_why_at_its_field(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let browser = entered(&portal, &ALL).await;
    for (field, typed, label, why) in [
        ("code", "6xx", "Last answer", "or a class such as 5xx"),
        (
            "eventType",
            "domain.creatd",
            "Event type",
            "did you mean domain.created",
        ),
        ("since", "yesterday", "Time", "must be a time such as"),
        ("error", "SLOW", "Last failure", "must be one of HTTP"),
        ("hours", "many", "Time", "must be a whole number"),
    ] {
        for list in ["/app/deliveries".to_owned(), format!("/app/s/{id}/deliveries")] {
            let answer = browser
                .get(&format!("{list}?{field}={typed}&status=FAILED,GIVEN_UP"))
                .await;
            let page = answer.html;
            assert_eq!(answer.status, 400, "{page}");
            let (at, told) = (
                format!("aria-invalid=\"true\" aria-describedby=\"{field}-error\""),
                format!("<li><a href=\"#{field}\">{label} "),
            );
            for part in [
                typed,
                why,
                &at,
                &told,
                "<option value=\"FAILED,GIVEN_UP\" selected>",
            ] {
                assert!(page.contains(part), "{field}, {part}: {page}");
            }
            assert!(!page.contains("data-live="), "{page}");
        }
    }
    for wrong in ["cursor=x", "limit=many", "unheard=x"] {
        let answer = browser.get(&format!("/app/deliveries?{wrong}")).await;
        assert!(
            answer.status == 400 && !answer.html.contains("data-filters"),
            "{}",
            answer.html
        );
    }
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
async fn an_empty_list_names_the_filter_that_leaves_out_most(portal: Portal) {
    let one = SubscriptionRow::active().make(&portal.pool).await;
    let other = SubscriptionRow::active().make(&portal.pool).await;
    let row = NotificationRow::in_state(NotificationState::Sent, one);
    let id = row.make(&portal.pool).await.id.uuid();
    copies(&portal, id, 30).await;
    let row = NotificationRow::in_state(NotificationState::GivenUp, other);
    row.make(&portal.pool).await;
    let browser = entered(&portal, &ALL).await;
    // A page has little patience, so that it may not have tried all.
    let looked_at = async |path: String, said: &str| {
        testkit::eventually(&path, async || {
            let page = browser.see(&path).await;
            page.contains(said).then_some(page)
        })
        .await
    };
    let page = looked_at(
        format!("/app/deliveries?status=FAILED,GIVEN_UP&subscription={one}"),
        "Without <strong>Subscription</strong> there is 1.",
    )
    .await;
    let most = page.find("<strong>Status</strong> leaves out most: without it there are 25 or more.");
    let least = page.find("Without <strong>Subscription</strong> there is 1.");
    assert!(most.is_some() && most < least, "{page}");
    for (cleared, name) in [
        (format!("?subscription={one}"), "Status"),
        ("?status=FAILED%2CGIVEN_UP".to_owned(), "Subscription"),
    ] {
        let clear = format!("href=\"/app/deliveries{cleared}\" aria-label=\"Clear {name}\"");
        assert!(page.contains(&clear), "{clear}: {page}");
    }
    looked_at(
        format!("/app/s/{other}/deliveries?status=SENT&code=404"),
        "None of the 2 filters alone leaves them out.",
    )
    .await;
    let live = browser
        .see(&format!("/app/live?subscription={one}&status=RETRY"))
        .await;
    assert!(
        live.contains("<strong>Status</strong> leaves them out: without it there are 25 or more."),
        "{live}"
    );
    let alone = browser
        .see(&format!("/app/s/{other}/deliveries?eventType=domain.deleted"))
        .await;
    assert!(
        alone.contains("<strong>Event type</strong> leaves out all: without it there is 1."),
        "{alone}"
    );
}

#[testkit::test]
async fn a_page_goes_on_looking_or_says_how_far_it_looked(portal: Portal) {
    let subscription = SubscriptionRow::active().make(&portal.pool).await;
    let row = NotificationRow::in_state(NotificationState::Sent, subscription);
    let id = row.make(&portal.pool).await.id.uuid();
    copies(&portal, id, 10_500).await;
    let browser = entered(&portal, &ALL).await;
    let page = browser
        .see(&format!(
            "/app/s/{subscription}/deliveries?eventType=domain.deleted"
        ))
        .await;
    let (ended, goes_on) = (
        page.contains("No notification is like that"),
        page.contains("Searched back to ") && page.contains("Keep looking"),
    );
    assert!(ended != goes_on, "{page}");
}

#[testkit::test]
async fn a_list_is_taken_home_as_the_api_has_it(portal: Portal) {
    let subscription = SubscriptionRow::active().make(&portal.pool).await;
    for state in [NotificationState::Sent, NotificationState::GivenUp] {
        NotificationRow::in_state(state, subscription)
            .make(&portal.pool)
            .await;
    }
    let browser = entered(&portal, &[]).await;
    for list in [
        "/app/deliveries".to_owned(),
        format!("/app/s/{subscription}/deliveries"),
    ] {
        let page = browser.see(&format!("{list}?status=SENT")).await;
        assert!(page.contains(&format!("{list}.json?status=SENT")), "{page}");
        let answer = browser.get(&format!("{list}.json?status=SENT")).await;
        assert_eq!(answer.header("content-type"), "application/json");
        let file: Value = serde_json::from_str(&answer.html).unwrap();
        let asked = portal.see("/notifications?status=SENT").await;
        assert_eq!(
            (&file["items"], &file["next"], &file["notAll"]),
            (&asked["items"], &Value::Null, &Value::Null)
        );
        assert_eq!(file["items"].as_array().unwrap().len(), 1, "{file}");
    }
}

#[testkit::test]
async fn refusals_are_counted_from_the_moment_at_which_the_secrets_changed(portal: Portal) {
    let id = id_of(&portal.created().await);
    let (browser, path) = (entered(&portal, &ALL).await, format!("/app/s/{id}/secrets"));
    // The first one was answered before, in the same hour.
    for (state, seconds) in [
        (NotificationState::Failed, 1),
        (NotificationState::Failed, 0),
        (NotificationState::Sent, 0),
    ] {
        let at = portal.now() - TimeDelta::seconds(seconds);
        let row = NotificationRow::in_state(state, id).created_at(at);
        row.make(&portal.pool).await;
    }
    sqlx::query("UPDATE delivery_attempts SET response_status = 401 WHERE status = 'ERROR'")
        .execute(&portal.pool)
        .await
        .unwrap();
    let page = browser.see(&path).await;
    let told = "50 % of the attempts since the secrets last changed were answered 401 or 403.";
    assert!(page.contains(told) && page.contains("1 of 2 since"), "{page}");
}

#[testkit::test]
async fn a_sixth_secret_is_not_offered(portal: Portal) {
    let id = id_of(&portal.created().await);
    let (browser, path) = (entered(&portal, &ALL).await, format!("/app/s/{id}/secrets"));
    let (offered, full) = (format!("{path}/rotate"), "5 are valid");
    let page = browser.see(&path).await;
    assert!(page.contains(&offered) && !page.contains(full), "{page}");
    for _ in 0..4 {
        portal
            .done("POST", &format!("/subscriptions/{id}/secrets"), 201)
            .await;
    }
    let page = browser.see(&path).await;
    assert!(page.contains(full) && !page.contains(&offered), "{page}");
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
        (format!("/app/s/{active}/scheduled"), "Cancel all…", "resend"),
        (format!("/app/n/{waiting}"), ">Cancel</button>", "resend"),
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
    assert!(page.contains("can no longer be seen"), "{page}");
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
    let retries = format!("Short: {}, within minutes or hours", offered["retries"]["SHORT"]);
    assert!(page.contains(&retries), "{page}");
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
        r#"value="https://reseller.example/hooks""#,
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let page = browser.see(path).await;
    assert!(page.contains(full) && page.contains(&settings), "{page}");
}

#[testkit::test]
async fn a_list_of_the_last_hours_says_since_when_it_goes_back(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let browser = entered(&portal, &ALL).await;
    for list in ["/app/deliveries".to_owned(), format!("/app/s/{id}/deliveries")] {
        assert!(!browser.see(&list).await.contains("data-since"));
        let before = portal.now();
        let page = browser.see(&format!("{list}?hours=24")).await;
        let (_, rest) = page.split_once(r#"data-since=""#).unwrap();
        let since: DateTime<Utc> = rest.split_once('"').unwrap().0.parse().unwrap();
        let day = TimeDelta::hours(24);
        let minute = TimeDelta::minutes(1);
        assert!(
            (before - day - minute..=portal.now() - day).contains(&since),
            "{since}"
        );
    }
    let page = browser.see("/app").await;
    assert!(page.contains(r#"data-quota-tz="UTC""#), "{page}");
}

#[testkit::test]
async fn an_older_part_of_a_list_leads_back_to_the_newest(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let browser = entered(&portal, &["manage"]).await;
    for act in ["pause", "resume"] {
        browser.act(&format!("/app/s/{id}/{act}"), &[]).await;
    }
    let newest = browser.see("/app/activity?limit=1").await;
    assert!(!newest.contains("Newest first"), "{newest}");
    let (before, _) = newest.split_once(r#"">Older</a>"#).unwrap();
    let older = before.rsplit_once(r#"href=""#).unwrap().1;
    let page = browser.see(&older.replace("&#38;", "&")).await;
    let back = r#"rel="prev" href="/app/activity?limit=1">Newest first"#;
    assert!(page.contains(back), "{page}");
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
async fn who_made_a_subscription_made_its_first_secret(portal: Portal) {
    let id = id_of(&portal.created().await);
    let acts = portal.see("/activity?action=subscription").await;
    let name = acts["items"][0]["name"].as_str().unwrap().to_owned();
    let browser = entered(&portal, &ALL).await;
    let page = browser.see(&format!("/app/s/{id}/secrets")).await;
    let by = format!(r#"data-label="By" class="wrap">{name}<"#);
    assert!(page.contains(&by), "{by}: {page}");
}

#[testkit::test]
async fn a_filter_shows_what_a_link_asked_for(portal: Portal) {
    SubscriptionRow::active().make(&portal.pool).await;
    let browser = entered(&portal, &ALL).await;
    let page = browser
        .see("/app/deliveries?status=RETRY,FAILED,GIVEN_UP&hours=5")
        .await;
    for chosen in [
        r#"<option value="RETRY,FAILED,GIVEN_UP" selected>Retry, Failed, Given up</option>"#,
        r#"<option value="5" selected>5 hours</option>"#,
    ] {
        assert!(page.contains(chosen), "{chosen}: {page}");
    }
    let plain = browser.see("/app/deliveries?status=SENT").await;
    assert!(
        plain.contains(r#"<option value="SENT" selected>Delivered</option>"#),
        "{plain}"
    );
    assert_eq!(plain.matches("<option value=\"SENT\"").count(), 1, "{plain}");
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
