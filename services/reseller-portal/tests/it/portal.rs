//! The service as a test sees it: on a database and a clock of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use chrono::{DateTime, SubsecRound as _, Utc};
use config::Config;
use domain::clock::{Clock, ManualClock, SystemClock};
use domain::key::Role;
use lifecycle::Lifecycle;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, PgPool};
use store::Store;
use testkit::{Fixture, PATIENCE, Service, eventually, key_of_the_house, key_of_the_reseller};
use tokio::net::TcpListener;
use uuid::Uuid;

/// The service at work, with the key of the reseller `acme`.
pub(crate) struct Portal {
    pub(crate) pool: PgPool,
    pub(crate) store: Store,
    pub(crate) clock: ManualClock,
    pub(crate) config: Config,
    pub(crate) key: String,
    pub(crate) address: SocketAddr,
    client: Client,
    service: Service<reseller_portal::Error>,
}

impl Fixture for Portal {
    async fn on(pool: PgPool) -> Self {
        Self::start(pool).await
    }
}

impl Portal {
    pub(crate) async fn start(pool: PgPool) -> Self {
        Self::start_with(pool, |_| {}).await
    }

    /// Starts it with another configuration than the default.
    pub(crate) async fn start_with(pool: PgPool, adapt: impl FnOnce(&mut Config)) -> Self {
        lifecycle::crypto::install_default_provider();
        let database = pool.connect_options().to_url_lossy().to_string();
        let mut config = Config::for_tests(&database, "amqp://unused").unwrap();
        config.database.max_connections = 4;
        // What is only slow is waited for.
        config.database.acquire_timeout = PATIENCE;
        config.portal.request_timeout = PATIENCE;
        adapt(&mut config);
        let clock = ManualClock::starting_at(SystemClock.now().trunc_subsecs(6));
        let (address, service) = serve(&config, &clock).await;
        let store = Store::from_pool(pool.clone());
        let key = key_of_the_reseller(&store, "acme").await;
        Self {
            pool,
            store,
            clock,
            config,
            key,
            address,
            client: Client::new(),
            service,
        }
    }

    pub(crate) async fn stop(self) {
        self.service.stop().await;
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// A key of another reseller.
    pub(crate) async fn key_of(&self, reseller: &str) -> String {
        key_of_the_reseller(&self.store, reseller).await
    }

    /// A key of the house.
    pub(crate) async fn house_key(&self, role: Role) -> String {
        key_of_the_house(&self.store, &[role]).await
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let url = format!("http://{}{path}", self.address);
        self.client.request(method.parse().unwrap(), url)
    }

    /// A request with acme's key.
    pub(crate) fn call(&self, method: &str, path: &str) -> RequestBuilder {
        self.request(method, path).bearer_auth(&self.key)
    }

    /// What acme gets to see there.
    pub(crate) async fn see(&self, path: &str) -> Value {
        self.done("GET", path, 200).await
    }

    /// The answer to acme's request without a body.
    pub(crate) async fn done(&self, method: &str, path: &str, status: u16) -> Value {
        answer(self.call(method, path).send().await.unwrap(), status).await
    }

    /// The answer to acme's request with a body.
    pub(crate) async fn sent(&self, method: &str, path: &str, body: &Value, status: u16) -> Value {
        let request = self.call(method, path).json(body);
        answer(request.send().await.unwrap(), status).await
    }

    /// Why acme's request is refused.
    pub(crate) async fn refused(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        (status, name): (u16, &str),
    ) -> Value {
        let request = self.call(method, path);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        problem(request.send().await.unwrap(), status, name).await
    }

    /// Makes a subscription of acme's over the API; returns the whole answer.
    pub(crate) async fn created(&self) -> Value {
        self.sent("POST", "/subscriptions", &subscription(), 201).await
    }

    /// Every entry of a list of acme's, part by part.
    pub(crate) async fn all(&self, path: &str, limit: usize) -> Vec<Value> {
        let mut items = Vec::new();
        let join = if path.contains('?') { '&' } else { '?' };
        let mut next = format!("{path}{join}limit={limit}");
        loop {
            let part = self.see(&next).await;
            let entries = part["items"].as_array().unwrap();
            assert!(entries.len() <= limit, "{part}");
            items.extend(entries.iter().cloned());
            match part["next"].as_str() {
                Some(cursor) => next = format!("{path}{join}limit={limit}&cursor={cursor}"),
                None => return items,
            }
        }
    }
}

async fn serve(config: &Config, clock: &ManualClock) -> (SocketAddr, Service<reseller_portal::Error>) {
    let listener = TcpListener::bind(config.portal.listen).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (grace, config, clock) = (
        config.shutdown.grace_period,
        Arc::new(config.clone()),
        clock.clone(),
    );
    let service = Service::start(grace, |lifecycle: Lifecycle| {
        reseller_portal::run_with_clock(config, listener, lifecycle, Arc::new(clock))
    });
    eventually("the service to answer", async || {
        let answer = reqwest::get(format!("http://{address}/healthz")).await.ok()?;
        answer.status().is_success().then_some(())
    })
    .await;
    (address, service)
}

/// A subscription that is accepted.
pub(crate) fn subscription() -> Value {
    json!({
        "url": "https://reseller.example/hooks",
        "eventTypes": ["domain.*"],
        "email": "ops@reseller.example",
        "description": "Domains",
    })
}

/// The JSON of an answer with this status; null for one without a body.
pub(crate) async fn answer(answer: Response, status: u16) -> Value {
    let (found, text) = (answer.status().as_u16(), answer.text().await.unwrap());
    assert_eq!(found, status, "{text}");
    if text.is_empty() {
        return Value::Null;
    }
    serde_json::from_str(&text).unwrap()
}

/// The answer's problem, after checking what every problem has.
pub(crate) async fn problem(response: Response, status: u16, name: &str) -> Value {
    let content_type = response.headers()["content-type"].clone();
    let problem = answer(response, status).await;
    assert_eq!(content_type, "application/problem+json", "{problem}");
    assert_eq!(
        problem["type"],
        format!("urn:postrider:problem:{name}"),
        "{problem}"
    );
    problem
}

/// The fields that a problem names.
pub(crate) fn fields(problem: &Value) -> Vec<&str> {
    let errors = problem["errors"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    errors
        .iter()
        .map(|error| error["field"].as_str().unwrap())
        .collect()
}

pub(crate) fn id_of(document: &Value) -> Uuid {
    document["id"].as_str().unwrap().parse().unwrap()
}

/// E-mails that wait to be sent, by kind and recipient, with what they tell of.
pub(crate) async fn emails(pool: &PgPool) -> Vec<(String, String, Value)> {
    sqlx::query_as("SELECT kind, recipient, data FROM emails ORDER BY created_at, id")
        .fetch_all(pool)
        .await
        .unwrap()
}
