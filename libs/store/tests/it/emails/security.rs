//! Mails about what a thief of a key would change: they go where the subscription's mails went before.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::subscription::SubscriptionChange;
use serde_json::{Value, json};
use sqlx::PgPool;
use store::webhook::{Addresses, NewSecret, Revoked, Rotated};
use store::{Kept, Store};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use super::now;
use crate::scene::{LONG, act};

/// The security mails: recipient, occurrences, what changed.
async fn told(pool: &PgPool) -> Vec<(String, i64, Vec<String>)> {
    let rows: Vec<(String, i64, Value)> = sqlx::query_as(
        "SELECT recipient, occurrences, data -> 'changes' FROM emails WHERE kind = 'SECURITY_CHANGED'
         ORDER BY created_at, recipient",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    let what = |changes: Value| {
        let changes = changes.as_array().unwrap().iter();
        changes
            .map(|one| one["what"].as_str().unwrap().to_owned())
            .collect()
    };
    rows.into_iter()
        .map(|(recipient, occurrences, changes)| (recipient, occurrences, what(changes)))
        .collect()
}

async fn rotate(store: &Store, id: Uuid, at: DateTime<Utc>) -> Uuid {
    let new = NewSecret {
        id: Uuid::now_v7(),
        sealed: vec![1; 40],
    };
    let rotated = store.rotate_secret(("acme", id), &new, Duration::ZERO, act(at));
    assert_eq!(rotated.await.unwrap(), Rotated::Done);
    new.id
}

#[testkit::database_test]
async fn who_takes_a_subscription_over_cannot_keep_it_from_its_owner(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let id = SubscriptionRow::active()
        .url("https://acme.example/hook?token=hush")
        .make(&pool)
        .await;
    let change = SubscriptionChange {
        url: Some("https://thief.example/h?token=hush".to_owned()),
        email: Some("thief@evil.example".to_owned()),
        ..SubscriptionChange::default()
    };
    store
        .change_subscription("acme", id, &change, Addresses::Confirmed, act(start))
        .await
        .unwrap();
    let data: Value = sqlx::query_scalar("SELECT data FROM emails WHERE kind = 'SECURITY_CHANGED'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(
        told(&pool).await,
        [(
            "ops@acme.example".to_owned(),
            2,
            vec!["ENDPOINT".to_owned(), "ADDRESS".to_owned()]
        )]
    );
    assert_eq!(
        (&data["changes"][0]["from"], &data["changes"][0]["to"]),
        (&json!("https://acme.example"), &json!("https://thief.example"))
    );
    assert_eq!(data["changes"][1]["to"], "thief@evil.example");
}

#[testkit::database_test]
async fn secrets_and_the_end_are_told_in_few_mails_that_miss_nothing(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let id = SubscriptionRow::active().make(&pool).await;
    let first = rotate(&store, id, start).await;
    let sent = store
        .claim_emails(start, 10, LONG, Addresses::Confirmed)
        .await
        .unwrap();
    assert_eq!(sent.len(), 1, "the first one waits for nothing");
    store
        .end_email(sent[0].id, sent[0].lease_token, None, start)
        .await
        .unwrap();
    // As many as a day allows.
    for seconds in 1..20 {
        rotate(&store, id, start + TimeDelta::seconds(seconds)).await;
    }
    let at = start + TimeDelta::seconds(40);
    let revoked = store.revoke_secret(("acme", id), first, act(at));
    assert_eq!(revoked.await.unwrap(), Revoked::Done);
    assert!(store.delete_subscription("acme", id, act(at)).await.unwrap());
    let told = told(&pool).await;
    assert_eq!(told.len(), 2);
    assert_eq!(
        (told[1].1, told[1].2.len()),
        (21, 20),
        "counted, and the latest listed"
    );
    assert_eq!(told[1].2[18..], ["SECRET_REVOKED", "DELETED"]);
    let due: DateTime<Utc> =
        sqlx::query_scalar("SELECT next_attempt_at FROM emails WHERE status = 'PENDING'")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(due, start + TimeDelta::minutes(10));
}

#[testkit::database_test]
async fn an_address_that_never_was_confirmed_is_told_nothing(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let id = SubscriptionRow::active().make(&pool).await;
    sqlx::query("UPDATE email_addresses SET confirmed_at = NULL")
        .execute(&pool)
        .await
        .unwrap();
    rotate(&store, id, start).await;
    assert_eq!(told(&pool).await, []);
}

#[testkit::database_test]
async fn the_last_confirmed_address_is_told_until_the_new_one_is_confirmed(pool: PgPool) {
    let (store, start) = (Store::from_pool(pool.clone()), now());
    let id = SubscriptionRow::active().make(&pool).await;
    let change = async |url: Option<&str>, email: Option<&str>, minute| {
        let change = SubscriptionChange {
            url: url.map(str::to_owned),
            email: email.map(str::to_owned),
            ..SubscriptionChange::default()
        };
        let at = start + TimeDelta::minutes(minute);
        store
            .change_subscription("acme", id, &change, Addresses::Confirmed, act(at))
            .await
            .unwrap();
    };
    let told_so_far = async || {
        let mut told = told(&pool).await;
        let all = told.pop().expect("one mail that gathers");
        assert_eq!((told, &*all.0), (vec![], "ops@acme.example"));
        all.2
    };
    change(None, Some("thief@evil.example"), 0).await;
    // However long it has been there: it is still needed.
    sqlx::query("UPDATE email_addresses SET created_at = created_at - interval '1 year'")
        .execute(&pool)
        .await
        .unwrap();
    let cutoff = store.cutoff(start, LONG).await.unwrap();
    store.forget(Kept::Addresses, cutoff, 100).await.unwrap();
    change(Some("https://thief.example/h"), None, 1).await;
    rotate(&store, id, start + TimeDelta::minutes(2)).await;
    assert_eq!(told_so_far().await, ["ADDRESS", "ENDPOINT", "SECRET_MADE"]);
    // One more address that its owner has not confirmed, and the first one again: told once each.
    change(None, Some("other@evil.example"), 3).await;
    change(None, Some("ops@acme.example"), 4).await;
    assert_eq!(told_so_far().await[3..], ["ADDRESS", "ADDRESS"]);
    // As its owner moves to another mailbox: once that is confirmed, it alone is told.
    change(None, Some("team@acme.example"), 5).await;
    sqlx::query("UPDATE email_addresses SET confirmed_at = now() WHERE address = 'team@acme.example'")
        .execute(&pool)
        .await
        .unwrap();
    rotate(&store, id, start + TimeDelta::minutes(6)).await;
    let told = told(&pool).await;
    let recipients: Vec<_> = told.iter().map(|mail| (&*mail.0, mail.1)).collect();
    assert_eq!(recipients, [("ops@acme.example", 6), ("team@acme.example", 1)]);
}
