//! Lists: their filters, parts, files, and what one says that is empty.

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::NotificationState;
use serde_json::Value;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::app::{ALL, entered};
use crate::portal::Portal;

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
        // So long ago there is no date.
        ("hours", "4294967295", "Time", "must be between 1 and 168"),
        ("endedHours", "4294967295", "Ended", "must be between 1 and 168"),
        ("endedHours", "many", "Ended", "must be a whole number"),
        ("endedSince", "yesterday", "Ended", "must be a time such as"),
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
    // A page that asks for itself keeps that, and nothing is looked for once more.
    let path = format!("/app/live?subscription={one}&status=RETRY");
    let tick = browser.request("GET", &path).header("x-postrider-tick", "1");
    let again = browser.send(tick).await.html;
    assert!(
        again.contains("id=\"leaving-out\" data-stays") && !again.contains("leaves them out"),
        "{again}"
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
async fn a_list_of_the_last_hours_says_since_when_it_goes_back(portal: Portal) {
    let id = SubscriptionRow::active().make(&portal.pool).await;
    let browser = entered(&portal, &ALL).await;
    for list in ["/app/deliveries".to_owned(), format!("/app/s/{id}/deliveries")] {
        assert!(!browser.see(&list).await.contains("since=\""));
        for (hours, said) in [
            ("hours", " data-since=\""),
            ("endedHours", " data-ended-since=\""),
        ] {
            let before = portal.now();
            let page = browser.see(&format!("{list}?{hours}=24")).await;
            let (_, rest) = page.split_once(said).expect(said);
            let since: DateTime<Utc> = rest.split_once('"').unwrap().0.parse().unwrap();
            let day = TimeDelta::hours(24);
            let minute = TimeDelta::minutes(1);
            assert!(
                (before - day - minute..=portal.now() - day).contains(&since),
                "{since}"
            );
        }
    }
    let page = browser.see("/app").await;
    assert!(page.contains(r#"data-quota-tz="UTC""#), "{page}");
}

#[testkit::test]
async fn deliveries_are_listed_and_sent_again_by_when_they_ended(portal: Portal) {
    let subscription = SubscriptionRow::active().make(&portal.pool).await;
    let row = NotificationRow::in_state(NotificationState::Sent, subscription);
    let notification = row.make(&portal.pool).await.id.uuid();
    let browser = entered(&portal, &["resend"]).await;
    let yesterday = (portal.now() - TimeDelta::hours(24))
        .format("%Y-%m-%dT%H:%M")
        .to_string();
    let list = format!("/app/s/{subscription}/deliveries");
    let again = format!("/app/s/{subscription}/resend");
    let page = browser
        .see(&format!("{list}?endedHours=1&endedSince={yesterday}"))
        .await;
    assert!(
        page.contains(&format!("/app/n/{notification}"))
            && page.contains(r#"<option value="1" selected>The last hour</option>"#)
            && page.contains(&format!(
                "{again}?endedHours=1&#38;endedSince={}",
                yesterday.replace(':', "%3A")
            )),
        "{page}"
    );
    let earlier = browser.see(&format!("{list}?endedUntil={yesterday}")).await;
    assert!(!earlier.contains(&format!("/app/n/{notification}")), "{earlier}");
    let form = browser
        .see(&format!("{again}?endedHours=1&endedSince={yesterday}"))
        .await;
    for kept in [
        r#"name="endedHours" inputmode="numeric" autocomplete="off" value="1""#.to_owned(),
        format!(r#"name="endedSince" type="datetime-local" step="1" value="{yesterday}"#),
    ] {
        assert!(form.contains(&kept), "{kept}: {form}");
    }
    let count = async |field: &str, value: &str| {
        let typed = [("status", "SENT"), (field, value), ("count", "on")];
        browser.post(&again, &typed).await.html
    };
    let counted = count("endedHours", "1").await;
    assert!(counted.contains("Send 1 again"), "{counted}");
    let counted = count("endedUntil", &yesterday).await;
    assert!(counted.contains("Nothing matches"), "{counted}");
    let typed = [("endedHours", "0"), ("endedUntil", "then"), ("count", "on")];
    let refused = browser.refused(&again, &typed, 422).await;
    assert!(
        refused.contains(r#"id="endedHours-error""#) && refused.contains(r#"id="endedUntil-error""#),
        "{refused}"
    );
    // A time that is none restricts nothing unless it is told: it stays, also as a link has brought it.
    let linked = browser.see(&format!("{again}?endedUntil=then")).await;
    for page in [refused, linked] {
        assert!(page.contains(r#"name="endedUntil" value="then""#), "{page}");
    }
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
