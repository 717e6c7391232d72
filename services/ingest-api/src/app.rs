//! What the handlers share.

use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use config::Config;
use domain::clock::Clock;
use domain::key::Role;
use domain::push::Limits;
use http::HeaderMap;
use http_api::{Caller, Keys, Problem};
use store::Store;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::event::Catalogue;
use crate::event::lane::EventLane;
use crate::lane::submission::Submission;
use crate::lane::writer::Writer;
use crate::push::lane::PushLane;
use crate::share::Shares;

/// Batches of events that may be in memory, and so be written, for every writer of the group commit.
const BATCHES_PER_WRITER: usize = 2;
/// The mean length of the events in a batch that is as large as it may be. A bound for a batch of the largest events that
/// are accepted would let a few callers fill the memory.
const BYTES_PER_EVENT: usize = 4096;

/// The state behind every request.
pub(crate) struct App {
    pub(crate) keys: Keys,
    pub(crate) catalogue: Catalogue,
    pub(crate) pushes: Submission<PushLane>,
    pub(crate) events: Submission<EventLane>,
    /// By which batches of events are stored.
    pub(crate) event_writer: Arc<Writer<EventLane>>,
    /// How many batches of events may be in memory at once.
    pub(crate) batches: Arc<Semaphore>,
    /// What each caller may have of all that.
    pub(crate) shares: Shares,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) time_zone: Tz,
    pub(crate) rules: explain::Rules,
    pub(crate) max_body_bytes: usize,
    pub(crate) max_batch_bytes: usize,
    pub(crate) max_data_bytes: usize,
    pub(crate) batch_max: usize,
    pub(crate) request_timeout: Duration,
    /// Whether a span is made for each request.
    pub(crate) traced: bool,
}

/// The parts of [`App`] that are not configuration.
pub(crate) struct Parts {
    pub(crate) pushes: Submission<PushLane>,
    pub(crate) events: Submission<EventLane>,
    pub(crate) event_writer: Arc<Writer<EventLane>>,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
}

impl App {
    pub(crate) fn new(config: &Config, parts: Parts) -> Self {
        let event = &config.reseller.event;
        let batches = config.ingest.writers * BATCHES_PER_WRITER;
        Self {
            keys: Keys::new(parts.store.clone()),
            catalogue: Catalogue::new(parts.store.clone()),
            pushes: parts.pushes,
            events: parts.events,
            event_writer: parts.event_writer,
            batches: Arc::new(Semaphore::new(batches)),
            shares: Shares::new(batches, event.batch_max, config.ingest.request_timeout),
            store: parts.store,
            clock: parts.clock,
            limits: Limits {
                message_max_bytes: config.push.message_max_bytes,
                push_key_max_bytes: config.push.push_key_max_bytes,
            },
            time_zone: config.push.time_zone,
            rules: config.into(),
            max_body_bytes: config.ingest.max_body_bytes,
            max_batch_bytes: (event.batch_max * BYTES_PER_EVENT).max(config.ingest.max_body_bytes),
            max_data_bytes: event.max_data_bytes,
            batch_max: event.batch_max,
            request_timeout: config.ingest.request_timeout,
            traced: config.telemetry.otlp_endpoint.is_some(),
        }
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
        self.keys.caller(headers, deadline).await
    }

    /// The caller of a request without a body, if it may read and brings nothing in vain, and by when to answer.
    pub(crate) async fn reader(
        &self,
        head: &http::request::Parts,
    ) -> Result<(Arc<Caller>, Instant), Problem> {
        let deadline = self.deadline();
        let caller = self.caller(&head.headers, deadline).await?;
        caller.require(Role::may_read)?;
        http_api::refuse_in_vain(head)?;
        Ok((caller, deadline))
    }
}
