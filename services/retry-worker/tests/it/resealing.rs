//! Signing secrets are sealed again when their key is changed.

use config::Secret;
use encryption::{Sealer, SealingKey};
use metrics_exporter_prometheus::PrometheusBuilder;
use sqlx::PgPool;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};
use uuid::Uuid;

use crate::rig::{shows, start};

const PLAIN: &[u8] = b"what signs the notifications of a subscription";

async fn sealed_of(pool: &PgPool, subscription: Uuid) -> Vec<u8> {
    sqlx::query_scalar("SELECT sealed FROM signing_secrets WHERE subscription_id = $1")
        .bind(subscription)
        .fetch_one(pool)
        .await
        .unwrap()
}

async fn version_of(pool: &PgPool, subscription: Uuid) -> i64 {
    sqlx::query_scalar("SELECT version::bigint FROM subscriptions WHERE id = $1")
        .bind(subscription)
        .fetch_one(pool)
        .await
        .unwrap()
}

/// A subscription with a secret that is sealed with `key`.
async fn sealed_with(pool: &PgPool, key: &SealingKey) -> Uuid {
    let subscription = SubscriptionRow::active();
    let sealed = Sealer::new(key, &[]).seal(subscription.id(), PLAIN).unwrap();
    subscription.sealed_secret(sealed).make(pool).await
}

#[testkit::test]
async fn what_a_previous_key_sealed_is_sealed_again_and_what_no_key_opens_is_counted(mut it: Installation) {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let metrics = recorder.handle();
    let secrets = &mut it.config.reseller.secrets;
    let old = secrets
        .key
        .replace(Secret::new("AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="));
    let old = old.expect("a key");
    secrets.previous_keys = vec![old.clone()];
    let read = |key: &Secret| SealingKey::parse(key.expose()).unwrap();
    let new = read(it.config.reseller.secrets.key.as_ref().unwrap());
    let stale = sealed_with(&it.pool, &read(&old)).await;
    let current = sealed_with(&it.pool, &new).await;
    let lost = sealed_with(&it.pool, &SealingKey::from_bytes([9; 32])).await;
    let before = [
        sealed_of(&it.pool, current).await,
        sealed_of(&it.pool, lost).await,
    ];
    let version = version_of(&it.pool, stale).await;

    let worker = start(&it.config);
    let alone = Sealer::new(&new, &[]);
    eventually("the secret to be sealed again", async || {
        let sealed = sealed_of(&it.pool, stale).await;
        let plain = alone.open(stale, &sealed).ok()?;
        assert_eq!(&**plain, PLAIN);
        Some(())
    })
    .await;
    shows(&metrics, "postrider_signing_secrets_stale 1").await;
    let after = [
        sealed_of(&it.pool, current).await,
        sealed_of(&it.pool, lost).await,
    ];
    assert_eq!(
        before, after,
        "neither the one that is current nor the one that is lost is touched"
    );
    assert_eq!(
        version_of(&it.pool, stale).await,
        version,
        "nothing that engines know of it has changed"
    );
    worker.stop().await;
}
