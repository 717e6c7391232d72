//! The simulator over real HTTP.

mod push;
mod reporting;
mod scripting;

use std::time::{Duration, Instant};

use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::Value;
use simulators::swrve::{Options, Report, ResponseTime, Running, SwrveSim};
use tokio::net::TcpListener;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers at once and has no limit, unless a test wants otherwise.
fn quick() -> Options {
    Options {
        response_time: ResponseTime::Fixed(Duration::ZERO),
        requests_per_second: None,
        ..Options::default()
    }
}

struct Sim {
    running: Running,
    client: Client,
}

impl Sim {
    async fn start(options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        Self {
            running: SwrveSim::start(listener, options).unwrap(),
            client,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.running.addr())
    }

    fn request(&self, user: &str, message: &str) -> RequestBuilder {
        self.client
            .post(self.url("/push"))
            .form(&[("push_key", "k"), ("user", user), ("message", message)])
    }

    async fn push(&self, user: &str, message: &str) -> (StatusCode, Value) {
        json(self.request(user, message)).await
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = json(self.client.get(self.url(path))).await;
        assert_eq!(status, StatusCode::OK);
        body
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

async fn json(request: RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    let status = response.status();
    (status, response.json().await.unwrap())
}
