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

/// A subscription: the reseller with the number of its place in the list, everything that happens to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Subscriber {
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
        for (number, subscriber) in subscribers.iter().enumerate() {
            let id = Uuid::now_v7();
            sqlx::query(
                "INSERT INTO subscriptions (id, reseller_id, url, event_types, email, state, state_reason, daily_quota,
                                            paused_at, state_changed_at, verified_at, created_at, updated_at)
                 VALUES ($1, $2, $3, ARRAY ['*'], 'bench@localhost', 'ACTIVE', 'VERIFIED', $4,
                         CASE WHEN $5 THEN now() END, now(), now(), now(), now())",
            )
            .bind(id)
            .bind(format!("bench-{number:04x}"))
            .bind(&subscriber.url)
            .bind(subscriber.daily_quota)
            .bind(subscriber.paused)
            .execute(&mut *transaction)
            .await?;
            sqlx::query(
                "INSERT INTO signing_secrets (id, subscription_id, sealed, created_at) VALUES ($1, $2, $3, now())",
            )
            .bind(Uuid::now_v7())
            .bind(id)
            .bind(sealer.seal(id, Secret::generate().expose_bytes())?)
            .execute(&mut *transaction)
            .await?;
        }
        transaction.commit().await?;
        Ok(())
    }
}
