//! The pages of the console around deliveries: quota requests, mails, the system, the audit log.

use std::time::Duration;

use chrono::TimeDelta;
use config::Secret;
use domain::clock::{Clock as _, SystemClock};
use domain::key::Role;
use domain::month::Month;
use domain::notification::NotificationState;
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, PgPool};
use store::webhook::{NewQuotaRequest, QuotaRequested};
use store::{Act, Beat};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{FaultProxy, eventually};
use uuid::Uuid;

use crate::console::{Browser, HOSTILE, entries, holds, shows_hostile};
use crate::rig::Rig;

/// A request of `acme` for a quota for which one notification waits; returns its identifier.
async fn requested(rig: &Rig, reason: &str) -> Uuid {
    let subscription = SubscriptionRow::active()
        .daily_quota(100)
        .make(&rig.it.pool)
        .await;
    let waiting = NotificationRow::in_state(NotificationState::Scheduled, subscription);
    waiting.make(&rig.it.pool).await;
    let new = NewQuotaRequest {
        id: Uuid::now_v7(),
        subscription,
        requested: 250,
        asks_daily: true,
        requests_per_second: Some(40),
        reason: reason.to_owned(),
        created_at: rig.now(),
    };
    let act = Act {
        by: "acme",
        note: None,
        at: new.created_at,
    };
    let stored = rig
        .it
        .store
        .insert_quota_request("acme", &new, act)
        .await
        .unwrap();
    assert_eq!(stored, QuotaRequested::Done);
    new.id
}

#[testkit::test]
async fn administrators_decide_quota_requests_and_others_see_them(rig: &Rig) {
    let (first, second) = (requested(rig, HOSTILE).await, requested(rig, "A merger.").await);
    sqlx::query(
        "INSERT INTO quota_days (subscription_id, day, used, quota)
         SELECT subscription_id, ($2::timestamptz AT TIME ZONE 'UTC')::date - days, 90 - days, 100
         FROM quota_requests, generate_series(3, 30) AS days WHERE id = $1",
    )
    .bind(second)
    .bind(rig.now())
    .execute(&rig.it.pool)
    .await
    .unwrap();
    let path = |id: Uuid, verb: &str| format!("/console/quota-requests/{id}/{verb}");
    let operator = Browser::with_key(rig, &rig.key).await;
    let page = operator.see("/console/quota-requests").await;
    shows_hostile(&page);
    holds(
        &page,
        &[
            "A merger.",
            "2.5 times",
            "needs the role admin",
            "87 on the busiest of 28 days",
            "1 on the busiest of 28 days",
            "294 % of all sends",
        ],
    );
    holds(
        &operator.see(&path(first, "approve")).await,
        &[" disabled", "needs the role admin", "100 a day"],
    );
    operator
        .refused(&path(first, "approve"), &[("granted", "5")], 403)
        .await;

    let admin = Browser::of(rig, Role::Admin).await;
    let form = admin.see(&path(second, "approve")).await;
    holds(
        &form,
        &[
            "value=\"250\"",
            "value=\"40\"",
            "A merger.",
            "100 a day",
            "2.5 times what it has; a grant would be 294 % of all sends",
            "87 on the busiest of 28 days",
        ],
    );
    for wrong in ["0", "many"] {
        let fields = [
            ("granted", wrong),
            ("grantedPerSecond", "40"),
            ("note", "for now"),
        ];
        let page = admin.refused(&path(second, "approve"), &fields, 422).await;
        holds(
            &page,
            &[
                &format!("value=\"{wrong}\""),
                ">for now</textarea>",
                "granted-error",
                "href=\"#decide-granted\"",
            ],
        );
    }
    let (to, page) = admin
        .act(
            &path(second, "approve"),
            &[
                ("granted", "200000"),
                ("grantedPerSecond", "30"),
                ("note", "for now"),
            ],
        )
        .await;
    assert_eq!(to, "/console/quota-requests");
    holds(
        &page,
        &["acme may get 200,000 notifications a day, 30 attempts a second now"],
    );
    assert!(!page.contains(&second.to_string()), "it is not open any more");
    let again = admin.refused(&path(first, "deny"), &[("note", "")], 422).await;
    holds(&again, &["Nothing was done", "decide-note-error"]);
    let why = [("note", "no room before Christmas")];
    let (_, page) = admin.act(&path(first, "deny"), &why).await;
    holds(&page, &["is denied", "No quota request is open"]);
    admin.refused(&path(first, "deny"), &why, 409).await;
    holds(&admin.see(&path(first, "deny")).await, &["It is decided already"]);
    holds(
        &admin.see("/console/quota-requests?status=APPROVED").await,
        &["200,000 a day", "for now"],
    );
    let all = admin.see("/console/quota-requests?status=ALL").await;
    holds(&all, &[&first.to_string(), &second.to_string()]);
    assert_eq!(admin.get(&path(Uuid::nil(), "approve")).await.status, 404);
    assert_eq!(entries(rig, "quota-request.approve").await.len(), 1);
}

#[testkit::test]
async fn mails_are_listed_by_status_and_sent_at_once(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    holds(&browser.see("/console/mails").await, &["No mail waits"]);
    let subscription = SubscriptionRow::active().make(&rig.it.pool).await;
    for (status, due, ended) in [("PENDING", Some(600), None), ("FAILED", None, Some(-600))] {
        let at = |seconds: Option<i64>| seconds.map(|seconds| rig.now() + TimeDelta::seconds(seconds));
        sqlx::query(
            "INSERT INTO emails (id, kind, subscription_id, recipient, data, status, attempts, next_attempt_at, last_error, created_at, finished_at)
             VALUES ($1, 'QUOTA_DECIDED', $2, 'ops@acme.example', '{}', $3, 3, $4, $5, $6, $7)",
        )
        .bind(Uuid::new_v4())
        .bind(subscription)
        .bind(status)
        .bind(at(due))
        .bind(HOSTILE)
        .bind(rig.now())
        .bind(at(ended))
        .execute(&rig.it.pool)
        .await
        .unwrap();
    }
    let page = browser
        .see(&format!("/console/mails?subscription={subscription}"))
        .await;
    shows_hostile(&page);
    holds(
        &page,
        &["A quota request was decided", "ops@acme.example", ">in 1"],
    );
    holds(
        &browser.see("/console/mails?status=FAILED").await,
        &["ops@acme.example", "?failed=24"],
    );
    // Pages share a look at the system for a second.
    eventually("the mails to be counted", async || {
        let asked = browser.see("/console/mails/retry").await;
        let number = "1 mail waits or is being sent now, and 1 failed within a day.";
        asked.contains(number).then_some(())
    })
    .await;
    let fields = [("failed", "soon"), ("note", "the server is back")];
    let page = browser.refused("/console/mails/retry", &fields, 422).await;
    holds(&page, &[">the server is back</textarea>", "retry-failed-error"]);
    let (to, page) = browser
        .act(
            "/console/mails/retry",
            &[("failed", "24"), ("note", "the server is back")],
        )
        .await;
    assert_eq!(to, "/console/mails");
    holds(&page, &["2 mails are due now"]);
    let log = entries(rig, "mails.retry").await;
    assert_eq!(
        (log.len(), &log[0]["note"]),
        (1, &Value::from("the server is back"))
    );
}

#[testkit::test]
async fn the_audit_log_is_filtered_and_its_times_are_the_viewers(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    let id = SubscriptionRow::active().make(&rig.it.pool).await;
    browser
        .act(
            &format!("/console/subscriptions/{id}/pause"),
            &[("note", HOSTILE)],
        )
        .await;
    requested(rig, "A merger.").await;
    let page = browser.see("/console/audit").await;
    shows_hostile(&page);
    holds(
        &page,
        &[
            "visit.begin",
            "subscription.pause",
            "<dt>requested</dt><dd>250</dd>",
            &format!("href=\"/console/subscriptions/{id}\""),
        ],
    );
    let pauses = browser.see("/console/audit?action=subscription&actor=test").await;
    assert!(
        pauses.contains("subscription.pause") && !pauses.contains("visit.begin"),
        "{pauses}"
    );
    holds(
        &browser.see("/console/audit?actor=nothing").await,
        &["No entry matches", "Clear all filters"],
    );
    holds(
        &browser.see("/console/audit?action=rescue.start").await,
        &["selected>rescue.start"],
    );

    browser
        .act(
            "/console/preferences",
            &[("tz", "Asia/Kolkata"), ("back", "/console/audit")],
        )
        .await;
    let answer = browser
        .get("/console/audit?actor=test&since=2026-11-23T12%3A00")
        .await;
    let exact = "/console/audit?actor=test&since=2026-11-23T06%3A30%3A00Z";
    assert_eq!((answer.status, answer.header("location")), (303, exact));
    holds(
        &browser.see(exact).await,
        &["value=\"2026-11-23T12:00\"", "Asia/Kolkata"],
    );
    let second = browser.see("/console/audit?since=2026-11-23T06%3A30%3A15Z").await;
    holds(&second, &["value=\"2026-11-23T12:00:15\""]);
    let page = browser.see("/console/audit?reseller=acme&action=visit").await;
    holds(
        &page,
        &[
            "id=\"reseller\" name=\"reseller\" value=\"acme\"",
            "<option value=\"visit\" selected>Visits",
            "postrider audit --action visit --reseller acme</code>",
            "Clear</a>",
        ],
    );
    let page = browser.see("/console/audit").await;
    holds(&page, &["postrider audit --newer-than 1d</code>"]);
    assert_eq!(browser.get("/console/audit?since=yesterday").await.status, 400);
}

#[testkit::test]
async fn lost_ones_are_rescued_and_the_broker_is_rebuilt(rig: &Rig) {
    let browser = Browser::with_key(rig, &rig.key).await;
    let page = eventually(
        "the broker to be connected and the service to report itself",
        async || {
            let page = browser.see("/console/system").await;
            let is_there =
                page.contains("The broker is connected") && page.contains("<td class=\"lead\">operator-api");
            is_there.then_some(page)
        },
    )
    .await;
    holds(&page, &["push.ready", "Partitions", "data-dialog=\"rescue\""]);
    for form in ["rescue", "rebuild"] {
        let asked = browser.see(&format!("/console/system/{form}")).await;
        holds(&asked, &["0 pushes and 0 notifications now"]);
    }
    let (to, page) = browser
        .act("/console/system/rescue", &[("note", "after the crash")])
        .await;
    assert_eq!(to, "/console/system");
    holds(&page, &["Nothing was lost"]);
    let subscription = SubscriptionRow::active().make(&rig.it.pool).await;
    NotificationRow::in_state(NotificationState::Queued, subscription)
        .leased_for(TimeDelta::hours(-1))
        .make(&rig.it.pool)
        .await;
    let (_, page) = browser.act("/console/system/rescue", &[]).await;
    holds(&page, &["1 notification", "wait again"]);
    browser.refused("/console/system/rebuild", &[], 422).await;
    let (_, page) = browser
        .act("/console/system/rebuild", &[("note", "the volume was lost")])
        .await;
    holds(&page, &["content is rebuilt"]);
    let log = entries(rig, "broker.rebuild").await;
    assert_eq!(log[0]["note"], "the volume was lost");
    let page = browser
        .refused("/console/system/rebuild", &[("note", &"x".repeat(2_001))], 422)
        .await;
    holds(&page, &["aria-invalid"]);
}

#[testkit::test]
async fn the_system_is_shown_while_the_database_is_away(pool: PgPool) {
    let url = pool.connect_options().to_url_lossy().to_string();
    let (proxy, through) = FaultProxy::for_url(&url).await;
    let adapt = |config: &mut config::Config| {
        config.database.url = Secret::new(through);
        config.operator.request_timeout = Duration::from_secs(5);
    };
    let rig = &Rig::with(pool, adapt).await;
    let browser = Browser::with_key(rig, &rig.key).await;
    browser.see("/console/system").await;
    proxy.cut();
    let page = eventually("the system to be shown without the database", async || {
        let answer = browser.get("/console/system").await;
        (answer.status == 200 && answer.html.contains("could not be found out")).then_some(answer.html)
    })
    .await;
    holds(
        &page,
        &[
            "Which services run could not be found out",
            "push.ready",
            "Partitions",
        ],
    );
    holds(
        &browser.see("/console").await,
        &["Nor could dead letters, jobs, pauses and subscriptions."],
    );
    let audit = browser.get("/console/audit?actor=ada").await;
    assert_eq!(audit.status, 503);
    holds(
        &audit.html,
        &[
            "href=\"/console/audit?actor=ada\"",
            "Open this page again",
            "Try again in ",
        ],
    );
    let answer = browser.post("/console/sign-out", &[]).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, "/console/sign-in")
    );
    assert!(answer.header("set-cookie").contains("Max-Age=0"), "{answer:?}");
    assert_eq!(
        browser.get("/console/system").await.status,
        303,
        "the browser has forgotten its visit"
    );
    proxy.heal();
}

#[testkit::test]
async fn web_push_says_who_is_connected_where_what_is_stored_and_what_is_out_of_order(rig: &Rig) {
    let browser = Browser::of(rig, Role::Viewer).await;
    let page = browser.see("/console/webpush").await;
    holds(&page, &["No user agent has ever registered here", "webpush.keys"]);
    let store = &rig.it.store;
    let now = SystemClock.now();
    let month = Month::containing(now);
    let (uaid, channel) = (Uuid::new_v4(), Uuid::new_v4());
    let registered = store.webpush_register(uaid, None, now, month, channel, 10);
    registered.await.unwrap();
    // User agents that nothing serves. Pages share a look at the system for a second.
    let page = eventually("the user agent to be counted", async || {
        let page = browser.see("/console/webpush").await;
        page.contains("No connection node runs").then_some(page)
    })
    .await;
    holds(
        &page,
        &[
            "No webpush-connection runs",
            "postrider serve webpush-connection",
            "Runbook: a-process-is-down",
            &format!("id=\"month-{}\"", month.first_day().format("%Y-%m")),
        ],
    );
    let report =
        |connections: u64| json!({"counters": {"webpushDirect": 7}, "webpushConnections": connections});
    for (host, connections) in [("one", 2), (HOSTILE, 1)] {
        let beat = Beat {
            process: Uuid::now_v7(),
            service: "webpush-connection",
            host,
            pid: 1,
            version: "0.1.0",
            uptime: Duration::ZERO,
            state: &report(connections),
        };
        store.beat(beat).await.unwrap();
    }
    // Whichever minute that was in, it is over.
    rig.clock.advance(TimeDelta::minutes(1));
    let page = eventually("the status to be looked at again", async || {
        let page = browser.see("/console/webpush").await;
        page.contains("3 user agents are connected to 2 nodes.")
            .then_some(page)
    })
    .await;
    shows_hostile(&page);
    holds(
        &page,
        &[
            "14 delivered directly",
            "connected, as counted ",
            "postrider history webpush",
            "data-live=\"5000\"",
        ],
    );
    let found = browser.get(&format!("/console/search?q={uaid}")).await;
    assert_eq!(found.header("location"), format!("/console/explain/{uaid}"));
}

#[testkit::test]
async fn access_says_what_a_visitor_may_do(rig: &Rig) {
    for (role, says) in [
        (Role::Viewer, "no, only look"),
        (Role::Operator, "<dd>yes</dd>"),
        (Role::Admin, "decide quota requests"),
    ] {
        let page = Browser::of(rig, role).await.see("/console/access").await;
        holds(
            &page,
            &[
                says,
                "postrider keys create",
                "12 hours at most",
                "/console/audit?actor=test",
            ],
        );
    }
}
