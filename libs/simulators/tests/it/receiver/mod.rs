//! The receiver over real HTTP.

mod believing;
mod reporting;
mod scripting;
mod tls;

use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::clock::{Clock as _, ManualClock};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use signing::{Secret, signature_header};
use simulators::receiver::{Options, Receiver, Report, Running};
use tokio::net::TcpListener;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the clock of every test shows: 2025-07-20T08:26:40Z.
const NOW: i64 = 1_753_000_000;

struct Rig {
    running: Running,
    client: Client,
    clock: ManualClock,
}

impl Rig {
    async fn start(options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        lifecycle::crypto::install_default_provider();
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(PATIENCE)
            .build()
            .unwrap();
        let clock = ManualClock::starting_at(chrono::DateTime::from_timestamp(NOW, 0).unwrap());
        let options = Options {
            clock: Arc::new(clock.clone()),
            ..options
        };
        Self {
            running: Receiver::start(listener, options).unwrap(),
            client,
            clock,
        }
    }

    /// A request that is not signed.
    fn post(&self, path: &str, id: &str, event_type: &str) -> RequestBuilder {
        self.client
            .post(self.running.url(path))
            .header("webhook-id", id)
            .body(body(id, event_type))
    }

    /// A request that is signed now.
    fn signed(&self, path: &str, id: &str, secrets: &[&Secret]) -> RequestBuilder {
        let timestamp = self.clock.now().timestamp();
        let signature = signature_header(secrets, id, timestamp, body(id, "domain.created").as_bytes());
        self.post(path, id, "domain.created")
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", signature)
    }

    async fn status(&self, id: &str, event_type: &str) -> u16 {
        self.post("/hook", id, event_type)
            .send()
            .await
            .unwrap()
            .status()
            .as_u16()
    }

    async fn get(&self, path: &str) -> Value {
        let response = self.client.get(self.running.url(path)).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        json(response).await
    }

    async fn control(&self, order: &str) -> Response {
        let request = self.client.put(self.running.url("/_control"));
        request.body(order.to_owned()).send().await.unwrap()
    }

    /// Waits until the report is as wanted.
    async fn report_when(&self, wanted: impl Fn(&Report) -> bool) -> Report {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let report = self.running.report();
            if wanted(&report) {
                return report;
            }
            assert!(Instant::now() < deadline, "not reached: {report:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn body(id: &str, event_type: &str) -> String {
    format!(
        r#"{{"id":"{id}","type":"{event_type}","timestamp":"2025-07-20T08:26:39.500Z","data":{{"challenge":"c-1"}}}}"#
    )
}

async fn json(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}
