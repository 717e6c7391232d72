//! Which secrets sign, and what happens when none can.

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::Clock;
use domain::notification::NotificationStatus;
use engine::webhook::Lane;
use signing::Secret;
use simulators::receiver::SecretFor;
use testkit::Installation;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::rig::{Rig, frozen};

/// The rig's secret is the older one of two.
async fn with_two_secrets(rig: &Rig) -> (SubscriptionRow, Secret) {
    let new = Secret::generate();
    let row = rig.subscription();
    let sealed = rig.sealer.seal(row.id(), new.expose_bytes()).expect("it seals");
    (row.sealed_secret(sealed), new)
}

async fn end_the_older(rig: &Rig, subscription: Uuid, column: &'static str, at: DateTime<Utc>) {
    let older = "(SELECT id FROM signing_secrets WHERE subscription_id = $1 ORDER BY created_at, id LIMIT 1)";
    let sql = format!("UPDATE signing_secrets SET {column} = $2 WHERE id = {older}");
    sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(subscription)
        .bind(at)
        .execute(&rig.it.pool)
        .await
        .expect("the secret ends");
}

fn know(rig: &Rig, secret: &Secret) {
    rig.receiver
        .secrets(vec![SecretFor::everywhere(&secret.reveal()).expect("a secret")]);
}

/// Sends one notification; returns whether the receiver believed it, and how many signatures it had.
async fn deliver(rig: &Rig) -> (bool, usize) {
    let before = rig.arrived_at("/hook").len();
    let sent = rig.send(1).await;
    testkit::eventually("it to arrive and be judged", async || {
        let row = crate::rig::row(&rig.it.pool, sent[0].id).await;
        (row.status != "IN_MEMORY" && row.status != "PENDING").then_some(())
    })
    .await;
    let arrived = rig.arrived_at("/hook");
    let [received] = &arrived[before..] else {
        panic!("{arrived:?}")
    };
    let signatures = received.headers["webhook-signature"].split(' ').count();
    (received.verdict.is_believed(), signatures)
}

#[testkit::test]
async fn after_a_rotation_both_secrets_sign_until_the_old_one_expires(it: Installation) {
    let rig = Rig::new(it).await;
    let (row, new) = with_two_secrets(&rig).await;
    let subscription = row.make(&rig.it.pool).await;
    let clock = frozen();
    let end = clock.now() + TimeDelta::seconds(60);
    end_the_older(&rig, subscription, "expires_at", end).await;
    let _engine = rig.start_at(Lane::First, clock.clone()).await;
    for secret in [&rig.secret, &new] {
        know(&rig, secret);
        assert_eq!(deliver(&rig).await, (true, 2));
    }
    clock.advance(TimeDelta::seconds(60));
    know(&rig, &new);
    assert_eq!(deliver(&rig).await, (true, 1));
    know(&rig, &rig.secret);
    assert_eq!(deliver(&rig).await, (false, 1), "the old one has expired");
}

#[testkit::test]
async fn a_revoked_secret_stops_signing_at_once(it: Installation) {
    let rig = Rig::new(it).await;
    let (row, new) = with_two_secrets(&rig).await;
    let subscription = row.make(&rig.it.pool).await;
    let _engine = rig.start(Lane::First).await;
    assert_eq!(deliver(&rig).await, (true, 2));
    end_the_older(&rig, subscription, "revoked_at", frozen().now()).await;
    know(&rig, &rig.secret);
    assert_eq!(deliver(&rig).await, (false, 1));
    know(&rig, &new);
    assert_eq!(deliver(&rig).await, (true, 1));
}

#[testkit::test]
async fn what_cannot_be_signed_is_not_sent_and_is_no_fault_of_the_endpoint(it: Installation) {
    let rig = Rig::new(it).await;
    let unreadable = SubscriptionRow::active()
        .url(&rig.receiver.url("/unreadable"))
        .sealed_secret(vec![7; 80]);
    let none = SubscriptionRow::active().url(&rig.receiver.url("/none"));
    let foreign = rig
        .sealer
        .seal(Uuid::now_v7(), rig.secret.expose_bytes())
        .expect("it seals");
    let foreign = SubscriptionRow::active()
        .url(&rig.receiver.url("/foreign"))
        .sealed_secret(foreign);
    for row in [&unreadable, &none, &foreign] {
        row.make(&rig.it.pool).await;
    }
    rig.subscription().make(&rig.it.pool).await;
    let engine = rig.start(Lane::First).await;
    rig.send(1).await;
    rig.count_becomes(NotificationStatus::Sent, 1).await;
    rig.count_becomes(NotificationStatus::Retry, 3).await;
    engine.stop().await;
    assert_eq!(rig.receiver.report().received, 1);
    let failing: i64 =
        sqlx::query_scalar("SELECT count(*) FROM subscriptions WHERE failing_since IS NOT NULL")
            .fetch_one(&rig.it.pool)
            .await
            .expect("subscriptions can be counted");
    assert_eq!(failing, 0);
    let types: Vec<String> =
        sqlx::query_scalar("SELECT error_type FROM delivery_attempts WHERE status = 'ERROR'")
            .fetch_all(&rig.it.pool)
            .await
            .expect("attempts can be read");
    assert_eq!(types, ["OTHER", "OTHER", "OTHER"]);
}

#[testkit::test]
async fn an_expired_secret_that_cannot_be_opened_any_more_does_not_matter(it: Installation) {
    let rig = Rig::new(it).await;
    let row = SubscriptionRow::active()
        .url(&rig.receiver.url("/hook"))
        .sealed_secret(vec![7; 80]);
    let sealed = rig
        .sealer
        .seal(row.id(), rig.secret.expose_bytes())
        .expect("it seals");
    let subscription = row.sealed_secret(sealed).make(&rig.it.pool).await;
    end_the_older(&rig, subscription, "expires_at", DateTime::UNIX_EPOCH).await;
    let _engine = rig.start(Lane::First).await;
    assert_eq!(deliver(&rig).await, (true, 1));
}
