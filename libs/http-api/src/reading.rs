//! Asking the database on behalf of a request: in time, or with a problem that says so.

use lifecycle::error_chain;
use tokio::time::{Instant, timeout_at};

use crate::kind::ProblemKind;
use crate::problem::Problem;

/// When to try again while the database cannot be asked, in seconds.
const RETRY_AFTER: u32 = 5;

/// Does `operation` before `deadline`. `what` and `done` make sentences of a failure: "the push" and "read" become "the
/// push cannot be read now".
///
/// # Errors
///
/// A [`ProblemKind::UNAVAILABLE`] when the same may succeed later, else a [`ProblemKind::INTERNAL`], which is logged.
pub async fn by<T>(
    deadline: Instant,
    (what, done): (&'static str, &'static str),
    operation: impl Future<Output = Result<T, store::Error>>,
) -> Result<T, Problem> {
    match timeout_at(deadline, operation).await {
        Ok(Ok(value)) => Ok(value),
        // Nothing internal: which lane, and how long it was waited for.
        Ok(Err(error @ store::Error::ClaimsUnderWay { .. })) => {
            let detail = format!("{what} cannot be {done} now: {error}");
            Err(Problem::unavailable(detail, RETRY_AFTER))
        }
        Ok(Err(error)) if !error.is_transient() => {
            tracing::error!(error = error_chain(&error), "{what} could not be {done}");
            Err(Problem::new(
                ProblemKind::INTERNAL,
                format!("{what} could not be {done}"),
            ))
        }
        Ok(Err(error)) => {
            tracing::debug!(error = error_chain(&error), "{what} cannot be {done} now");
            Err(unavailable(what, done))
        }
        Err(_) => Err(unavailable(what, done)),
    }
}

fn unavailable(what: &str, done: &str) -> Problem {
    Problem::unavailable(format!("{what} cannot be {done} now"), RETRY_AFTER)
}
