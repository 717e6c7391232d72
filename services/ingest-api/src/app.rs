//! What the handlers share.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono_tz::Tz;
use config::Config;
use domain::clock::Clock;
use domain::push::Limits;
use http::HeaderMap;
use store::Store;
use tokio::time::{Instant, timeout_at};

use crate::auth::{Caller, Keys};
use crate::intake::Intake;
use crate::meters::Meters;
use crate::problem::Problem;

/// When to try again after a request that took too long, in seconds.
const RETRY_AFTER: u32 = 5;

/// The state behind every request.
pub(crate) struct App {
    pub(crate) keys: Keys,
    pub(crate) intake: Intake,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) limits: Limits,
    pub(crate) time_zone: Tz,
    pub(crate) max_attempts: u32,
    pub(crate) max_body_bytes: usize,
    pub(crate) request_timeout: Duration,
    /// Whether a span is made for each request.
    pub(crate) traced: bool,
    /// The OpenAPI document as JSON.
    pub(crate) openapi: Bytes,
    /// The same as a page.
    pub(crate) docs: Bytes,
}

/// The parts of [`App`] that are not configuration.
pub(crate) struct Parts {
    pub(crate) intake: Intake,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) meters: Arc<Meters>,
}

impl App {
    pub(crate) fn new(config: &Config, parts: Parts) -> Result<Self, serde_json::Error> {
        let document = serde_json::to_value(crate::openapi::document())?;
        Ok(Self {
            keys: Keys::new(parts.store.clone()),
            intake: parts.intake,
            store: parts.store,
            clock: parts.clock,
            meters: parts.meters,
            limits: Limits {
                message_max_bytes: config.push.message_max_bytes,
                push_key_max_bytes: config.push.push_key_max_bytes,
            },
            time_zone: config.push.time_zone,
            max_attempts: config.push.retry.max_attempts,
            max_body_bytes: config.ingest.max_body_bytes,
            request_timeout: config.ingest.request_timeout,
            traced: config.telemetry.otlp_endpoint.is_some(),
            openapi: serde_json::to_vec(&document)?.into(),
            docs: crate::docs_page::render(&document).into(),
        })
    }

    /// When a request that starts now has to be answered.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.request_timeout
    }

    /// The caller that the headers show, by `deadline`.
    pub(crate) async fn caller(
        &self,
        headers: &HeaderMap,
        deadline: Instant,
    ) -> Result<Arc<Caller>, Problem> {
        timeout_at(deadline, self.keys.caller(headers))
            .await
            .unwrap_or_else(|_| {
                Err(Problem::unavailable(
                    "the API key cannot be looked up now",
                    RETRY_AFTER,
                ))
            })
    }
}
