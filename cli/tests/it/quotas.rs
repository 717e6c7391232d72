//! `quotas requests`, `quotas approve`, `quotas deny`, `quotas set`.

use domain::clock::{Clock as _, SystemClock};
use domain::key::Role;
use serde_json::{Value, json};
use sqlx::PgPool;
use store::webhook::NewQuotaRequest;
use store::{Act, Store};
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, key_of_the_house};
use uuid::Uuid;

use crate::postrider::{Finished, postrider};

async fn requested(pool: &PgPool, subscription: Uuid) -> Uuid {
    let new = NewQuotaRequest {
        id: Uuid::now_v7(),
        subscription,
        requested: 500,
        asks_daily: true,
        requests_per_second: None,
        reason: "A merger.".to_owned(),
        created_at: SystemClock.now(),
    };
    let store = Store::from_pool(pool.clone());
    let act = Act {
        by: "acme's key (1)",
        note: None,
        at: new.created_at,
    };
    store
        .insert_quota_request("acme", &new, act)
        .await
        .expect("it is stored");
    new.id
}

async fn limits(pool: &PgPool, subscription: Uuid) -> (Option<i32>, Option<i32>) {
    sqlx::query_as("SELECT daily_quota, requests_per_second FROM subscriptions WHERE id = $1")
        .bind(subscription)
        .fetch_one(pool)
        .await
        .expect("the subscription")
}

fn listed(pool: &PgPool, arguments: &str) -> Vec<Value> {
    let run = postrider(&format!("quotas requests --json {arguments}"))
        .on(pool)
        .run();
    let mut listed: Value = serde_json::from_str(&run.stdout).expect("JSON");
    serde_json::from_value(listed["items"].take()).expect("items")
}

fn succeeds(finished: &Finished) {
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

#[testkit::database_test]
async fn a_request_is_listed_and_approved_once(pool: PgPool) {
    let subscription = SubscriptionRow::active().make(&pool).await;
    let id = requested(&pool, subscription).await;
    let waiting = listed(&pool, "--status REQUESTED");
    assert_eq!(
        (&waiting[0]["id"], &waiting[0]["dailyQuota"]),
        (&id.to_string().into(), &500.into())
    );
    assert_eq!(waiting[0]["present"]["usedToday"], 0, "{waiting:?}");
    let table = postrider("quotas requests").on(&pool).run().stdout;
    assert!(
        table.contains(&id.to_string()) && table.contains("acme"),
        "{table}"
    );

    let approve = format!("quotas approve {id} --granted 400 --note welcome");
    let approved = postrider(&approve).on(&pool).run();
    succeeds(&approved);
    assert!(approved.stdout.contains("400 a day"), "{approved:?}");
    assert_eq!(limits(&pool, subscription).await, (Some(400), None));
    assert_eq!(listed(&pool, "--status REQUESTED"), [] as [Value; 0]);
    let decided = &listed(&pool, "--status APPROVED")[0];
    assert_eq!(decided["note"], "welcome");
    let by = decided["decidedBy"].as_str().unwrap_or_default();
    assert!(by.starts_with("postrider-cli ("), "{by}");
    let details: Value =
        sqlx::query_scalar("SELECT details FROM audit_log WHERE action = 'quota-request.approve'")
            .fetch_one(&pool)
            .await
            .expect("the audit log");
    assert_eq!(details["dailyQuota"], json!({"from": null, "to": 400}));
    let again = postrider(&format!("quotas deny {id} --note no")).on(&pool).run();
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("APPROVED already"), "{again:?}");
}

#[testkit::database_test]
async fn a_request_is_denied_and_changes_nothing(pool: PgPool) {
    let subscription = SubscriptionRow::active().daily_quota(7).make(&pool).await;
    let id = requested(&pool, subscription).await;
    let unsaid = postrider(&format!("quotas deny {id}")).on(&pool).run();
    assert_eq!(
        unsaid.code,
        Some(2),
        "the reseller would not be told why: {unsaid:?}"
    );
    let deny = postrider(&format!("quotas deny {id} --note no")).env("POSTRIDER_ACTOR", "ada");
    succeeds(&deny.on(&pool).run());
    assert_eq!(limits(&pool, subscription).await, (Some(7), None));
    let denied = &listed(&pool, "")[0];
    assert_eq!(denied["status"], "DENIED");
    let by = denied["decidedBy"].as_str().unwrap_or_default();
    assert!(by.starts_with("ada (postrider-cli, "), "{by}");
}

#[testkit::database_test]
async fn limits_are_taken_away_again(pool: PgPool) {
    let subscription = SubscriptionRow::active()
        .daily_quota(9)
        .requests_per_second(3)
        .make(&pool)
        .await;
    let set = |limit: &str| {
        postrider(&format!("quotas set {subscription} {limit}"))
            .on(&pool)
            .run()
    };
    succeeds(&set("--requests-per-second default"));
    assert_eq!(limits(&pool, subscription).await, (Some(9), None));
    succeeds(&set("--requests-per-second 4"));
    succeeds(&set("--default"));
    assert_eq!(limits(&pool, subscription).await, (None, None));
    let details: Value = sqlx::query_scalar("SELECT details FROM audit_log ORDER BY id DESC LIMIT 1")
        .fetch_one(&pool)
        .await
        .expect("the audit log");
    let taken = |from: u32| json!({"from": from, "to": null});
    assert_eq!(
        details,
        json!({"dailyQuota": taken(9), "requestsPerSecond": taken(4)})
    );
}

#[testkit::database_test]
async fn limits_are_set_one_by_one(pool: PgPool) {
    let subscription = SubscriptionRow::active().make(&pool).await;
    let set = |limit: &str| {
        postrider(&format!("quotas set {subscription} {limit} --note merger"))
            .on(&pool)
            .run()
    };
    let first = set("--daily-quota 9");
    let said = format!("daily quota default → 9 for {subscription}\n");
    assert_eq!((first.code, &*first.stdout), (Some(0), &*said), "{first:?}");
    assert_eq!(limits(&pool, subscription).await, (Some(9), None));
    succeeds(&set("--requests-per-second 3"));
    assert_eq!(limits(&pool, subscription).await, (Some(9), Some(3)));
    for wrong in [
        "",
        "--daily-quota 0",
        "--requests-per-second x",
        "--default --daily-quota 9",
    ] {
        assert_eq!(set(wrong).code, Some(2), "{wrong}");
    }
    let unknown = format!("quotas set {} --daily-quota 9", Uuid::nil());
    assert_eq!(postrider(&unknown).on(&pool).run().code, Some(1));
    let log: Vec<(bool, String, String, Value)> =
        sqlx::query_as("SELECT actor ~ '^postrider-cli [(][^@]+@.+[)]$' AND note = 'merger', action, subject, details FROM audit_log ORDER BY id")
            .fetch_all(&pool)
            .await
            .expect("the audit log");
    let entry = |details| {
        let action = "subscription.limits".to_owned();
        (true, action, format!("subscription/{subscription}"), details)
    };
    let change = |to: u32| json!({"from": null, "to": to});
    let set = [
        json!({"dailyQuota": change(9)}),
        json!({"requestsPerSecond": change(3)}),
    ];
    assert_eq!(
        log,
        set.map(entry),
        "what was done, and nothing of what was refused"
    );
}

#[testkit::test]
async fn without_a_database_quotas_are_decided_with_the_key_of_an_administrator(it: Installation) {
    let service = postrider("serve operator-api").within(&it).start();
    let url = format!("http://{}", service.address_logged_with("listening"));
    let key = key_of_the_house(&it.store, &[Role::Admin]).await;
    let asked = |command: &str| {
        postrider(command)
            .env("OPERATOR_URL", &url)
            .env("OPERATOR_KEY", &key)
            .run()
    };
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    let id = requested(&it.pool, subscription).await;
    let listed = asked("quotas requests --status REQUESTED -o name");
    assert_eq!(listed.stdout, format!("{id}\n"), "{listed:?}");
    let approved = asked(&format!("quotas approve {id} --granted 400"));
    let said = format!("approved {id}: subscription {subscription} of acme gets 400 a day\n");
    assert_eq!(
        (approved.code, &*approved.stdout),
        (Some(0), &*said),
        "{approved:?}"
    );
    let again = asked(&format!("quotas deny {id} --note no"));
    assert!(
        again.code == Some(1) && again.stderr.contains("APPROVED already"),
        "{again:?}"
    );
    // What is not given stays as it is.
    succeeds(&asked(&format!(
        "quotas set {subscription} --requests-per-second 3"
    )));
    assert_eq!(limits(&it.pool, subscription).await, (Some(400), Some(3)));
    let taken = asked(&format!("quotas set {subscription} --daily-quota default"));
    let said = format!("daily quota 400 → default for {subscription}\n");
    assert_eq!((taken.code, &*taken.stdout), (Some(0), &*said), "{taken:?}");
    assert_eq!(limits(&it.pool, subscription).await, (None, Some(3)));
}
