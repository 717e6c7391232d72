//! The HTTP client for a collector.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use super::Signal;
use crate::Error;

/// How long a collector may take to answer.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

/// A client for batch processors, which export from threads of their own where no Tokio runtime is: the request runs on the runtime
/// that set telemetry up, and the thread waits for it.
#[derive(Debug)]
pub(super) struct OnRuntime {
    signal: Signal,
    client: reqwest::Client,
    runtime: Handle,
    failing: AtomicBool,
}

impl OnRuntime {
    pub(super) fn new(signal: Signal) -> Result<Self, Error> {
        lifecycle::crypto::install_default_provider();
        let client = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(Error::Client)?;
        Ok(Self {
            signal,
            client,
            runtime: Handle::current(),
            failing: AtomicBool::new(false),
        })
    }

    /// Logs the first failure of a row and its end, rather than one line every few seconds.
    fn note(&self, failure: Option<String>) {
        let signal = self.signal.name();
        let failed_before = self.failing.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(error) if !failed_before => {
                tracing::warn!(
                    signal,
                    error,
                    "telemetry cannot be delivered and is lost until it can"
                );
            }
            None if failed_before => tracing::info!(signal, "telemetry is delivered again"),
            _ => {}
        }
    }
}

#[async_trait::async_trait]
impl HttpClient for OnRuntime {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        // Without a subscriber, so that sending spans makes no spans.
        let sending = async move { client.send_bytes(request).await.map_err(without_url) }
            .with_subscriber(NoSubscriber::default());
        let answer = match self.runtime.spawn(sending).await {
            Ok(answer) => answer,
            Err(runtime_stopped) => Err(runtime_stopped.into()),
        };
        self.note(match &answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("the collector answered {}", answer.status())),
            Err(error) => Some(lifecycle::error_chain(error.as_ref())),
        });
        answer
    }
}

/// The address may hold the password of the collector, which is for no log.
fn without_url(error: HttpError) -> HttpError {
    match error.downcast::<reqwest::Error>() {
        Ok(error) => error.without_url().into(),
        Err(other) => other,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// What is exported is for the collector that is configured.
    #[tokio::test]
    async fn a_redirect_is_not_followed() {
        let [collector, elsewhere] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let endpoint = format!("http://{}/v1/traces", collector.local_addr().unwrap());
        let location = format!("http://{}/", elsewhere.local_addr().unwrap());
        let answering = std::thread::spawn(move || {
            let (mut connection, _) = collector.accept().unwrap();
            assert!(connection.read(&mut [0; 4096]).unwrap() > 0);
            let answer = format!(
                "HTTP/1.1 307 Temporary Redirect\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            connection.write_all(answer.as_bytes()).unwrap();
        });
        let client = OnRuntime::new(Signal::Traces).unwrap();
        let request = Request::post(endpoint).body(Bytes::new()).unwrap();
        let answer = client.send_bytes(request).await.unwrap();
        answering.join().unwrap();
        assert_eq!(answer.status(), 307);
        elsewhere.set_nonblocking(true).unwrap();
        assert_eq!(elsewhere.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
