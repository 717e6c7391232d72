//! The service as a test sees it: in an installation of the test's own, and on a clock of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use chrono::{DateTime, SubsecRound as _, Utc};
use config::Config;
use domain::clock::{Clock, ManualClock, SystemClock};
use domain::key::Role;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;
use sqlx::PgPool;
use testkit::{Fixture, Installation, Service, eventually, key_of_the_house};
use tokio::net::TcpListener;

/// The service at work, with the key of an operator.
pub(crate) struct Rig {
    /// What it stands on: `it.pool`, `it.store`, `it.broker()`.
    pub(crate) it: Installation,
    pub(crate) clock: ManualClock,
    /// An operator's key.
    pub(crate) key: String,
    address: SocketAddr,
    client: Client,
    _service: Service<operator_api::Error>,
}

impl Fixture for Rig {
    async fn on(pool: PgPool) -> Self {
        Self::with(pool, |_| ()).await
    }
}

impl Rig {
    /// The service with another configuration than the default.
    pub(crate) async fn with(pool: PgPool, adapt: impl FnOnce(&mut Config)) -> Self {
        let mut it = Installation::on(pool).await;
        it.config.portal.public_url = Some("https://dashboard.example".to_owned());
        adapt(&mut it.config);
        Self::start(it).await
    }

    async fn start(it: Installation) -> Self {
        lifecycle::crypto::install_default_provider();
        let clock = ManualClock::starting_at(SystemClock.now().trunc_subsecs(6));
        let (address, service) = serve(&it, &clock).await;
        let key = key_of_the_house(&it.store, &[Role::Operator]).await;
        Self {
            it,
            clock,
            key,
            address,
            client: Client::new(),
            _service: service,
        }
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// A key of the house with this role.
    pub(crate) async fn key_of(&self, role: Role) -> String {
        key_of_the_house(&self.it.store, &[role]).await
    }

    /// Where a path of the service is.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A request without a key.
    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        self.client.request(method.parse().unwrap(), self.url(path))
    }

    /// A request with the operator's key.
    pub(crate) fn call(&self, method: &str, path: &str) -> RequestBuilder {
        self.request(method, path).bearer_auth(&self.key)
    }

    /// What the operator gets to see there.
    pub(crate) async fn see(&self, path: &str) -> Value {
        answer(self.call("GET", path).send().await.unwrap(), 200).await
    }

    /// What the operator's `POST` is answered.
    pub(crate) async fn act(&self, path: &str, body: &Value, status: u16) -> Value {
        answer(self.call("POST", path).json(body).send().await.unwrap(), status).await
    }

    /// Why the operator's request is refused.
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

    /// Every entry of a list, part by part.
    pub(crate) async fn all(&self, path: &str, limit: usize) -> Vec<Value> {
        let join = if path.contains('?') { '&' } else { '?' };
        let mut items = Vec::new();
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

async fn serve(it: &Installation, clock: &ManualClock) -> (SocketAddr, Service<operator_api::Error>) {
    let listener = TcpListener::bind(it.config.operator.listen).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (config, clock) = (it.shared_config(), Arc::new(clock.clone()));
    let service = Service::start(config.shutdown.grace_period, |lifecycle| {
        operator_api::run_with_clock(config, listener, lifecycle, clock)
    });
    eventually("the service to answer", async || {
        let answer = reqwest::get(format!("http://{address}/healthz")).await.ok()?;
        answer.status().is_success().then_some(())
    })
    .await;
    (address, service)
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

/// The fields or parameters that a problem names.
pub(crate) fn fields(problem: &Value) -> Vec<&str> {
    let errors = problem["errors"].as_array().map(Vec::as_slice);
    errors
        .unwrap_or_default()
        .iter()
        .map(|error| error["field"].as_str().unwrap())
        .collect()
}
