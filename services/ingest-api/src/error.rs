//! Why the service stops before it was asked to.

use runtime::connections::OpenError;

/// Why the service could not start or go on. What happens to one request is never an error of the service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database settings cannot be used.
    #[error(transparent)]
    Database(#[from] OpenError),
    /// A part that has to run as long as the service does has ended; nothing is stored or published without it.
    #[error("the task {task} ended unexpectedly")]
    TaskEnded {
        /// Its name.
        task: &'static str,
    },
}
