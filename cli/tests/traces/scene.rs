//! An installation whose processes send their spans, log lines and metrics to a collector.

use reqwest::RequestBuilder;
use testkit::Installation;

use crate::collector::Collector;
use crate::rig::{Event, Fleet, Push, Submission};

/// What the tests of this binary stand on.
pub(crate) struct Scene {
    pub(crate) it: Installation,
    pub(crate) collector: Collector,
    pub(crate) fleet: Fleet,
}

impl Scene {
    pub(crate) async fn of(it: Installation) -> Self {
        let collector = Collector::start().await;
        let fleet = Fleet::of(&it)
            .await
            .with("POSTRIDER__TELEMETRY__OTLP_ENDPOINT", &collector.endpoint)
            .with("POSTRIDER__TELEMETRY__SAMPLE_RATIO", 1)
            .with("POSTRIDER__TELEMETRY__OTLP_LOGS", true)
            .with("POSTRIDER__TELEMETRY__OTLP_METRICS", true)
            .with("POSTRIDER__TELEMETRY__OTLP_METRICS_INTERVAL_MILLIS", 100)
            // With a line for each request.
            .with(
                "POSTRIDER__TELEMETRY__LOG_FILTER",
                "info,lapin=off,http_api=debug",
            )
            // The exporters' own settings: spans and lines come at once instead of after five seconds and one.
            .with("OTEL_BSP_SCHEDULE_DELAY", 50)
            .with("OTEL_BLRP_SCHEDULE_DELAY", 50);
        Self { it, collector, fleet }
    }

    /// Hands something in and returns what is stored of its trace.
    pub(crate) async fn accept<S: Stored>(&self, submission: S, caller: Option<&str>) -> Traceparent {
        let key = submission.key().to_owned();
        let traced = Traced {
            submission,
            caller: caller.map(str::to_owned),
        };
        self.fleet.hand_in(vec![traced]).finish().await;
        self.stored::<S>(&key).await
    }

    /// What is stored of the trace of something that was handed in.
    pub(crate) async fn stored<S: Stored>(&self, key: &str) -> Traceparent {
        let stored: Option<String> = sqlx::query_scalar(S::TRACEPARENT)
            .bind(key)
            .fetch_one(&self.it.pool)
            .await
            .expect("it is stored");
        Traceparent(stored.expect("what is handed in while traces are on has one"))
    }
}

/// A `traceparent` in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Traceparent(pub(crate) String);

impl Traceparent {
    pub(crate) fn trace(&self) -> &str {
        &self.0[3..35]
    }

    pub(crate) fn span(&self) -> &str {
        &self.0[36..52]
    }

    pub(crate) fn is_sampled(&self) -> bool {
        self.0.ends_with("-01")
    }
}

/// What can be handed in, and where its `traceparent` is found by its key.
pub(crate) trait Stored: Submission {
    const TRACEPARENT: &'static str;
}

impl Stored for Push {
    const TRACEPARENT: &'static str = "SELECT traceparent FROM push_notifications WHERE push_key = $1";
}

impl Stored for Event {
    const TRACEPARENT: &'static str = "SELECT traceparent FROM events WHERE event_id = $1";
}

/// Something handed in by a caller who has a trace of its own.
#[derive(Debug)]
struct Traced<S> {
    submission: S,
    caller: Option<String>,
}

impl<S: Submission> Submission for Traced<S> {
    const PATH: &'static str = S::PATH;

    fn key(&self) -> &str {
        self.submission.key()
    }

    fn fill(&self, request: RequestBuilder) -> RequestBuilder {
        let request = self.submission.fill(request);
        match &self.caller {
            Some(caller) => request.header("traceparent", caller),
            None => request,
        }
    }
}
