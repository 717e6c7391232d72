//! What the handlers share.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use config::{Config, Secret, WebpushEndpoint};
use domain::clock::Clock;
use http_api::Remembered;
use lifecycle::TaskGroup;
use store::Store;
use store::webpush::{NewMessage, Route, Stored};
use telemetry::Metric;
use telemetry::traces::{Kind, Span};
use tokio::time::Instant;
use url::Url;
use uuid::Uuid;
use webpush::{AuthKeys, Keys, MAX_TTL, Refusal, Vapid};

use crate::Error;
use crate::batch::{Batch, Sizes, Statement};
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::nodes::Nodes;

/// How long a look-up is taken to compute: one of hundreds of user agents takes a fraction of it.
const LOOK_UP: Duration = Duration::from_millis(2);

/// A channel of a client, as a sender asks for it.
pub(crate) type Target = (Uuid, Uuid);

/// The state behind every request.
pub(crate) struct App {
    pub(crate) keys: Keys,
    pub(crate) auth_keys: Option<AuthKeys>,
    /// Where senders reach this service.
    pub(crate) endpoint_url: String,
    /// Its origin, which statements of senders name.
    pub(crate) audience: String,
    pub(crate) max_ttl: TimeDelta,
    pub(crate) nodes: Nodes,
    pub(crate) limits: Limits,
    /// Statements of senders that were good a moment ago, by their digest.
    pub(crate) senders: Remembered<[u8; 32], Vapid>,
    pub(crate) store: Store,
    pub(crate) config: WebpushEndpoint,
    /// Most channels of a client.
    pub(crate) max_channels: u32,
    pub(crate) tasks: TaskGroup,
    pub(crate) metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
    routes: Batch<Target, Option<Route>>,
    stores: Batch<NewMessage, Stored>,
}

struct ReadRoutes(Store);

impl Statement<Target, Option<Route>> for ReadRoutes {
    async fn ask(&self, targets: &[Target]) -> Result<Vec<Option<Route>>, store::Error> {
        self.0.webpush_routes(targets).await
    }
}

struct StoreMessages(Store);

impl Statement<NewMessage, Stored> for StoreMessages {
    async fn ask(&self, messages: &[NewMessage]) -> Result<Vec<Stored>, store::Error> {
        self.0.webpush_store(messages).await
    }
}

impl App {
    pub(crate) fn new(
        config: &Config,
        store: Store,
        clock: Arc<dyn Clock>,
        tasks: TaskGroup,
    ) -> Result<Self, Error> {
        let webpush = &config.webpush;
        let mut endpoint = webpush.endpoint.clone();
        // Of a node that says nothing: to wait for it, to forget it and to store the message all have to fit into the request.
        endpoint.node_timeout = endpoint.node_timeout.min(endpoint.request_timeout / 3);
        // A commit waits for the disk: the next one need not wait for it.
        let storing = Sizes {
            workers: endpoint.writers,
            most: endpoint.batch_rows,
            alone: Duration::ZERO,
        };
        let reading = Sizes {
            alone: LOOK_UP,
            ..storing
        };
        let stored_together = Metric::WebpushBatchRows.histogram(&[]);
        let auth_keys = AuthKeys::parse(&joined(&endpoint.auth_keys)).ok();
        if auth_keys.is_none() {
            tracing::warn!("webpush.endpoint.authKeys is not set: clients cannot register over HTTP");
        }
        Ok(Self {
            keys: Keys::parse(&joined(&webpush.keys)).map_err(Error::Keys)?,
            auth_keys,
            audience: origin(&webpush.endpoint_url),
            endpoint_url: webpush.endpoint_url.clone(),
            max_ttl: TimeDelta::from_std(endpoint.max_ttl).unwrap_or(MAX_TTL),
            nodes: Nodes::new(&endpoint)?,
            limits: Limits::new(&endpoint),
            senders: Remembered::default(),
            routes: Batch::start(
                ReadRoutes(store.clone()),
                "read user agents",
                reading,
                None,
                &tasks,
            ),
            stores: Batch::start(
                StoreMessages(store.clone()),
                "store messages",
                storing,
                Some(&stored_together),
                &tasks,
            ),
            store,
            config: endpoint,
            max_channels: webpush.connection.max_channels,
            tasks,
            metrics: Arc::new(Metrics::new()),
            clock,
        })
    }

    /// The present time, as precise as the database keeps it.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now().trunc_subsecs(6)
    }

    /// When a request that starts now has to be answered.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.config.request_timeout
    }

    /// What has to be known of a client and its channel.
    pub(crate) async fn route(&self, target: Target) -> Result<Option<Route>, Refusal> {
        self.routes.ask(target).await.map_err(|_| Refusal::Storage)
    }

    /// Stores a message together with others.
    pub(crate) async fn keep(&self, message: NewMessage) -> Result<Stored, Refusal> {
        let mut wait = Span::under_current(Kind::Internal, ("wait to store", "messages"));
        let stored = self.stores.ask(message).await;
        stored.map_err(|_| {
            wait.fail("storage");
            Refusal::Storage
        })
    }
}

fn joined(keys: &[Secret]) -> String {
    let keys: Vec<&str> = keys.iter().map(Secret::expose).collect();
    keys.join(",")
}

/// The origin of a URL, without the port that its scheme has anyway.
fn origin(url: &str) -> String {
    Url::parse(url).map_or_else(|_| url.to_owned(), |url| url.origin().ascii_serialization())
}
