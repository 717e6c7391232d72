//! Telling the operator why the process ends.

use lifecycle::error_chain;

/// Says once why the process ends: in the log, or plainly while (or where) there is none.
#[expect(
    clippy::print_stderr,
    reason = "without a log nothing else would tell why the process ends"
)]
pub(crate) fn tell(error: &crate::Error) {
    let chain = error_chain(error);
    if !error.is_configuration() && tracing::enabled!(tracing::Level::ERROR) {
        tracing::error!("{chain}");
    } else {
        eprintln!("error: {chain}");
    }
}
