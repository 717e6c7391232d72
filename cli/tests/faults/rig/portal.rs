//! The reseller's way in: a portal of its own, and its key.

use reqwest::{Client, Method};
use serde_json::Value;

use super::process::Process;

pub(crate) struct Portal {
    pub(super) address: String,
    pub(super) process: Process,
    pub(super) http: Client,
    pub(super) key: String,
    /// Of the trace that its callers have already, if they have one.
    pub(super) traceparent: Option<&'static str>,
}

impl Portal {
    /// The same for callers that are in a trace.
    pub(crate) fn with_traceparent(self, traceparent: &'static str) -> Self {
        Self {
            traceparent: Some(traceparent),
            ..self
        }
    }

    /// Stops it, and waits for its end.
    pub(crate) async fn stop(self) {
        self.process.ask_to_stop();
        self.process.ended().await;
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.ask(Method::GET, path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Option<&Value>) -> Value {
        self.ask(Method::POST, path, body).await
    }

    /// The answer, which must be a success.
    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let url = format!("http://{}{path}", self.address);
        let mut request = self.http.request(method, url).bearer_auth(&self.key);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(traceparent) = self.traceparent {
            request = request.header("traceparent", traceparent);
        }
        let response = request.send().await.expect("the portal answers");
        let status = response.status();
        let answer = response.text().await.expect("the answer is text");
        assert!(status.is_success(), "{path} was answered {status}: {answer}");
        serde_json::from_str(&answer).expect("the answer is JSON")
    }
}
