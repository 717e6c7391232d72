//! Log lines: for people or as JSON, to standard error.
//!
//! It deliberately leaves rotation to the operator who runs the process; a collector gets the same lines from `otlp`.

use std::io::{self, IsTerminal};

use tracing::Subscriber;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer};

use crate::{Error, LogFormat};

/// The layer that writes log lines to standard error.
pub(crate) fn to_stderr<S>(format: LogFormat, filter: &str) -> Result<Box<dyn Layer<S> + Send + Sync>, Error>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    layer(format, filter, io::stderr, io::stderr().is_terminal())
}

/// Which lines are written.
pub(crate) fn filter(directives: &str) -> Result<EnvFilter, Error> {
    EnvFilter::builder()
        .parse(directives)
        .map_err(|source| Error::Filter {
            filter: directives.to_owned(),
            source,
        })
}

fn layer<S, W>(
    format: LogFormat,
    filter: &str,
    writer: W,
    colours: bool,
) -> Result<Box<dyn Layer<S> + Send + Sync>, Error>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let parsed = self::filter(filter)?;
    let lines = fmt::layer().with_writer(writer);
    Ok(match format {
        LogFormat::Human => lines.with_ansi(colours).with_filter(parsed).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_filter(parsed).boxed(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// What was written; every clone writes to the same place.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn lines(format: LogFormat, filter: &str) -> Vec<String> {
        let written = Written::default();
        let writer = written.clone();
        let layer = layer(format, filter, move || writer.clone(), false).unwrap();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let span = tracing::info_span!("sending", push_id = 7);
            span.in_scope(|| {
                tracing::info!(attempts = 2, "push sent");
                tracing::debug!("too much detail");
            });
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn json_lines_hold_fields_and_span() {
        let lines = lines(LogFormat::Json, "info");

        assert_eq!(lines.len(), 1, "{lines:?}");
        let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["message"], "push sent");
        assert_eq!(line["attempts"], 2);
        assert_eq!(line["span"]["push_id"], 7);
    }

    #[test]
    fn human_lines_follow_the_filter() {
        let lines = lines(LogFormat::Human, "debug");

        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0].contains("sending{push_id=7}") && lines[0].ends_with("push sent attempts=2"),
            "{lines:?}"
        );
    }

    #[test]
    fn filter_that_is_no_directive_is_an_error() {
        let error = to_stderr::<tracing_subscriber::Registry>(LogFormat::Human, "=nonsense=")
            .err()
            .unwrap();
        assert!(matches!(error, Error::Filter { .. }));
    }
}
