//! Requests for a higher quota, which administrators decide.

use domain::key::Role;
use serde_json::{Value, json};
use store::Act;
use store::webhook::{NewQuotaRequest, QuotaRequested};
use testkit::eventually;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::rig::{Rig, answer, fields, problem};

/// A request of `acme`; returns its identifier and that of the subscription.
async fn requested(rig: &Rig, quota: u32) -> (Uuid, Uuid) {
    requested_with(rig, quota, true).await
}

async fn requested_with(rig: &Rig, quota: u32, asks_daily: bool) -> (Uuid, Uuid) {
    let row = SubscriptionRow::active().reseller("acme");
    let subscription = row.make(&rig.it.pool).await;
    let new = NewQuotaRequest {
        id: Uuid::now_v7(),
        subscription,
        requested: quota,
        asks_daily,
        requests_per_second: Some(40),
        reason: "A merger.".to_owned(),
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
    (new.id, subscription)
}

async fn quota_of(rig: &Rig, subscription: Uuid) -> Option<i32> {
    sqlx::query_scalar("SELECT daily_quota FROM subscriptions WHERE id = $1")
        .bind(subscription)
        .fetch_one(&rig.it.pool)
        .await
        .unwrap()
}

#[testkit::test]
async fn a_request_is_decided_once_and_recorded(rig: &Rig) {
    let admin = rig.key_of(Role::Admin).await;
    let post = async |id: Uuid, verb: &str, body: Value| {
        let request = rig.request("POST", &format!("/quota-requests/{id}/{verb}"));
        request.bearer_auth(&admin).json(&body).send().await.unwrap()
    };
    let ((first, raised), (second, kept)) = (requested(rig, 5).await, requested(rig, 6).await);
    let waiting = rig.see("/quota-requests?status=REQUESTED").await;
    let waiting = waiting["items"].as_array().unwrap();
    assert!(waiting.len() == 2 && waiting.iter().all(|it| it["resellerId"] == "acme"));
    eventually("the status to tell of both", async || {
        let status = rig.see("/status").await;
        let findings = status["findings"].as_array().unwrap();
        let found = findings.iter().find(|it| it["id"] == "quota-requests-open")?;
        let text = found["text"].as_str().unwrap();
        text.starts_with("2 quota requests wait for a decision, the oldest since ")
            .then_some(())
    })
    .await;

    let too_little = problem(
        post(first, "approve", json!({"granted": 0})).await,
        422,
        "validation",
    )
    .await;
    assert_eq!(fields(&too_little), ["granted"]);
    let too_many = post(first, "approve", json!({"grantedPerSecond": 100_001})).await;
    assert_eq!(
        fields(&problem(too_many, 422, "validation").await),
        ["grantedPerSecond"]
    );
    let body = json!({"granted": 4, "grantedPerSecond": 30, "note": "For now."});
    let decided = answer(post(first, "approve", body).await, 200).await;
    assert_eq!(
        (
            &decided["status"],
            &decided["granted"],
            &decided["grantedPerSecond"]
        ),
        (&json!("APPROVED"), &json!(4), &json!(30))
    );
    assert!(decided["decidedBy"].as_str().unwrap().starts_with("test ("));
    problem(post(first, "approve", json!({})).await, 409, "conflict").await;
    let unsaid = problem(
        post(second, "deny", json!({"note": " "})).await,
        422,
        "validation",
    )
    .await;
    assert_eq!(fields(&unsaid), ["note"]);
    let no = json!({"note": "No."});
    answer(post(second, "deny", no.clone()).await, 200).await;
    problem(post(second, "deny", no).await, 409, "conflict").await;
    assert_eq!(
        (quota_of(rig, raised).await, quota_of(rig, kept).await),
        (Some(4), None)
    );

    let rates: Vec<Option<i32>> = sqlx::query_scalar(
        "SELECT requests_per_second FROM subscriptions WHERE id = ANY ($1) ORDER BY id = $2 DESC",
    )
    .bind([raised, kept])
    .bind(raised)
    .fetch_all(&rig.it.pool)
    .await
    .unwrap();
    assert_eq!(rates, [Some(30), None]);

    let entries = rig.see("/audit?action=quota-request").await;
    let entries = entries["items"].as_array().unwrap();
    let told: Vec<_> = entries.iter().map(|it| (&it["action"], &it["note"])).collect();
    let (approve, deny) = (json!("quota-request.approve"), json!("quota-request.deny"));
    // Before them, that they were made.
    assert_eq!(
        told[..2],
        [(&deny, &json!("No.")), (&approve, &json!("For now."))]
    );
    assert_eq!(entries[1]["subject"], format!("subscription/{raised}"));
    assert_eq!(entries[1]["details"]["request"], first.to_string());
    assert_eq!(entries[1]["details"]["granted"], 4);
    assert_eq!(
        entries[1]["details"]["requestsPerSecond"],
        json!({"from": null, "to": 30})
    );
}

#[testkit::test]
async fn an_approval_of_a_rate_leaves_the_daily_quota_as_it_is(rig: &Rig) {
    let admin = rig.key_of(Role::Admin).await;
    let approve = async |id: Uuid, body: Value| {
        let request = rig.request("POST", &format!("/quota-requests/{id}/approve"));
        answer(request.bearer_auth(&admin).json(&body).send().await.unwrap(), 200).await
    };
    let ((first, has_default), (second, raised)) = (
        requested_with(rig, 500, false).await,
        requested_with(rig, 500, false).await,
    );
    sqlx::query("UPDATE subscriptions SET daily_quota = 5000 WHERE id = $1")
        .bind(raised)
        .execute(&rig.it.pool)
        .await
        .unwrap();
    for id in [first, second] {
        let decided = approve(id, json!({})).await;
        assert_eq!(
            (
                &decided["status"],
                &decided["granted"],
                &decided["grantedPerSecond"]
            ),
            (&json!("APPROVED"), &json!(null), &json!(40))
        );
    }
    assert_eq!(quota_of(rig, has_default).await, None);
    assert_eq!(quota_of(rig, raised).await, Some(5000));
    let (third, given) = requested_with(rig, 500, false).await;
    let decided = approve(third, json!({"granted": 900})).await;
    assert_eq!(
        (&decided["granted"], &decided["grantedPerSecond"]),
        (&json!(900), &json!(40))
    );
    assert_eq!(quota_of(rig, given).await, Some(900));
}

#[testkit::test]
async fn an_open_request_says_what_it_would_be_of_all_that_is_sent_on_a_day(rig: &Rig) {
    let (open, subscription) = requested(rig, 30).await;
    let other = requested_with(rig, 500, false).await;
    let percents = async || {
        let list = rig.see("/quota-requests").await;
        let items = list["items"].as_array().unwrap();
        let percent = |id: Uuid| {
            let found = items.iter().find(|it| it["id"] == id.to_string());
            found.unwrap()["percentOfSends"].clone()
        };
        [percent(open), percent(other.0)]
    };
    assert_eq!(percents().await, [json!(null), json!(null)], "nothing was sent");
    for (of, days_ago, used) in [
        (subscription, 1, 50),
        (subscription, 3, 50),
        // Neither the present day nor what is longer ago.
        (subscription, 0, 7_000),
        (subscription, 8, 7_000),
        (other.1, 2, 0),
    ] {
        sqlx::query(
            "INSERT INTO quota_days (subscription_id, day, used, quota)
             VALUES ($1, ($2::timestamptz AT TIME ZONE 'UTC')::date - $3::integer, $4, 10000)",
        )
        .bind(of)
        .bind(rig.now())
        .bind(days_ago)
        .bind(i64::from(used))
        .execute(&rig.it.pool)
        .await
        .unwrap();
    }
    assert_eq!(percents().await, [json!(60), json!(null)]);
    // The last day on which another subscription was sent something.
    sqlx::query(
        "INSERT INTO subscription_budgets (subscription_id, day, used, quota)
         VALUES ($1, ($2::timestamptz AT TIME ZONE 'UTC')::date - 1, 200, 100)",
    )
    .bind(other.1)
    .bind(rig.now())
    .execute(&rig.it.pool)
    .await
    .unwrap();
    assert_eq!(percents().await, [json!(30), json!(null)]);

    let admin = rig.key_of(Role::Admin).await;
    let deny = rig.request("POST", &format!("/quota-requests/{open}/deny"));
    answer(
        deny.bearer_auth(&admin)
            .json(&json!({"note": "No."}))
            .send()
            .await
            .unwrap(),
        200,
    )
    .await;
    assert_eq!(percents().await, [json!(null), json!(null)]);
}

#[testkit::test]
async fn an_open_request_says_what_its_subscription_has_and_has_used_today(rig: &Rig) {
    let (_, subscription) = requested(rig, 30).await;
    let limits = "UPDATE subscriptions SET daily_quota = 20, requests_per_second = 3 WHERE id = $1";
    let used = "INSERT INTO subscription_budgets (subscription_id, day, used, quota)
                VALUES ($1, (now() AT TIME ZONE 'UTC')::date, 17, 20)";
    for statement in [limits, used] {
        sqlx::query(statement)
            .bind(subscription)
            .execute(&rig.it.pool)
            .await
            .unwrap();
    }
    let present = async || rig.see("/quota-requests").await["items"][0]["present"].clone();
    let has = json!({"dailyQuota": 20, "requestsPerSecond": 3, "usedToday": 17});
    assert_eq!(present().await, has);
    sqlx::query("UPDATE quota_requests SET status = 'DENIED', decided_at = now(), decided_by = 'ada' WHERE subscription_id = $1")
        .bind(subscription)
        .execute(&rig.it.pool)
        .await
        .unwrap();
    assert_eq!(present().await, json!(null), "it was decided under another quota");
}

#[testkit::test]
async fn operators_see_requests_and_do_not_decide_them(rig: &Rig) {
    let (id, subscription) = requested(rig, 5).await;
    assert_eq!(rig.see("/quota-requests").await["items"][0]["id"], id.to_string());
    for verb in ["approve", "deny"] {
        let path = format!("/quota-requests/{id}/{verb}");
        rig.refused("POST", &path, Some(&json!({})), (403, "forbidden"))
            .await;
    }
    assert_eq!(quota_of(rig, subscription).await, None);
}
