//! Web Push: clients, the messages that wait for them, and their months.

mod clients;
mod messages;
mod months;
mod moves;
mod tables;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::month::Month;
use sqlx::PgPool;
use store::Store;
use store::webpush::{MessageBody, NewMessage, Registered, Stored};
use uuid::Uuid;

const NODE: &str = "http://node-1:8081";
const OTHER: &str = "http://node-2:8081";
const MOST: u32 = 100;

struct Scene {
    store: Store,
    now: DateTime<Utc>,
    month: Month,
    uaid: Uuid,
    channel: Uuid,
}

impl Scene {
    /// A client with one channel, connected to [`NODE`] since `now`.
    async fn new(pool: &PgPool) -> Self {
        let now = SystemClock.now().trunc_subsecs(6);
        let scene = Self {
            store: Store::from_pool(pool.clone()),
            now,
            month: Month::containing(now),
            uaid: Uuid::from_u128(rand()),
            channel: Uuid::from_u128(rand()),
        };
        scene.register(scene.uaid, scene.channel).await;
        scene
    }

    async fn register(&self, uaid: Uuid, channel: Uuid) -> Registered {
        self.store
            .webpush_register(uaid, Some(NODE), self.now, self.month, channel, MOST)
            .await
            .unwrap()
    }

    fn message(&self, version: &str) -> NewMessage {
        NewMessage {
            uaid: self.uaid,
            channel: self.channel,
            topic: None,
            version: version.to_owned(),
            received_at: self.now,
            expires_at: self.now + TimeDelta::seconds(60),
            body: Some(MessageBody {
                data: vec![0, 1, 254],
                encoding: "aes128gcm".to_owned(),
                encryption: None,
                crypto_key: None,
            }),
        }
    }

    fn with_topic(&self, version: &str, topic: &str) -> NewMessage {
        NewMessage {
            topic: Some(topic.to_owned()),
            ..self.message(version)
        }
    }

    async fn put(&self, message: NewMessage) -> Stored {
        self.store.webpush_store(&[message]).await.unwrap().remove(0)
    }

    async fn waiting_in(&self, month: Month) -> Vec<(i64, String)> {
        let waiting = self
            .store
            .webpush_waiting(self.uaid, month, self.now, &[], 10)
            .await;
        waiting.unwrap().into_iter().map(|m| (m.id, m.version)).collect()
    }

    async fn versions(&self) -> Vec<String> {
        self.waiting_in(self.month)
            .await
            .into_iter()
            .map(|(_, version)| version)
            .collect()
    }
}

fn rand() -> u128 {
    // Of a UUIDv7 the last 62 bits are random, and the first grow.
    Uuid::now_v7().as_u128()
}

fn connected() -> impl Fn(&Stored) -> bool {
    |stored| matches!(stored, Stored::Yes { node: Some(node), .. } if node == NODE)
}
