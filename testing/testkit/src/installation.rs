//! One test's own Postrider: a database, queues under a prefix, a Swrve simulator.

use std::sync::Arc;

use broker::{Broker, Envelope, Published, Queue};
use config::{Config, Secret};
use domain::clock::{Clock, SystemClock};
use domain::push::{Platform, PushId, PushRequest, PushStatus};
use lapin::options::BasicPublishOptions;
use simulators::swrve::{Options, ResponseTime, Running, SwrveSim};
use sqlx::{ConnectOptions, PgPool};
use store::Store;
use store::push::{NewPush, PushView};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::fixture::{Fixture, uses_queues};
use crate::patience::be_patient;
use crate::queues::{self, connect, exchange};
use crate::{amqp_url, eventually};

/// The message prototypes that an installation knows, each with a push key for both platforms.
pub const SWRVE_KEYS: [&str; 2] = ["Hello", "Good bye"];

/// What a test can use.
pub struct Installation {
    /// Leads to everything below.
    pub config: Config,
    /// The database.
    pub pool: PgPool,
    /// The same, as the services see it.
    pub store: Store,
    /// What stands in for Swrve; it answers at once unless told otherwise.
    pub sim: Running,
}

/// An acceptable request: an iOS push of the prototype `Hello`, without a sending window.
pub fn push_request(push_key: &str, message: &str) -> PushRequest {
    PushRequest {
        platform: Platform::Ios,
        message_prototype_key: Some("Hello".to_owned()),
        push_key: push_key.to_owned(),
        message: message.to_owned(),
        cron_expression: None,
        first_window: None,
    }
}

impl Fixture for Installation {
    async fn on(pool: PgPool) -> Self {
        let prefix = format!("test-{}-", Uuid::now_v7().simple());
        uses_queues(&prefix);
        Self::new(pool, &prefix).await
    }
}

impl Installation {
    async fn new(pool: PgPool, prefix: &str) -> Self {
        let database = pool.connect_options().to_url_lossy().to_string();
        let mut config = Config::for_tests(&database, &amqp_url()).expect("the settings of a test are valid");
        prefix.clone_into(&mut config.amqp.queue_prefix);
        config.database.max_connections = 4;
        be_patient(&mut config);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let options = Options {
            response_time: ResponseTime::Fixed(std::time::Duration::ZERO),
            requests_per_second: None,
            worker_threads: 1,
            ..Options::default()
        };
        let sim = SwrveSim::start(listener, options).expect("the simulator starts");
        config.swrve.url = Secret::new(format!("http://{}", sim.addr()));
        for prototype in SWRVE_KEYS {
            for platform in Platform::ALL {
                let key = Secret::new(format!("{prototype}-{platform}"));
                config
                    .swrve
                    .message_prototype_push_keys
                    .insert(prototype, platform, key);
            }
        }
        Self {
            config,
            store: Store::from_pool(pool.clone()),
            pool,
            sim,
        }
    }

    /// The configuration, as services take it.
    pub fn shared_config(&self) -> Arc<Config> {
        Arc::new(self.config.clone())
    }

    /// A broker connection of the test's own.
    pub fn broker(&self) -> Broker {
        Broker::start(broker::Settings {
            url: self.config.amqp.url.expose().to_owned(),
            queue_prefix: self.config.amqp.queue_prefix.clone(),
            connection_name: "test".to_owned(),
            push_queue_capacity: self.config.push.queue.capacity,
            reseller_queue_capacity: self.config.reseller.queue.capacity,
            confirm_timeout: self.config.amqp.confirm_timeout,
            max_unconfirmed: self.config.amqp.max_unconfirmed,
        })
    }

    /// Stores a push as the ingest service does and returns its identifier.
    ///
    /// # Panics
    ///
    /// When the database does not take it.
    pub async fn accept(&self, status: PushStatus, request: PushRequest) -> PushId {
        let now = SystemClock.now();
        let id = PushId::at(now);
        let push = NewPush {
            id,
            request,
            status,
            created_at: now,
            traceparent: None,
            idempotency: None,
        };
        let lease = std::time::Duration::from_secs(3_600);
        self.store
            .insert_pushes(&[push], lease)
            .await
            .expect("the push is stored");
        id
    }

    /// Publishes messages about pushes, as often as they are named.
    ///
    /// # Panics
    ///
    /// When the broker does not take one.
    pub async fn publish(&self, broker: &Broker, ids: &[PushId]) {
        let publisher = broker.publisher();
        for id in ids {
            let envelope = || vec![Envelope::push(id.uuid(), SystemClock.now(), None)];
            eventually("the broker to take a message", async || {
                let answers = publisher.publish(Queue::PushReady, envelope()).await;
                (answers == [Published::Confirmed]).then_some(())
            })
            .await;
        }
    }

    /// Puts any body into a queue, behind the back of the product.
    ///
    /// # Panics
    ///
    /// When the broker does not take it.
    pub async fn publish_raw(&self, queue: Queue, body: &[u8]) {
        let exchange = format!("{}{}", self.config.amqp.queue_prefix, exchange(queue));
        let connection = connect().await;
        let channel = connection.create_channel().await.expect("a channel");
        channel
            .confirm_select(Default::default())
            .await
            .expect("confirms");
        let options = BasicPublishOptions::default();
        let published = channel
            .basic_publish(
                exchange.into(),
                queue.name().into(),
                options,
                body,
                Default::default(),
            )
            .await
            .expect("the body is published");
        assert!(published.await.expect("the body is confirmed").is_ack());
        let _ = connection.close(200, "done".into()).await;
    }

    /// Takes a queue away from its exchange, so that the broker has nowhere to put a message. The next process to
    /// connect binds it again.
    ///
    /// # Panics
    ///
    /// When the broker does not do it.
    pub async fn unbind(&self, queue: Queue) {
        let prefix = &self.config.amqp.queue_prefix;
        let (name, key) = (format!("{prefix}{}", queue.name()), queue.name());
        let exchange = format!("{prefix}{}", exchange(queue));
        let connection = connect().await;
        let channel = connection.create_channel().await.expect("a channel");
        channel
            .queue_unbind(name.into(), exchange.into(), key.into(), Default::default())
            .await
            .expect("the queue is unbound");
        let _ = connection.close(200, "done".into()).await;
    }

    /// Deletes every queue and exchange of the installation, behind the back of the product.
    ///
    /// # Panics
    ///
    /// When the broker does not do it.
    pub async fn wipe_queues(&self) {
        let connection = connect().await;
        queues::remove(&connection, &self.config.amqp.queue_prefix).await;
        let _ = connection.close(200, "done".into()).await;
    }

    /// Waits until a push has this status.
    ///
    /// # Panics
    ///
    /// When it does not get it.
    pub async fn settled(&self, id: PushId, status: PushStatus) -> PushView {
        eventually(&format!("push {id} to become {status}"), async || {
            let push = self.store.find_push(id).await.ok().flatten()?;
            (push.status == status).then_some(push)
        })
        .await
    }
}
