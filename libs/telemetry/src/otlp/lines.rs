//! Log lines, in batches.
//!
//! They are the lines that standard error gets, by the same filter: what must not be read there is not sent either.
//!
//! It deliberately does without the batch processor's own bound: what that one drops it counts for itself alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry::InstrumentationScope;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_otlp::{Protocol, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{
    BatchConfigBuilder, BatchLogProcessor, LogBatch, LogExporter, LogProcessor, SdkLogRecord, SdkLogger,
    SdkLoggerProvider,
};

use super::client::{OnRuntime, TIMEOUT};
use super::{Signal, resource};
use crate::{Error, Settings};

/// Most lines that wait for the collector.
const QUEUE: usize = 2048;

/// The source of loggers, whose lines go to `endpoint`.
pub(crate) fn provider(settings: &Settings, endpoint: &str) -> Result<SdkLoggerProvider, Error> {
    let exporter = opentelemetry_otlp::LogExporter::builder()
        .with_http()
        .with_http_client(OnRuntime::new(Signal::Logs)?)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(Signal::Logs.address(endpoint)?)
        .with_timeout(TIMEOUT)
        .build()
        .map_err(Error::Exporter)?;
    Ok(SdkLoggerProvider::builder()
        .with_resource(resource(settings))
        .with_log_processor(Bounded::to(exporter))
        .build())
}

/// The layer that hands log lines to a source of loggers, with the span that each belongs to.
pub(crate) fn layer(
    provider: &SdkLoggerProvider,
) -> OpenTelemetryTracingBridge<SdkLoggerProvider, SdkLogger> {
    OpenTelemetryTracingBridge::new(provider)
}

/// A processor that holds [`QUEUE`] lines at most, and counts those for which there is no room.
#[derive(Debug)]
struct Bounded {
    batches: BatchLogProcessor,
    waiting: Arc<AtomicUsize>,
}

impl Bounded {
    fn to<E: LogExporter + 'static>(exporter: E) -> Self {
        let waiting = Arc::<AtomicUsize>::default();
        let counted = Counted {
            exporter,
            waiting: Arc::clone(&waiting),
        };
        let config = BatchConfigBuilder::default().with_max_queue_size(QUEUE).build();
        let batches = BatchLogProcessor::builder(counted)
            .with_batch_config(config)
            .build();
        Self { batches, waiting }
    }
}

impl LogProcessor for Bounded {
    fn emit(&self, record: &mut SdkLogRecord, scope: &InstrumentationScope) {
        if self.waiting.fetch_add(1, Ordering::Relaxed) < QUEUE {
            self.batches.emit(record, scope);
        } else {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            Signal::Logs.count_lost(1);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// An exporter that makes room for as many lines as it takes, and counts those of batches that the collector did not take.
#[derive(Debug)]
struct Counted<E> {
    exporter: E,
    waiting: Arc<AtomicUsize>,
}

impl<E: LogExporter> LogExporter for Counted<E> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        let lines = batch.iter().count();
        self.waiting.fetch_sub(lines, Ordering::Relaxed);
        let exported = self.exporter.export(batch).await;
        if exported.is_err() {
            Signal::Logs.count_lost(lines);
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use opentelemetry::logs::{Logger as _, LoggerProvider as _};
    use opentelemetry_sdk::error::OTelSdkError;

    use super::*;
    use crate::{Metric, Readings, recorder};

    /// A collector that answers when the test lets it, and takes nothing.
    #[derive(Debug)]
    struct Busy {
        asked: Mutex<Sender<()>>,
        answers: Mutex<Receiver<()>>,
    }

    impl LogExporter for Busy {
        async fn export(&self, _batch: LogBatch<'_>) -> OTelSdkResult {
            // Neither end is there any more when the test is over.
            let _ = self.asked.lock().unwrap().send(());
            let _ = self.answers.lock().unwrap().recv();
            Err(OTelSdkError::InternalFailure("busy".to_owned()))
        }
    }

    fn lost() -> u64 {
        Readings::take().count_of(Metric::TelemetryLost, |labels| labels.contains("logs"))
    }

    #[test]
    fn lines_that_a_busy_collector_leaves_no_room_for_are_lost_and_counted_and_hold_nothing_up() {
        const TOO_MANY: u64 = 3;
        recorder::install().unwrap();
        let before = lost();
        let (asked, is_asked) = channel();
        let (answer, answers) = channel();
        let processor = Bounded::to(Busy {
            asked: Mutex::new(asked),
            answers: Mutex::new(answers),
        });
        let provider = SdkLoggerProvider::builder().with_log_processor(processor).build();
        let logger = provider.logger("test");
        logger.emit(logger.create_log_record());
        is_asked.recv().unwrap();

        let room = u64::try_from(QUEUE).unwrap();
        for _ in 0..room + TOO_MANY {
            logger.emit(logger.create_log_record());
        }

        assert_eq!(lost() - before, TOO_MANY, "the queue is full");
        drop(answer);
        provider.shutdown().unwrap();
        assert_eq!(
            lost() - before,
            1 + room + TOO_MANY,
            "the collector took none of them"
        );
    }
}
