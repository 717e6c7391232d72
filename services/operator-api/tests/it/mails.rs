//! Mails to resellers: what waits, what failed, and sending it at once.

use chrono::TimeDelta;
use serde_json::{Value, json};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::rig::Rig;

/// A mail that came to be an hour ago; of `status`, due or ended at `at` in seconds from now.
pub(crate) async fn mail(rig: &Rig, subscription: Uuid, (kind, status): (&str, &str), at: i64) -> Uuid {
    let id = Uuid::new_v4();
    let waits = status == "PENDING";
    let time = rig.now() + TimeDelta::seconds(at);
    sqlx::query(
        "INSERT INTO emails (id, kind, subscription_id, recipient, data, status, attempts, next_attempt_at, last_error, created_at, finished_at)
         VALUES ($1, $2, $3, 'ops@acme.example', '{}', $4, 3, $5, 'the mail server failed: refused', $6, $7)",
    )
    .bind(id)
    .bind(kind)
    .bind(subscription)
    .bind(status)
    .bind(waits.then_some(time))
    .bind(rig.now() - TimeDelta::hours(1))
    .bind((!waits).then_some(time))
    .execute(&rig.it.pool)
    .await
    .unwrap();
    id
}

fn ids(part: &Value) -> Vec<Uuid> {
    let items = part["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["id"].as_str().unwrap().parse().unwrap())
        .collect()
}

#[testkit::test]
async fn mails_are_listed_by_status_and_sent_at_once_and_that_is_recorded(rig: &Rig) {
    let subscription = SubscriptionRow::active().make(&rig.it.pool).await;
    let other = SubscriptionRow::active()
        .reseller("other")
        .make(&rig.it.pool)
        .await;
    let later = mail(rig, subscription, ("QUOTA_DECIDED", "PENDING"), 600).await;
    let soon = mail(rig, other, ("SECURITY_CHANGED", "PENDING"), 300).await;
    let failed = mail(rig, subscription, ("QUOTA_DECIDED", "FAILED"), -60).await;
    let before = mail(rig, subscription, ("QUOTA_DECIDED", "FAILED"), -900).await;
    let gathered = mail(rig, subscription, ("RETRIES_EXHAUSTED", "FAILED"), -30).await;
    let sent = mail(rig, subscription, ("QUOTA_DECIDED", "SENT"), -30).await;

    let waiting = rig.see("/mails").await;
    assert_eq!(ids(&waiting), [soon, later]);
    let first = &waiting["items"][0];
    assert_eq!(
        (
            &first["kind"],
            &first["resellerId"],
            &first["attempts"],
            &first["lastError"]
        ),
        (
            &json!("SECURITY_CHANGED"),
            &json!("other"),
            &json!(3),
            &json!("the mail server failed: refused")
        )
    );
    let of_one = rig.see(&format!("/mails?subscription={other}")).await;
    assert_eq!(ids(&of_one), [soon]);
    let failures: Vec<Value> = rig.all("/mails?status=FAILED", 1).await;
    assert_eq!(ids(&json!({"items": failures})), [gathered, failed, before]);
    assert_eq!(ids(&rig.see("/mails?status=SENT").await), [sent]);

    let since = rig.now() - TimeDelta::minutes(5);
    let answer = rig
        .act(
            "/mails/retry",
            &json!({"failedSince": since, "note": "it is back"}),
            200,
        )
        .await;
    assert_eq!(
        answer,
        json!({"mails": 3}),
        "two that wait, and one that failed since"
    );
    let due: Vec<(Uuid, bool)> =
        sqlx::query_as("SELECT id, next_attempt_at <= $1 FROM emails WHERE status = 'PENDING'")
            .bind(rig.now())
            .fetch_all(&rig.it.pool)
            .await
            .unwrap();
    assert_eq!(due.len(), 3);
    for mail in [later, soon, failed] {
        assert!(due.contains(&(mail, true)), "{mail}");
    }
    let log = rig.see("/audit?action=mails.retry").await;
    assert_eq!(log["items"][0]["note"], "it is back", "{log}");
    let again = rig.act("/mails/retry", &json!({}), 200).await;
    assert_eq!(again, json!({"mails": 0}));
    assert_eq!(
        rig.see("/audit?action=mails.retry").await,
        log,
        "nothing was done, and nothing recorded"
    );
    rig.refused("GET", "/mails?status=LOST", None, (400, "invalid-query"))
        .await;
}
