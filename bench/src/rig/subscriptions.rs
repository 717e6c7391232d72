//! Subscriptions of made-up resellers, put straight into the tables as if their endpoints had been verified.

use anyhow::Result;
use encryption::{Sealer, SealingKey};
use signing::Secret;
use uuid::Uuid;

use super::Rig;
use crate::load::EVENT_TYPE;
use crate::receiver::Receiver;

/// Seals the signing secrets of a run. It protects nothing.
pub(crate) const SEALING_KEY: &str = "YmVuY2gtYmVuY2gtYmVuY2gtYmVuY2gtYmVuY2gtMDA=";

/// Subscriptions put into the tables by one statement.
const TOGETHER: usize = 10_000;

/// A subscription to everything that happens to its reseller.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subscriber {
    /// The number of the reseller; that of its place in the list when `None`.
    pub(crate) reseller: Option<usize>,
    pub(crate) url: String,
    pub(crate) daily_quota: Option<i32>,
    /// Whether its reseller has paused it: what happens to it waits.
    pub(crate) paused: bool,
}

/// `count` subscriptions that answer, without limits.
pub(crate) fn answering(receiver: &Receiver, count: usize) -> Vec<Subscriber> {
    let subscriber = |number| Subscriber {
        url: receiver.url(number),
        ..Subscriber::default()
    };
    (0..count).map(subscriber).collect()
}

impl Rig {
    /// Makes the event type of the load, and a subscription for each of `subscribers`.
    pub(crate) async fn subscribe(&self, subscribers: &[Subscriber]) -> Result<()> {
        let sealer = Sealer::new(&SealingKey::parse(SEALING_KEY)?, &[]);
        let mut transaction = self.pool.begin().await?;
        sqlx::query(
            "INSERT INTO event_types (name, description, example) VALUES ($1, 'Something to measure.', '{}')
             ON CONFLICT DO NOTHING",
        )
        .bind(EVENT_TYPE)
        .execute(&mut *transaction)
        .await?;
        for (part, subscribers) in subscribers.chunks(TOGETHER).enumerate() {
            let ids: Vec<Uuid> = subscribers.iter().map(|_| Uuid::now_v7()).collect();
            let resellers: Vec<String> = (part * TOGETHER..)
                .zip(subscribers)
                .map(|(place, subscriber)| format!("bench-{:04x}", subscriber.reseller.unwrap_or(place)))
                .collect();
            let urls: Vec<&str> = subscribers.iter().map(|one| one.url.as_str()).collect();
            let quotas: Vec<Option<i32>> = subscribers.iter().map(|one| one.daily_quota).collect();
            let paused: Vec<bool> = subscribers.iter().map(|one| one.paused).collect();
            sqlx::query(
                "INSERT INTO subscriptions (id, reseller_id, url, event_types, email, state, state_reason, daily_quota,
                                            paused_at, state_changed_at, verified_at, created_at, updated_at)
                 SELECT i.id, i.reseller, i.url, ARRAY ['*'], 'bench@localhost', 'ACTIVE', 'VERIFIED', i.quota,
                        CASE WHEN i.paused THEN now() END, now(), now(), now(), now()
                 FROM UNNEST($1::uuid[], $2::text[], $3::text[], $4::integer[], $5::boolean[])
                     AS i(id, reseller, url, quota, paused)",
            )
            .bind(&ids)
            .bind(&resellers)
            .bind(&urls)
            .bind(&quotas)
            .bind(&paused)
            .execute(&mut *transaction)
            .await?;
            let secrets: Vec<Uuid> = ids.iter().map(|_| Uuid::now_v7()).collect();
            let sealed = ids
                .iter()
                .map(|id| sealer.seal(*id, Secret::generate().expose_bytes()))
                .collect::<Result<Vec<Vec<u8>>, _>>()?;
            sqlx::query(
                "INSERT INTO signing_secrets (id, subscription_id, sealed, created_at)
                 SELECT i.id, i.subscription, i.sealed, now()
                 FROM UNNEST($1::uuid[], $2::uuid[], $3::bytea[]) AS i(id, subscription, sealed)",
            )
            .bind(&secrets)
            .bind(&ids)
            .bind(&sealed)
            .execute(&mut *transaction)
            .await?;
        }
        transaction.commit().await?;
        Ok(())
    }
}
