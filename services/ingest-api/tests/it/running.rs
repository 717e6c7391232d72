//! The service as a test sees it.

use std::net::SocketAddr;
use std::sync::Arc;

use config::Config;
use domain::clock::{Clock, SystemClock};
use domain::key::Role;
use domain::push::PushId;
use ingest_api::Error;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use sqlx::PgPool;
use store::{ApiKey, Store};
use testkit::{Installation, PATIENCE, Service, eventually, key_stored_as};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

/// A service that runs, and a key with which it can be used.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) key: String,
    client: Client,
    pub(crate) service: Service<Error>,
}

impl Running {
    /// Starts the service and waits until it is ready.
    pub(crate) async fn ready(it: &Installation) -> Self {
        let running = Self::start(it, it.config.clone()).await;
        running.until_ready().await;
        running
    }

    /// Starts the service with another configuration than the installation's.
    pub(crate) async fn start(it: &Installation, config: Config) -> Self {
        let key = make_key(&it.store, &[Role::Ingest]).await.1;
        Self::start_with(config, key).await
    }

    /// Starts the service on whatever is configured, reachable or not.
    pub(crate) async fn start_with(config: Config, key: String) -> Self {
        lifecycle::crypto::install_default_provider();
        let listener = TcpListener::bind(config.ingest.listen).await.unwrap();
        let address = listener.local_addr().unwrap();
        // How long it takes to end is up to callers that have not finished.
        let service = Service::start(PATIENCE, |lifecycle| {
            ingest_api::run(Arc::new(config), listener, lifecycle)
        });
        Self {
            address,
            key,
            client: Client::new(),
            service,
        }
    }

    pub(crate) async fn until_ready(&self) {
        eventually("the service to be ready", async || {
            let answer = self.get("/readyz").send().await.ok()?;
            (answer.status() == StatusCode::OK).then_some(())
        })
        .await;
    }

    /// Asks the service to stop and waits until it has.
    pub(crate) async fn stop(self) {
        self.service.stop().await;
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = method.parse().unwrap();
        self.client
            .request(method, format!("http://{}{path}", self.address))
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.request("GET", path).bearer_auth(&self.key)
    }

    /// How a look at `path` with another key is answered.
    pub(crate) async fn look_with(&self, key: &str, path: &str) -> StatusCode {
        let looking = self.request("GET", path).bearer_auth(key);
        looking.send().await.unwrap().status()
    }

    /// `POST /push` with this body.
    pub(crate) fn post(&self, body: &Value) -> RequestBuilder {
        self.request("POST", "/push").bearer_auth(&self.key).json(body)
    }

    /// Hands in a push that is accepted, and returns its identifier.
    pub(crate) async fn accepted(&self, body: &Value) -> PushId {
        location(&self.post(body).send().await.unwrap())
    }

    /// `GET /push/{id}` of a push that exists.
    pub(crate) async fn look_up(&self, id: PushId) -> Value {
        let answer = self.get(&format!("/push/{id}")).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        answer.json().await.unwrap()
    }

    /// A connection on which a test can write what no client would.
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// The head of `POST /push` with further header lines.
    pub(crate) fn head(&self, headers: &str) -> String {
        format!(
            "POST /push HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\n\
             authorization: Bearer {}\r\n{headers}\r\n\r\n",
            self.key
        )
    }

    /// Writes a request byte by byte and returns the answer as it came.
    pub(crate) async fn raw(&self, request: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(request).await.unwrap();
        read_to_end(&mut stream).await
    }
}

pub(crate) async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

/// A body that is accepted.
pub(crate) fn push() -> Value {
    json!({
        "platform": "IOS",
        "messagePrototypeKey": "Hello",
        "pushKey": "463B3209-6E33-4E88-AF52-CDA87C0550EC",
        "message": "Hello client!",
        "cronExpression": null,
    })
}

/// The same with another text, by which it can be found.
pub(crate) fn push_saying(message: &str) -> Value {
    let mut body = push();
    body["message"] = message.into();
    body
}

/// The identifier in the `Location` of a 202.
pub(crate) fn location(answer: &Response) -> PushId {
    assert_eq!(answer.status(), StatusCode::ACCEPTED);
    let location = answer.headers()["location"].to_str().unwrap();
    let id: Uuid = location.strip_prefix("/push/").unwrap().parse().unwrap();
    id.into()
}

/// Makes an API key; returns its identifier and the key.
pub(crate) async fn make_key(store: &Store, roles: &[Role]) -> (Uuid, String) {
    let of_reseller = roles.iter().any(|role| role.is_of_reseller());
    let reseller = of_reseller.then(|| "acme".to_owned());
    let stored = ApiKey::new("test".to_owned(), roles.to_vec(), reseller, SystemClock.now());
    (stored.id, key_stored_as(store, &stored).await)
}

/// How many pushes are stored.
pub(crate) async fn stored(pool: &PgPool) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM push_notifications")
        .fetch_one(pool)
        .await
        .unwrap()
}

/// How many pushes with this text are stored.
pub(crate) async fn stored_saying(pool: &PgPool, message: &str) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM push_notifications WHERE message = $1")
        .bind(message)
        .fetch_one(pool)
        .await
        .unwrap()
}

/// The answer's problem, after checking what every problem has.
pub(crate) async fn problem(answer: Response, status: u16, name: &str) -> Value {
    assert_eq!(answer.status().as_u16(), status);
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(problem["type"], format!("urn:postrider:problem:{name}"));
    assert_eq!(problem["status"], status);
    assert!(
        problem["title"].is_string() && problem["detail"].is_string(),
        "{problem}"
    );
    problem
}
