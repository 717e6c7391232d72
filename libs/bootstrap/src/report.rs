//! Telling the operator why the process ends.

use std::error::Error;
use std::iter::successors;

/// An error with everything that led to it, on one line unless a part of it has more.
#[must_use]
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let parts: Vec<String> = successors(Some(error), |&error| error.source())
        .map(ToString::to_string)
        .collect();
    parts.join(": ")
}

/// Says once why the process ends: in the log, or plainly while (or where) there is none.
#[expect(
    clippy::print_stderr,
    reason = "without a log nobody would learn why the process ends"
)]
pub(crate) fn tell(error: &crate::Error) {
    let chain = error_chain(error);
    if !error.is_configuration() && tracing::enabled!(tracing::Level::ERROR) {
        tracing::error!("{chain}");
    } else {
        eprintln!("error: {chain}");
    }
}
