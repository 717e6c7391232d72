//! The one metrics recorder of the process and its Prometheus text.
//!
//! It deliberately has no listener of its own; `admin` serves the text.

use std::sync::{Mutex, OnceLock, PoisonError};

use metrics::with_recorder;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use crate::{Error, Kind, Metric, process};

static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Installs the recorder. Every call after the first one finds it installed.
pub(crate) fn install() -> Result<&'static PrometheusHandle, Error> {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(installed) = RECORDER.get() {
        return Ok(installed);
    }
    let recorder = builder().map_err(Error::Buckets)?.build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(|_| Error::OtherRecorder)?;
    describe_all();
    Ok(RECORDER.get_or_init(|| handle))
}

fn builder() -> Result<PrometheusBuilder, BuildError> {
    Metric::ALL.iter().map(|metric| metric.definition()).try_fold(
        PrometheusBuilder::new(),
        |builder, definition| match definition.kind {
            Kind::Histogram(bounds) => {
                builder.set_buckets_for_metric(Matcher::Full(definition.name.to_owned()), bounds)
            }
            Kind::Counter | Kind::Gauge => Ok(builder),
        },
    )
}

/// Tells the recorder what every metric means, for the `# HELP` lines. [`crate::init`] has done it.
pub fn describe_all() {
    with_recorder(|recorder| {
        for definition in Metric::ALL.iter().map(|metric| metric.definition()) {
            let (name, unit, help) = (
                definition.name.into(),
                Some(definition.unit),
                definition.help.into(),
            );
            match definition.kind {
                Kind::Counter => recorder.describe_counter(name, unit, help),
                Kind::Gauge => recorder.describe_gauge(name, unit, help),
                Kind::Histogram(_) => recorder.describe_histogram(name, unit, help),
            }
        }
    });
}

/// All metrics as Prometheus text; without [`crate::init`] only those of the process.
pub fn render_metrics() -> String {
    let mut text = RECORDER.get().map(PrometheusHandle::render).unwrap_or_default();
    process::append(&mut text);
    text
}
