//! What the tests share: a dispatcher that can be started and stopped, and looks at what it left behind.

use std::sync::Arc;

use broker::{Broker, Queue};
use chrono::{DateTime, Utc};
use config::Config;
use domain::clock::{Clock, ManualClock, SystemClock};
use domain::push::{PushId, PushStatus};
use simulators::swrve::{Match, Pattern, Rule};
use sqlx::PgPool;
use store::push::{PromotionQueue, PushView};
use testkit::{Installation, PATIENCE, Service, eventually, push_request};

pub(crate) type Dispatcher = Service<dispatcher::Error>;

/// Starts a dispatcher.
pub(crate) fn start(config: &Config) -> Dispatcher {
    start_at(config, Arc::new(SystemClock))
}

/// Starts a dispatcher with a clock of its own.
pub(crate) fn start_at(config: &Config, clock: Arc<dyn Clock>) -> Dispatcher {
    let config = Arc::new(config.clone());
    Service::start(config.shutdown.grace_period, |lifecycle| {
        dispatcher::run_with_clock(config, lifecycle, clock)
    })
}

/// A clock that stands at a Saturday noon.
pub(crate) fn saturday_noon() -> ManualClock {
    ManualClock::starting_at(time("2026-11-21T12:00:00Z"))
}

pub(crate) fn time(text: &str) -> DateTime<Utc> {
    text.parse().expect("a time")
}

/// Accepts pushes for `device-0`, `device-1`, … and publishes their messages.
pub(crate) async fn enqueue(it: &Installation, broker: &Broker, count: usize) -> Vec<PushId> {
    let mut ids = Vec::with_capacity(count);
    for number in 0..count {
        let request = push_request(&format!("device-{number}"), "Hello client!");
        ids.push(it.accept(PushStatus::InMemory, request).await);
    }
    it.publish(broker, &ids).await;
    ids
}

/// Accepts one push for `device` and publishes its message.
pub(crate) async fn enqueue_for(it: &Installation, broker: &Broker, device: &str) -> PushId {
    let id = it
        .accept(PushStatus::InMemory, push_request(device, "Hello client!"))
        .await;
    it.publish(broker, &[id]).await;
    id
}

/// Does what the retry worker does: puts what is due at `at` back into the queue.
pub(crate) async fn enqueue_due(it: &Installation, broker: &Broker, at: DateTime<Utc>) -> Vec<PushId> {
    promote(it, broker, PromotionQueue::Due(at)).await
}

/// Does what the retry worker does: promotes what waits and publishes the messages.
pub(crate) async fn promote(it: &Installation, broker: &Broker, queue: PromotionQueue) -> Vec<PushId> {
    let promoted = it.store.promote_pushes(queue, 1_000, PATIENCE).await.unwrap();
    let ids: Vec<PushId> = promoted.into_iter().map(|push| push.id).collect();
    it.publish(broker, &ids).await;
    ids
}

/// A rule about the pushes of one device.
pub(crate) fn for_device(device: &str, rule: Rule) -> Rule {
    Rule {
        matching: Match {
            user: Some(Pattern::Exact(device.to_owned())),
            ..Match::default()
        },
        ..rule
    }
}

/// A rule that makes every answer take so long.
pub(crate) fn slow(millis: u64) -> Rule {
    Rule {
        delay_millis: Some(millis),
        ..Rule::default()
    }
}

pub(crate) async fn view(it: &Installation, id: PushId) -> PushView {
    it.store.find_push(id).await.unwrap().expect("the push exists")
}

/// Waits until Swrve has got at least `count` requests.
pub(crate) async fn arrivals(it: &Installation, count: u64) {
    eventually(&format!("{count} requests at Swrve"), async || {
        (it.sim.report().received >= count).then_some(())
    })
    .await;
}

/// Waits until every one of these pushes is SENT.
pub(crate) async fn all_sent(it: &Installation, ids: &[PushId]) {
    for id in ids {
        it.settled(*id, PushStatus::Sent).await;
    }
}

/// That Swrve got each of `count` pushes exactly once.
pub(crate) fn assert_each_sent_once(it: &Installation, count: usize) {
    let report = it.sim.report();
    assert_eq!(
        (
            report.received,
            report.accepted,
            report.distinct_pushes,
            report.repeats
        ),
        (count as u64, count as u64, count as u64, 0)
    );
}

/// Waits until `push.ready` holds so many messages. With the dispatcher stopped, those that it had not settled count.
pub(crate) async fn queue_holds(broker: &Broker, messages: u32) {
    eventually(&format!("{messages} messages in the queue"), async || {
        let depth = broker.depth(Queue::PushReady).await.ok()?;
        (depth.messages == messages).then_some(())
    })
    .await;
}

/// How many pushes are claimed.
pub(crate) async fn claimed(pool: &PgPool) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM push_notifications WHERE lease_token IS NOT NULL")
        .fetch_one(pool)
        .await
        .unwrap()
}

/// Waits until so many pushes have been claimed, whatever has become of them.
pub(crate) async fn have_been_claimed(pool: &PgPool, pushes: usize) {
    eventually(&format!("{pushes} pushes to have been claimed"), async || {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM push_notifications WHERE attempts > 0")
            .fetch_one(pool)
            .await
            .ok()?;
        (count == pushes as i64).then_some(())
    })
    .await;
}

/// The epoch of the present leader.
pub(crate) async fn epoch_of_leader(pool: &PgPool) -> Option<i64> {
    sqlx::query_scalar("SELECT epoch FROM leases WHERE name = 'push' AND holder IS NOT NULL")
        .fetch_optional(pool)
        .await
        .unwrap()
}

/// Waits until a replica leads; returns the epoch.
pub(crate) async fn leader(pool: &PgPool) -> i64 {
    eventually("a leader", async || epoch_of_leader(pool).await).await
}

/// A dead letter, as far as it is about a push.
#[derive(Debug, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct DeadLetter {
    pub(crate) reason: String,
    pub(crate) fingerprint: String,
    pub(crate) attempts: Option<i32>,
    pub(crate) error_type: Option<String>,
    pub(crate) detail: String,
}

pub(crate) async fn dead_letters(pool: &PgPool, id: PushId) -> Vec<DeadLetter> {
    sqlx::query_as(
        "SELECT reason, fingerprint, attempts, error_type, detail FROM dead_letters
         WHERE push_id = $1 AND lane = 'push'",
    )
    .bind(id.uuid())
    .fetch_all(pool)
    .await
    .unwrap()
}

/// Everything that is stored about these pushes.
pub(crate) async fn rows(pool: &PgPool, ids: &[PushId]) -> Vec<String> {
    let ids: Vec<_> = ids.iter().map(|id| id.uuid()).collect();
    sqlx::query_scalar(
        "SELECT p::text || coalesce((SELECT string_agg(a::text, ' ' ORDER BY a.number) FROM send_attempts a
                                     WHERE a.push_notification_id = p.id), '')
         FROM push_notifications p WHERE p.id = ANY($1) ORDER BY p.id",
    )
    .bind(&ids)
    .fetch_all(pool)
    .await
    .unwrap()
}
