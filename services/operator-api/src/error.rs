//! Why the service could not start.

/// Why the service could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database settings are unusable.
    #[error("failed to prepare the database connection")]
    Database(#[source] store::Error),
    /// The OpenAPI document cannot be written.
    #[error("failed to write the OpenAPI document")]
    OpenApi(#[source] serde_json::Error),
}
