//! The service at work, with one client that has one channel.

use std::net::SocketAddr;
use std::sync::Arc;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use config::Config;
use domain::clock::{Clock as _, ManualClock, SystemClock};
use domain::month::Month;
use lifecycle::Lifecycle;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;
use sqlx::{ConnectOptions as _, PgPool};
use store::Store;
use store::webpush::Message;
use testkit::{PATIENCE, Service};
use tokio::net::TcpListener;
use uuid::Uuid;
use webpush::{Keys, Subscription, VapidKey};

/// Where senders think that the service is.
pub(crate) const PUBLIC: &str = "https://push.example";

pub(crate) struct Scene {
    pub(crate) pool: PgPool,
    pub(crate) store: Store,
    pub(crate) clock: ManualClock,
    pub(crate) config: Config,
    pub(crate) keys: Keys,
    pub(crate) uaid: Uuid,
    pub(crate) channel: Uuid,
    pub(crate) address: SocketAddr,
    client: Client,
    service: Service<webpush_endpoint::Error>,
}

impl Scene {
    pub(crate) async fn start(pool: PgPool) -> Self {
        Self::start_with(pool, |_| {}).await
    }

    pub(crate) async fn start_with(pool: PgPool, adapt: impl FnOnce(&mut Config)) -> Self {
        lifecycle::crypto::install_default_provider();
        let database = pool.connect_options().to_url_lossy().to_string();
        let mut config = Config::for_tests(&database, "amqp://unused").unwrap();
        config.database.max_connections = 4;
        config.database.acquire_timeout = PATIENCE;
        config.webpush.endpoint_url = PUBLIC.to_owned();
        config.webpush.endpoint.request_timeout = PATIENCE;
        config.webpush.endpoint.auth_keys = vec![config::Secret::new("AAAA")];
        adapt(&mut config);
        let clock = ManualClock::starting_at(SystemClock.now().trunc_subsecs(6));
        let (address, service) = serve(&config, &clock).await;
        let keys: Vec<&str> = config.webpush.keys.iter().map(config::Secret::expose).collect();
        let scene = Self {
            store: Store::from_pool(pool.clone()),
            keys: Keys::parse(&keys.join(",")).unwrap(),
            pool,
            clock,
            config,
            uaid: Uuid::new_v4(),
            channel: Uuid::new_v4(),
            address,
            client: Client::new(),
            service,
        };
        scene.register(scene.uaid, scene.channel).await;
        scene
    }

    pub(crate) async fn stop(self) {
        self.service.stop().await;
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    pub(crate) fn month(&self) -> Month {
        Month::containing(self.now())
    }

    pub(crate) async fn register(&self, uaid: Uuid, channel: Uuid) {
        let (now, month) = (self.now(), self.month());
        let registering = self.store.webpush_register(uaid, None, now, month, channel, 100);
        registering.await.unwrap();
    }

    /// The client connects to a node.
    pub(crate) async fn connect(&self, node: &str) -> DateTime<Utc> {
        let now = self.clock.now();
        self.clock.advance(TimeDelta::milliseconds(1));
        let client = self
            .store
            .webpush_connect(self.uaid, node, now)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(client.node.as_deref(), Some(node));
        now
    }

    /// Where the client is thought to be connected.
    pub(crate) async fn node(&self) -> Option<String> {
        self.store.webpush_client(self.uaid).await.unwrap().unwrap().node
    }

    /// The path of the endpoint of the client's channel.
    pub(crate) fn path(&self, key: Option<&VapidKey>) -> String {
        self.path_of(&Subscription::new(self.uaid, self.channel, key))
    }

    pub(crate) fn path_of(&self, subscription: &Subscription) -> String {
        webpush::endpoint_url("", subscription, &self.keys, self.now())
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let url = format!("http://{}{path}", self.address);
        self.client.request(method.parse().unwrap(), url)
    }

    /// A message of an hour with a body.
    pub(crate) fn post(&self, path: &str) -> RequestBuilder {
        self.request("POST", path)
            .header("TTL", "3600")
            .header("Content-Encoding", "aes128gcm")
            .body("encrypted")
    }

    /// Sends a message to the client's channel, and returns its id.
    pub(crate) async fn send(&self) -> String {
        accepted(self.post(&self.path(None)).send().await.unwrap()).await
    }

    /// What waits for the client in the present month.
    pub(crate) async fn waiting(&self) -> Vec<Message> {
        self.waiting_in(self.month()).await
    }

    pub(crate) async fn waiting_in(&self, month: Month) -> Vec<Message> {
        let waiting = self.store.webpush_waiting(self.uaid, month, self.now(), &[], 100);
        waiting.await.unwrap()
    }

    /// The message ids of what waits.
    pub(crate) async fn versions(&self) -> Vec<String> {
        self.waiting()
            .await
            .into_iter()
            .map(|message| message.version)
            .collect()
    }
}

async fn serve(config: &Config, clock: &ManualClock) -> (SocketAddr, Service<webpush_endpoint::Error>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (config, clock) = (Arc::new(config.clone()), Arc::new(clock.clone()));
    let grace = config.shutdown.grace_period;
    let service = Service::start(grace, |lifecycle: Lifecycle| {
        webpush_endpoint::run_with_clock(config, listener, lifecycle, clock)
    });
    (address, service)
}

/// The message id in an answer 201.
pub(crate) async fn accepted(response: Response) -> String {
    let status = response.status().as_u16();
    let location = response.headers().get("location").cloned();
    let body = response.text().await.unwrap();
    assert_eq!(status, 201, "{body}");
    assert_eq!(body, "");
    let location = location.unwrap();
    let id = location.to_str().unwrap().strip_prefix(&format!("{PUBLIC}/m/"));
    id.unwrap().to_owned()
}

/// The number in an error, whose document is as the contract says.
pub(crate) async fn refused(response: Response, status: u16) -> Option<u64> {
    assert_eq!(response.status().as_u16(), status);
    let gone = response.headers().get("cache-control").cloned();
    assert_eq!(gone.is_some_and(|value| value == "max-age=86400"), status == 410);
    let later = response.headers().get("retry-after").cloned();
    assert_eq!(later.is_some_and(|value| value == "120"), status == 503);
    let document: Value = response.json().await.unwrap();
    assert_eq!(document["code"], status);
    for text in ["error", "message", "more_info"] {
        assert!(
            document[text].as_str().is_some_and(|text| !text.is_empty()),
            "{document}"
        );
    }
    document["errno"].as_u64()
}
