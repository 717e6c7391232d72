//! The pages: what they show, what their forms do, and what they keep.

use chrono::{DateTime, TimeDelta, Utc};
use domain::notification::NotificationState;
use reseller_portal::pages;
use serde_json::{Value, json};
use sqlx::PgPool;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::app::{ALL, Browser, HOSTILE, entered};
use crate::portal::Portal;

/// A subscription of acme's with a notification that was delivered and one that was given up.
async fn furnished(portal: &Portal) -> (Uuid, Uuid) {
    let subscription = SubscriptionRow::active().make(&portal.pool).await;
    portal
        .done("POST", &format!("/subscriptions/{subscription}/secrets"), 201)
        .await;
    let delivered = NotificationRow::in_state(NotificationState::Sent, subscription)
        .make(&portal.pool)
        .await;
    NotificationRow::in_state(NotificationState::GivenUp, subscription)
        .make(&portal.pool)
        .await;
    (subscription, delivered.id.uuid())
}

fn filled(path: &str, subscription: Uuid, notification: Uuid) -> String {
    let id = if path.starts_with("/app/n/") {
        notification
    } else {
        subscription
    };
    let path = path
        .replace("{id}", &id.to_string())
        .replace("{name}", "domain.created");
    // What else a path names belongs to the subscription.
    let nothing = Uuid::now_v7().to_string();
    let parts = path.split('/').map(|part| {
        if part.starts_with('{') {
            nothing.as_str()
        } else {
            part
        }
    });
    parts.collect::<Vec<_>>().join("/")
}

/// Everything of acme's that a page could change.
async fn everything(pool: &PgPool) -> Vec<String> {
    sqlx::query_scalar(
        "SELECT t::text FROM subscriptions t WHERE reseller_id = 'acme'
         UNION ALL SELECT t::text FROM signing_secrets t
         UNION ALL SELECT t::text FROM quota_requests t WHERE reseller_id = 'acme'
         UNION ALL SELECT t::text FROM replays t WHERE reseller_id = 'acme'
         UNION ALL SELECT t::text FROM notifications t WHERE reseller_id = 'acme'
         ORDER BY 1",
    )
    .fetch_all(pool)
    .await
    .unwrap()
}

#[testkit::test]
async fn a_visit_without_capabilities_looks_at_every_page_and_changes_nothing(portal: Portal) {
    let (subscription, notification) = furnished(&portal).await;
    let looking = entered(&portal, &[]).await;
    let before = everything(&portal.pool).await;
    for (method, path) in pages() {
        let filled = filled(path, subscription, notification);
        if method == "POST" {
            let answer = looking.post(&filled, &[("id", &notification.to_string())]).await;
            let status = match path {
                // A signature is checked by all who may look; nothing comes of it.
                "/app/tools/signature" => 422,
                // What a viewer prefers is kept in its browser.
                "/app/preferences" => 303,
                _ => 403,
            };
            assert_eq!(answer.status, status, "{path}: {}", answer.html);
        } else if path.matches('{').count() < 2 && path != "/app/n/{id}/body" {
            looking.see(&filled).await;
        }
    }
    assert_eq!(everything(&portal.pool).await, before, "nothing was touched");
    let page = looking.see(&format!("/app/n/{notification}")).await;
    assert!(page.contains("without bodies"), "{page}");
    assert_eq!(
        looking.get(&format!("/app/n/{notification}/body")).await.status,
        403
    );
}

#[testkit::test]
async fn pages_without_a_visit_lead_to_how_one_is_had(portal: Portal) {
    let (subscription, notification) = furnished(&portal).await;
    let visitor = Browser::new(&portal);
    for (method, path) in pages() {
        let filled = filled(path, subscription, notification);
        let answer = match method {
            "GET" => visitor.get(&filled).await,
            _ => visitor.post(&filled, &[]).await,
        };
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, "/app/expired"),
            "{path}"
        );
    }
}

#[testkit::test]
async fn what_the_policy_kept_a_page_from_can_be_reported_without_a_visit(portal: Portal) {
    let visitor = Browser::new(&portal);
    let page = visitor.get("/app/expired").await;
    let policy = page.header("content-security-policy");
    assert!(policy.ends_with("report-uri /app/policy-violations"), "{policy}");
    let report = json!({"csp-report": {"effective-directive": "script-src", "blocked-uri": "inline"}});
    for (report, status) in [(report, 204), (json!({}), 400)] {
        let request = visitor.request("POST", "/app/policy-violations");
        let request = request.header("content-type", "application/csp-report");
        assert_eq!(
            visitor.send(request.body(report.to_string())).await.status,
            status
        );
    }
}

#[testkit::test]
async fn the_first_subscription_is_made_in_three_steps(portal: Portal) {
    let browser = entered(&portal, &ALL).await;
    let empty = browser.see("/app").await;
    assert!(empty.contains("Three steps"), "{empty}");
    let form = browser.see("/app/subscriptions/new").await;
    assert!(
        form.contains("domain.created") && form.contains("domain.*"),
        "{form}"
    );

    let typed = [
        ("url", "http://10.0.0.1/<b>"),
        ("eventTypes", "domain.created"),
        ("email", "no address"),
        ("description", HOSTILE),
        ("timeoutMillis", "soon"),
    ];
    let refused = browser.refused("/app/subscriptions/new", &typed, 422).await;
    for kept in ["http://10.0.0.1/&#60;b&#62;", "no address", r#"value="soon""#] {
        assert!(refused.contains(kept), "{kept}: {refused}");
    }
    assert!(refused.contains(r#"value="domain.created" checked"#), "{refused}");
    assert!(!refused.contains("<script>alert"), "{refused}");
    for field in ["url-error", "email-error", "timeout-error"] {
        assert!(
            refused.contains(&format!(r#"id="{field}""#)),
            "{field}: {refused}"
        );
    }

    let right = [
        ("url", "https://reseller.example/hooks"),
        ("eventTypes", "domain.*"),
        ("email", "ops@reseller.example"),
        ("description", HOSTILE),
    ];
    let made = browser.post("/app/subscriptions/new", &right).await;
    assert_eq!(made.status, 200, "{}", made.html);
    assert!(
        made.html.contains("whsec_") && made.html.contains("I have stored it"),
        "{}",
        made.html
    );
    let list = portal.see("/subscriptions").await;
    let id = list["items"][0]["id"].as_str().unwrap();
    assert_eq!(list["items"][0]["verification"]["nextAttemptAt"], json!(null));
    let verify = format!("/app/s/{id}/verify");
    assert!(!browser.see(&verify).await.contains("whsec_"));
    let (to, page) = browser.act(&verify, &[]).await;
    assert_eq!(to, verify);
    assert!(page.contains("is challenged"), "{page}");
    let overview = browser.see("/app").await;
    assert!(
        overview.contains("reseller.example") && overview.contains("Not verified: the endpoint"),
        "{overview}"
    );
}

#[testkit::test]
async fn settings_are_saved_and_those_of_another_meanwhile_are_not_lost(portal: Portal) {
    let (subscription, _) = furnished(&portal).await;
    let browser = entered(&portal, &["manage"]).await;
    let path = format!("/app/s/{subscription}/settings");
    let page = browser.see(&path).await;
    let before = page.split(r#"name="before" value=""#).nth(1).unwrap();
    let before = before.split('"').next().unwrap();
    let now = portal.see(&format!("/subscriptions/{subscription}")).await;
    let timeout = now["timeoutMillis"].to_string();
    let form = |description: &str, before: &str| {
        vec![
            ("before".to_owned(), before.to_owned()),
            ("url".to_owned(), now["url"].as_str().unwrap().to_owned()),
            (
                "eventTypes".to_owned(),
                now["eventTypes"][0].as_str().unwrap().to_owned(),
            ),
            ("email".to_owned(), now["email"].as_str().unwrap().to_owned()),
            ("description".to_owned(), description.to_owned()),
            ("timeoutMillis".to_owned(), timeout.clone()),
            ("retryPlan".to_owned(), "DAY".to_owned()),
        ]
    };
    let send = async |fields: &[(String, String)]| {
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        browser.post(&path, &fields).await
    };
    let saved = send(&form("First", before)).await;
    assert_eq!(saved.status, 303, "{}", saved.html);
    let late = send(&form("Second", before)).await;
    assert_eq!(late.status, 422, "{}", late.html);
    assert!(late.html.contains("was changed meanwhile") && late.html.contains(r#"value="Second""#));
    let both = "Now its description is &#34;First&#34;. What you typed stands below";
    assert!(late.html.contains(both), "{}", late.html);
    let found = portal.see(&format!("/subscriptions/{subscription}")).await;
    assert_eq!(
        (&found["description"], &found["retryPlan"]),
        (&json!("First"), &json!("DAY"))
    );
    assert_eq!(found["state"], "ACTIVE", "the same endpoint is not challenged");
}

#[testkit::test]
async fn a_subscription_is_paused_resumed_deactivated_and_deleted(portal: Portal) {
    let (subscription, notification) = furnished(&portal).await;
    let browser = entered(&portal, &["manage"]).await;
    let at = |part: &str| format!("/app/s/{subscription}/{part}");
    let (to, page) = browser.act(&at("pause"), &[("back", "/app")]).await;
    assert_eq!(to, "/app");
    assert!(page.contains("You paused it"), "{page}");
    browser.act(&at("resume"), &[("back", "//evil.example")]).await;
    assert!(
        browser
            .see(&at("deactivate"))
            .await
            .contains("Nothing more is sent")
    );
    let (_, page) = browser.act(&at("deactivate"), &[]).await;
    assert!(
        page.contains("Deactivated") && page.contains("Activate"),
        "{page}"
    );
    let states = page
        .split_once("States so far")
        .expect("the states of the past")
        .1;
    assert!(
        states.contains("; paused by you") && states.contains("one of you did it"),
        "{states}"
    );
    let mails = browser.see("/app/activity/mails").await;
    assert!(mails.contains(r#"<span class="muted small">Due "#), "{mails}");
    let refused = browser.refused(&at("delete"), &[("name", "another")], 422).await;
    assert!(refused.contains(r#"value="another""#), "{refused}");
    let url = portal.see(&format!("/subscriptions/{subscription}")).await["url"].clone();
    let host = url.as_str().unwrap().split('/').nth(2).unwrap().to_owned();
    let (to, page) = browser.act(&at("delete"), &[("name", &host)]).await;
    assert_eq!(to, "/app");
    assert!(page.contains("is deleted"), "{page}");
    assert_eq!(browser.get(&at("settings")).await.status, 404);
    // As was said before.
    for path in [
        format!("/notifications/{notification}"),
        format!("/subscriptions/{subscription}/states"),
    ] {
        portal.refused("GET", &path, None, (404, "not-found")).await;
    }
}

#[testkit::test]
async fn deliveries_are_listed_found_and_sent_again(portal: Portal) {
    let (subscription, notification) = furnished(&portal).await;
    let browser = entered(&portal, &["bodies", "resend"]).await;
    for list in [
        "/app/deliveries".to_owned(),
        format!("/app/s/{subscription}/deliveries"),
    ] {
        let page = browser.see(&list).await;
        assert!(
            page.contains(&format!("/app/n/{notification}")) && page.contains("Given up"),
            "{page}"
        );
        let failed = browser.see(&format!("{list}?status=FAILED,GIVEN_UP")).await;
        assert!(!failed.contains(&format!("/app/n/{notification}")), "{failed}");
        assert!(page.contains(r#"data-label="Waited""#), "{page}");
        // A range is dragged over bars of three hours.
        let (_, chart) = page.split_once(r#"<div data-range=""#).unwrap();
        let (begins, chart) = chart.split_once(r#"" data-bar="10800" data-bars=""#).unwrap();
        let bars: i64 = chart.split_once('"').unwrap().0.parse().unwrap();
        let begins: DateTime<Utc> = begins.parse().unwrap();
        let end = begins + TimeDelta::hours(3 * bars);
        assert!(
            (portal.now()..=portal.now() + TimeDelta::hours(3)).contains(&end),
            "{page}"
        );
        // The seven days of the chart, with what it is filtered by otherwise.
        let (_, days) = failed.split_once(r#"aria-label="Days">"#).unwrap();
        let days = days.split_once("</nav>").unwrap().0;
        assert_eq!(days.matches("status=FAILED%2CGIVEN_UP").count(), 7, "{days}");
        let today = days.rsplit_once("href=\"").unwrap().1.split_once('"').unwrap().0;
        assert!(
            browser
                .see(&today.replace("&#38;", "&"))
                .await
                .contains("Given up")
        );
        assert_eq!(
            browser
                .get(&format!("{list}?status=&hours="))
                .await
                .header("location"),
            list
        );
    }
    let found = browser.get(&format!("/app/deliveries?q={notification}")).await;
    assert_eq!(found.header("location"), format!("/app/n/{notification}"));
    let none = browser.see("/app/deliveries?q=%3Cscript%3E").await;
    assert!(
        none.contains("No notification has this id") && !none.contains("<script>\""),
        "{none}"
    );
    assert!(
        none.contains("href=\"/app/deliveries?value=%3Cscript%3E\">Look for it"),
        "{none}"
    );
    let page = browser.see(&format!("/app/n/{notification}")).await;
    assert!(
        page.contains("Delivered: the endpoint took it at attempt 1."),
        "{page}"
    );
    let (to, page) = browser
        .act("/app/deliveries/resend", &[("id", &notification.to_string())])
        .await;
    assert_eq!(to, "/app/deliveries");
    assert!(page.contains("1 notification is sent again"), "{page}");
    browser.refused("/app/deliveries/resend", &[], 422).await;
}

#[testkit::test]
async fn all_that_match_are_counted_and_then_sent_again(portal: Portal) {
    let (subscription, notification) = furnished(&portal).await;
    let browser = entered(&portal, &["resend"]).await;
    let list = format!("/app/s/{subscription}/deliveries");
    let page = browser.see(&format!("{list}?status=SENT&hours=24")).await;
    let again = format!("/app/s/{subscription}/resend");
    assert!(
        page.contains(&format!("{again}?status=SENT&#38;hours=24")),
        "{page}"
    );
    let form = browser.see(&format!("{again}?status=SENT&hours=24")).await;
    assert!(
        form.contains(r#"value="SENT" checked"#) && form.contains(r#"value="24""#),
        "{form}"
    );
    let failed = browser.see(&format!("{list}?code=5xx")).await;
    assert!(
        !failed.contains(&notification.to_string()) && failed.contains(r#"value="5xx""#),
        "{failed}"
    );
    let delivered = browser.see(&format!("{list}?code=2xx")).await;
    assert!(
        delivered.contains(&notification.to_string()) && delivered.contains(&format!("{again}?code=2xx")),
        "{delivered}"
    );
    let counted = browser.post(&again, &[("code", "2xx"), ("count", "on")]).await;
    assert!(counted.html.contains("Send 1 again"), "{}", counted.html);
    let typed = [("status", "SENT"), ("code", "no"), ("perSecond", "0")];
    let refused = browser.refused(&again, &typed, 422).await;
    assert!(
        refused.contains(r#"value="no""#)
            && refused.contains("or a class such as 5xx")
            && refused.contains(r#"id="perSecond-error""#),
        "{refused}"
    );
    let before = everything(&portal.pool).await;
    let counted = browser.post(&again, &[("status", "SENT"), ("count", "on")]).await;
    assert!(
        counted.status == 200 && counted.html.contains("Send 1 again"),
        "{}",
        counted.html
    );
    assert_eq!(everything(&portal.pool).await, before, "counting changes nothing");
    assert!(
        counted.html.contains(r#"name="counted" value="1""#),
        "{}",
        counted.html
    );
    for shown in [None, Some("2")] {
        let mut typed = vec![("status", "SENT")];
        typed.extend(shown.map(|shown| ("counted", shown)));
        let refused = browser.refused(&again, &typed, 422).await;
        assert!(
            refused.contains("1 match now") && refused.contains("Send 1 again"),
            "{refused}"
        );
    }
    assert_eq!(
        everything(&portal.pool).await,
        before,
        "another number than was shown is not sent"
    );
    let (to, page) = browser.act(&again, &[("status", "SENT"), ("counted", "1")]).await;
    assert_eq!(to, list);
    assert!(page.contains("1 are sent again"), "{page}");
    let found = portal.see(&format!("/notifications/{notification}")).await;
    assert_ne!(found["status"], "SENT", "{found}");
}

#[testkit::test]
async fn all_that_match_of_all_subscriptions_are_counted_and_then_sent_again(portal: Portal) {
    let (_, notification) = furnished(&portal).await;
    let browser = entered(&portal, &["resend"]).await;
    let list = browser.see("/app/deliveries?status=SENT").await;
    assert!(list.contains("/app/resend?status=SENT"), "{list}");
    let form = browser.see("/app/resend?status=SENT").await;
    assert!(
        form.contains("All subscriptions") && form.contains(r#"value="SENT" checked"#),
        "{form}"
    );
    let before = everything(&portal.pool).await;
    let counted = browser
        .post("/app/resend", &[("status", "SENT"), ("count", "on")])
        .await;
    assert!(
        counted.status == 200 && counted.html.contains("Send 1 again"),
        "{}",
        counted.html
    );
    browser
        .refused("/app/resend", &[("status", "SENT"), ("counted", "2")], 422)
        .await;
    assert_eq!(everything(&portal.pool).await, before, "counting changes nothing");
    let (to, page) = browser
        .act("/app/resend", &[("status", "SENT"), ("counted", "1")])
        .await;
    assert_eq!(to, "/app/deliveries");
    assert!(page.contains("1 are sent again"), "{page}");
    let found = portal.see(&format!("/notifications/{notification}")).await;
    assert_ne!(found["status"], "SENT", "{found}");
    let stranger = crate::app::entered_by(&portal, &portal.key_of("stranger").await, &["resend"]).await;
    let none = stranger
        .refused("/app/resend", &[("status", "SENT"), ("count", "on")], 422)
        .await;
    assert!(none.contains("nothing is sent to any of yours now"), "{none}");
}

#[testkit::test]
async fn a_list_is_taken_home_as_it_is_filtered(portal: Portal) {
    let (subscription, notification) = furnished(&portal).await;
    let browser = entered(&portal, &[]).await;
    for path in ["/app".to_owned(), format!("/app/s/{subscription}")] {
        let all = browser.see(&format!("{path}/deliveries.csv")).await;
        assert_eq!(all.lines().count(), 3, "{all}");
        let sent = browser.see(&format!("{path}/deliveries.csv?status=SENT")).await;
        let row = sent.lines().nth(1).unwrap();
        assert!(row.contains(&notification.to_string()), "{sent}");
        assert_eq!(sent.lines().count(), 2, "{sent}");
    }
}

#[testkit::test]
async fn a_file_that_is_not_all_says_so(portal: Portal) {
    let (_, notification) = furnished(&portal).await;
    sqlx::query(
        "INSERT INTO notifications
         SELECT (jsonb_populate_record(n, jsonb_build_object('id', left(n.id::text, 24) || lpad(to_hex(i), 12, '0')))).*
         FROM notifications n, generate_series(1, 10000) i WHERE n.id = $1",
    )
    .bind(notification)
    .execute(&portal.pool)
    .await
    .unwrap();
    let browser = entered(&portal, &[]).await;
    let file = browser.see("/app/deliveries.csv").await;
    let last = file.lines().last().unwrap();
    assert!(last.contains("This is not all"), "{last}");
    assert_eq!(file.lines().count(), 10_002);
    let file: Value = serde_json::from_str(&browser.see("/app/deliveries.json").await).unwrap();
    assert_eq!(file["items"].as_array().unwrap().len(), 10_000);
    assert!(
        file["next"].is_string() && file["notAll"].is_string(),
        "{}",
        file["next"]
    );
}

#[testkit::test]
async fn what_strangers_wrote_is_no_markup_on_any_page(portal: Portal) {
    let (subscription, notification) = furnished(&portal).await;
    for statement in [
        "UPDATE subscriptions SET description = $1",
        "UPDATE delivery_attempts SET response_body = $1, error = $1",
    ] {
        sqlx::query(statement)
            .bind(HOSTILE)
            .execute(&portal.pool)
            .await
            .unwrap();
    }
    let request = json!({"person": {"id": "u", "name": HOSTILE}, "capabilities": ALL});
    let link = crate::app::link(&portal, &request).await;
    let browser = Browser::new(&portal);
    browser.enter(crate::app::token_of(&link)).await;
    for (method, path) in pages() {
        let is_page = !["/body", ".csv", ".json", "/changes"]
            .iter()
            .any(|end| path.ends_with(end));
        if method == "GET" && path.matches('{').count() < 2 && is_page {
            let page = browser.see(&filled(path, subscription, notification)).await;
            assert!(
                !page.contains("<script>alert") && !page.contains("<img src=x"),
                "{path}: {page}"
            );
            assert!(!page.contains(" style=") && !page.contains(" onclick="), "{path}");
            assert_eq!(page.matches("<h1").count(), 1, "{path}");
        }
    }
}

#[testkit::test]
async fn a_page_that_has_not_changed_is_not_sent_again(portal: Portal) {
    let (subscription, _) = furnished(&portal).await;
    let browser = entered(&portal, &[]).await;
    let path = format!("/app/s/{subscription}/deliveries");
    let tag = browser.get(&path).await.header("etag").to_owned();
    let again = browser.request("GET", &path).header("if-none-match", &tag);
    assert_eq!(browser.send(again).await.status, 304);
}

#[testkit::test]
async fn what_is_in_line_is_listed_for_a_day(portal: Portal) {
    let id = SubscriptionRow::active().daily_quota(1).make(&portal.pool).await;
    for _ in 0..3 {
        let row = NotificationRow::in_state(NotificationState::Scheduled, id);
        row.make(&portal.pool).await;
    }
    let scheduled = format!("/subscriptions/{id}/scheduled");
    let summary = portal.see(&format!("{scheduled}/summary")).await;
    let sums = summary["waiting"].as_array().unwrap();
    let days: Vec<_> = sums.iter().map(|sum| sum["day"].as_str().unwrap()).collect();
    assert_eq!(days.len(), 3, "one a day: {summary}");
    let line = portal.see(&scheduled).await;
    let line = line["items"].as_array().unwrap();
    let (browser, path) = (entered(&portal, &ALL).await, format!("/app/s/{id}/scheduled"));
    let all = browser.see(&path).await;
    for (day, row) in days.iter().zip(line) {
        let link = format!("href=\"{path}?day={day}\"");
        let choice = format!("<option value=\"{day}\">");
        assert!(all.contains(&link) && all.contains(&choice), "{all}");
        let page = browser.see(&format!("{path}?day={day}")).await;
        let row = format!("<tr id=\"n-{}\"", row["id"].as_str().unwrap());
        assert_eq!(page.matches("<tr id=\"n-").count(), 1, "{page}");
        let chosen = format!("<option value=\"{day}\" selected>");
        assert!(page.contains(&row) && page.contains(&chosen), "{page}");
        let cancel = format!("/app/s/{id}/cancel?");
        assert!(!page.contains(&cancel), "they cannot be cancelled by day: {page}");
    }
    let none = browser.see(&format!("{path}?day=2020-01-01")).await;
    assert!(
        none.contains("None is like this.")
            && none.contains("<strong>Day</strong> leaves out all: without it there are 3.")
            && none.contains(&format!(
                "<a class=\"btn small\" href=\"{path}\" aria-label=\"Clear Day\">"
            )),
        "{none}"
    );
    for (query, told) in [
        ("day=tomorrow", "<li><a href=\"#day\">Day "),
        (
            "eventType=domain.*",
            "prefixes such as domain.* are not taken here",
        ),
    ] {
        let wrong = browser.get(&format!("{path}?{query}")).await;
        assert!(wrong.status == 400 && wrong.html.contains(told), "{}", wrong.html);
        assert!(wrong.html.contains("aria-invalid=\"true\""), "{}", wrong.html);
    }
}
