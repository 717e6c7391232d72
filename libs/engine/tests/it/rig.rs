//! What the tests have in common: an installation with an engine, a receiver, and subscriptions to it.

use std::sync::Arc;
use std::time::Duration;

use broker::{Broker, Envelope, Published, Queue};
use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::{Clock, ManualClock, SystemClock};
use domain::notification::{NotificationId, NotificationStatus, QUEUE_LEASE};
use encryption::{Sealer, SealingKey};
use engine::webhook::{Lane, Tools};
use lifecycle::Shutdown;
use signing::Secret;
use simulators::receiver::{Options, Received, Receiver, Rule, Running, SecretFor};
use sqlx::PgPool;
use store::Store;
use store::webhook::{FannedOut, InsertedEvent, LineTerms, NewEvent, PromotedNotification};
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, Leftover, PATIENCE, eventually, leaves, see_end};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// An engine that runs, and what it talks to.
pub(crate) struct Rig {
    pub(crate) it: Installation,
    pub(crate) broker: Broker,
    pub(crate) receiver: Running,
    pub(crate) secret: Secret,
    pub(crate) sealer: Sealer,
}

/// A running engine, on a runtime of its own, as a process is.
pub(crate) struct Engine {
    shutdown: Shutdown,
    run: Option<(OwnRuntime, JoinHandle<()>)>,
}

struct OwnRuntime(Option<Runtime>);

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Rig {
    pub(crate) async fn new(it: Installation) -> Self {
        let secret = Secret::generate();
        let options = Options {
            secrets: vec![SecretFor::everywhere(&secret.reveal()).expect("a secret")],
            // Some tests choose the time of day.
            tolerance: Duration::from_secs(2 * 86_400),
            ..Options::default()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let key = it.config.reseller.secrets.key.as_ref().expect("tests have a key");
        let key = SealingKey::parse(key.expose()).expect("a key");
        Self {
            broker: it.broker(),
            receiver: Receiver::start(listener, options).expect("the receiver starts"),
            sealer: Sealer::new(&key, &[]),
            secret,
            it,
        }
    }

    /// A subscription to everything, to be changed and made.
    pub(crate) fn subscription(&self) -> SubscriptionRow {
        let row = SubscriptionRow::active();
        let sealed = self
            .sealer
            .seal(row.id(), self.secret.expose_bytes())
            .expect("it seals");
        row.url(&self.receiver.url("/hook")).sealed_secret(sealed)
    }

    pub(crate) async fn start(&self, lane: Lane) -> Engine {
        self.start_at(lane, Arc::new(SystemClock)).await
    }

    /// An engine with connections of its own, as the configuration leads to them.
    pub(crate) async fn start_at(&self, lane: Lane, clock: Arc<dyn Clock>) -> Engine {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let (config, shutdown) = (self.it.shared_config(), Shutdown::new());
        // Its tasks have to end with it.
        let broker = {
            let _context = runtime.enter();
            self.it.broker()
        };
        let stop = shutdown.clone();
        let task = runtime.spawn(async move {
            let store = Store::open(&store::Settings {
                url: config.database.url.expose().to_owned(),
                max_connections: config.database.max_connections,
                lease_connections: 2,
                acquire_timeout: config.database.acquire_timeout,
                application_name: "engine".to_owned(),
                line_terms: LineTerms::default(),
            })
            .expect("the URL can be read");
            let tools = Tools::open(&config, &store, &broker, &clock)
                .expect("the tools are made")
                .expect("tests have a key");
            engine::webhook::deliver(lane, Some(tools), stop).await;
            broker.close().await;
        });
        Engine {
            shutdown,
            run: Some((OwnRuntime(Some(runtime)), task)),
        }
    }

    /// Stores events as the ingest service does; returns what they became.
    pub(crate) async fn accept(&self, count: usize) -> Vec<FannedOut> {
        let now = SystemClock.now();
        self.accept_all((0..count).map(|_| event(now)).collect()).await
    }

    /// The same for events that are made already.
    pub(crate) async fn accept_all(&self, events: Vec<NewEvent>) -> Vec<FannedOut> {
        let inserted = self
            .it
            .store
            .insert_events(&events, true, QUEUE_LEASE)
            .await
            .expect("the events are stored");
        inserted
            .into_iter()
            .flat_map(|inserted| match inserted {
                InsertedEvent::New(fanned) => fanned,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    /// Publishes the messages of notifications to the queue of a lane.
    pub(crate) async fn publish(&self, queue: Queue, notifications: &[FannedOut]) {
        let publisher = self.broker.publisher();
        eventually("the broker to be there", async || {
            publisher.takes_messages().then_some(())
        })
        .await;
        let envelopes = notifications
            .iter()
            .map(|n| Envelope::notification(n.id.uuid(), n.subscription_id, SystemClock.now(), None))
            .collect();
        let answers = publisher.publish(queue, envelopes).await;
        assert!(
            answers.iter().all(|answer| *answer == Published::Confirmed),
            "{answers:?}"
        );
    }

    /// Accepts events and publishes their first attempts.
    pub(crate) async fn send(&self, count: usize) -> Vec<FannedOut> {
        let notifications = self.accept(count).await;
        self.publish(Queue::ResellerReady, &notifications).await;
        notifications
    }

    /// Promotes everything that waits for a time until `at`, as the promoting jobs do.
    pub(crate) async fn promote(&self, at: DateTime<Utc>) -> usize {
        let store = &self.it.store;
        let terms = LineTerms::default();
        store.find_lines(at, &terms).await.expect("lines are found");
        // As if no line had been looked at for a while.
        sqlx::query("UPDATE subscription_budgets SET release_at = now() WHERE release_at IS NOT NULL")
            .execute(&self.it.pool)
            .await
            .expect("the lines are there");
        let first = store.release_lines(at, &terms, 10_000, 10_000, QUEUE_LEASE).await;
        let first = first.map(|released| released.promoted);
        let retries = store
            .promote_retries(at, None, &[], 10_000, 10_000, QUEUE_LEASE)
            .await;
        let first = promoted(first.expect("what is due is promoted"));
        let retries = promoted(retries.expect("what is due is promoted").notifications);
        self.publish(Queue::ResellerReady, &first).await;
        self.publish(Queue::ResellerRetry, &retries).await;
        first.len() + retries.len()
    }

    /// Puts rules in force.
    pub(crate) fn script(&self, rules: Vec<Rule>) {
        self.receiver.script(rules).expect("the rules make sense");
    }

    /// Everything that has arrived at a path, the oldest first.
    pub(crate) fn arrived_at(&self, path: &str) -> Vec<Received> {
        let mut arrived = self.receiver.received(0, 10_000).items;
        arrived.retain(|one| one.path == path);
        arrived
    }

    /// Waits until so many notifications have this status.
    pub(crate) async fn count_becomes(&self, status: NotificationStatus, count: i64) {
        eventually(&format!("{count} notifications to be {status}"), async || {
            (self.count(status).await == count).then_some(())
        })
        .await;
    }

    pub(crate) async fn count(&self, status: NotificationStatus) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM notifications WHERE status = $1")
            .bind(status.as_str())
            .fetch_one(&self.it.pool)
            .await
            .expect("notifications can be counted")
    }

    /// Waits until so many requests have no answer yet.
    pub(crate) async fn in_flight_becomes(&self, count: u64) {
        eventually(&format!("{count} requests in flight"), async || {
            (self.receiver.report().in_flight == count).then_some(())
        })
        .await;
    }

    pub(crate) async fn settled(&self, id: NotificationId, status: NotificationStatus) -> Row {
        eventually(&format!("notification {id} to become {status}"), async || {
            let row = row(&self.it.pool, id).await;
            (row.status == status.as_str()).then_some(row)
        })
        .await
    }
}

impl Engine {
    /// Stops it as a signal does.
    pub(crate) async fn stop(mut self) {
        self.ended().await;
    }

    /// Ends it in the middle of whatever it does, and leaves what it has claimed.
    pub(crate) fn kill(mut self) {
        leaves(Leftover::Claims);
        self.run = None;
    }

    fn ended(&mut self) -> impl Future<Output = ()> + Send + use<> {
        self.shutdown.trigger();
        let run = self.run.take();
        async move {
            let (_runtime, task) = run.expect("invariant: what takes it takes the engine too");
            tokio::time::timeout(PATIENCE, task)
                .await
                .expect("the engine stops")
                .expect("the engine does not panic");
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.run.is_some() {
            see_end(Box::pin(self.ended()));
        }
    }
}

/// An event of the reseller that the factories make subscriptions of.
pub(crate) fn event(at: DateTime<Utc>) -> NewEvent {
    let id = Uuid::now_v7();
    NewEvent {
        id,
        event_id: id.to_string(),
        reseller_id: "acme".to_owned(),
        event_type: "domain.created".to_owned(),
        body: format!(
            r#"{{"id":"{id}","type":"domain.created","timestamp":"2026-01-01T00:00:00.000Z","data":{{}}}}"#
        ),
        occurred_at: at,
        created_at: at,
        traceparent: None,
        keys: Vec::new(),
    }
}

/// What was promoted, to be published.
pub(crate) fn promoted(notifications: Vec<PromotedNotification>) -> Vec<FannedOut> {
    notifications
        .into_iter()
        .map(|one| FannedOut {
            id: one.id.into(),
            subscription_id: one.subscription_id,
            status: NotificationStatus::InMemory,
        })
        .collect()
}

/// A notification as it is stored.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct Row {
    pub(crate) status: String,
    pub(crate) reason: Option<String>,
    pub(crate) attempts: i32,
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
}

pub(crate) async fn row(pool: &PgPool, id: NotificationId) -> Row {
    sqlx::query_as("SELECT status, reason, attempts, next_attempt_at FROM notifications WHERE id = $1")
        .bind(id.uuid())
        .fetch_one(pool)
        .await
        .expect("the notification is stored")
}

/// A clock that stands still, a minute ahead, so that whatever a test has made before lies in its past.
pub(crate) fn frozen() -> Arc<ManualClock> {
    Arc::new(ManualClock::starting_at(
        SystemClock.now() + TimeDelta::minutes(1),
    ))
}
