//! A node as a test sees it: on a clock of the test's own, with the part that endpoint nodes play.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use config::Config;
use domain::clock::{Clock, ManualClock, SystemClock};
use domain::month::Month;
use reqwest::{Client as Http, StatusCode};
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, PgPool};
use store::Store;
use store::webpush::{MessageBody, NewMessage, Stored};
use testkit::{Fixture, PATIENCE, Service};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::client::Client;

/// Longer than any test: what a test does not wait for does not happen.
const NEVER: Duration = Duration::from_secs(3600);

/// A database, a clock, and a node on them.
pub(crate) struct Rig {
    pub(crate) pool: PgPool,
    pub(crate) store: Store,
    pub(crate) clock: ManualClock,
    pub(crate) node: Node,
}

impl Fixture for Rig {
    async fn on(pool: PgPool) -> Self {
        Self::with(pool, |_| {}).await
    }
}

impl Rig {
    pub(crate) async fn with(pool: PgPool, adapt: impl FnOnce(&mut Config)) -> Self {
        let clock = ManualClock::starting_at(SystemClock.now().trunc_subsecs(6));
        let node = Node::start(&pool, &clock, adapt).await;
        Self {
            store: Store::from_pool(pool.clone()),
            pool,
            clock,
            node,
        }
    }

    /// Another node on the same database.
    pub(crate) async fn another_node(&self) -> Node {
        Node::start(&self.pool, &self.clock, |_| {}).await
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// What an endpoint node stores.
    pub(crate) async fn put(&self, message: NewMessage) -> Stored {
        self.store.webpush_store(&[message]).await.unwrap().remove(0)
    }

    pub(crate) fn message(&self, client: &Client, version: &str) -> NewMessage {
        NewMessage {
            uaid: client.uaid,
            channel: client.channel,
            topic: None,
            version: version.to_owned(),
            received_at: self.now(),
            expires_at: self.now() + TimeDelta::hours(1),
            body: Some(MessageBody {
                data: vec![0xff, 0xfe],
                encoding: "aes128gcm".to_owned(),
                encryption: None,
                crypto_key: None,
            }),
        }
    }

    /// A message of the topic `news`.
    pub(crate) fn of_topic(&self, client: &Client, version: &str, received_at: DateTime<Utc>) -> NewMessage {
        NewMessage {
            topic: Some("news".to_owned()),
            received_at,
            ..self.message(client, version)
        }
    }

    /// The versions that wait for a client in the month that it is in.
    pub(crate) async fn waiting(&self, client: &Client) -> Vec<String> {
        let row = self.store.webpush_client(client.uaid).await.unwrap().unwrap();
        self.waiting_in(client, row.month).await
    }

    pub(crate) async fn waiting_in(&self, client: &Client, month: Month) -> Vec<String> {
        let waiting = self
            .store
            .webpush_waiting(client.uaid, month, self.now(), &[], 1000);
        let waiting = waiting.await.unwrap();
        waiting.into_iter().map(|message| message.version).collect()
    }

    pub(crate) async fn node_of(&self, client: &Client) -> Option<String> {
        self.store.webpush_client(client.uaid).await.unwrap()?.node
    }
}

/// A node at work.
pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    pub(crate) name: String,
    http: Http,
    service: Service<webpush_connection::Error>,
}

impl Node {
    pub(crate) async fn start(pool: &PgPool, clock: &ManualClock, adapt: impl FnOnce(&mut Config)) -> Self {
        lifecycle::crypto::install_default_provider();
        let database = pool.connect_options().to_url_lossy().to_string();
        let mut config = Config::for_tests(&database, "amqp://unused").unwrap();
        config.database.max_connections = 4;
        config.database.acquire_timeout = PATIENCE;
        config.webpush.connection.hello_timeout = NEVER;
        config.webpush.connection.pong_timeout = NEVER;
        config.webpush.connection.drain = Duration::ZERO;
        // Clients that acknowledge do so in time, and the others are waited for as shortly as can be.
        config.webpush.connection.ack_wait = Duration::from_secs(2);
        adapt(&mut config);
        let public = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let router = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, name) = (
            public.local_addr().unwrap(),
            format!("http://{}", router.local_addr().unwrap()),
        );
        let (grace, clock) = (config.shutdown.grace_period, Arc::new(clock.clone()));
        let service = Service::start(grace, |lifecycle| {
            webpush_connection::run_with_clock(Arc::new(config), (public, router), lifecycle, clock)
        });
        Self {
            address,
            name,
            http: Http::new(),
            service,
        }
    }

    /// A client that has connected, said hello and registered a channel.
    pub(crate) async fn client(&self) -> Client {
        let mut client = Client::connect(self.address).await;
        client.hello().await;
        client.register().await;
        // Its first channel has storage read, and the node listens again only then: what a test stores comes when the test wants it.
        client.register().await;
        client
    }

    /// A client that was connected before and comes (back) to this node.
    pub(crate) async fn again(&self, client: &Client) -> Client {
        let mut again = Client::connect(self.address).await;
        (again.uaid, again.channel) = (client.uaid, client.channel);
        again.hello().await;
        again
    }

    /// What an endpoint node hands over; the answer.
    pub(crate) fn push(
        &self,
        client: &Client,
        version: &str,
        ttl: u32,
    ) -> impl Future<Output = StatusCode> + Send + use<> {
        self.push_to(&client.uaid.simple().to_string(), client.channel, version, ttl)
    }

    pub(crate) fn push_to(
        &self,
        uaid: &str,
        channel: Uuid,
        version: &str,
        ttl: u32,
    ) -> impl Future<Output = StatusCode> + Send + use<> {
        let body = json!({
            "channelID": channel, "version": version, "ttl": ttl, "topic": null, "timestamp": 1_000_000_000,
            "data": "__4", "headers": {"encoding": "aes128gcm"},
        });
        self.put_push(uaid, &body)
    }

    /// Hands over a message of the topic `news`, as an endpoint node that received it `at` does.
    pub(crate) fn push_of_topic(
        &self,
        client: &Client,
        version: &str,
        at: DateTime<Utc>,
    ) -> impl Future<Output = StatusCode> + Send + use<> {
        let body = json!({
            "channelID": client.channel, "version": version, "ttl": 60, "topic": "news", "timestamp": at.timestamp(),
            "receivedAtMicros": at.timestamp_micros(),
        });
        self.put_push(&client.uaid.to_string(), &body)
    }

    fn put_push(&self, uaid: &str, body: &Value) -> impl Future<Output = StatusCode> + Send + use<> {
        let request = self.http.put(format!("{}/push/{uaid}", self.name)).json(body);
        async move { request.send().await.unwrap().status() }
    }

    /// Says that something was stored.
    pub(crate) async fn notify(&self, client: &Client) -> StatusCode {
        let url = format!("{}/notif/{}", self.name, client.uaid);
        self.http.put(url).send().await.unwrap().status()
    }

    pub(crate) async fn see(&self, url: String) -> (StatusCode, Value) {
        let answer = self.http.get(url).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap_or_default())
    }

    pub(crate) async fn put_at(&self, url: String) -> StatusCode {
        self.http.put(url).send().await.unwrap().status()
    }

    pub(crate) fn ask_to_stop(&self) {
        self.service.ask_to_stop();
    }

    pub(crate) async fn stop(self) {
        self.service.stop().await;
    }
}
