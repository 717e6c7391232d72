//! Opening sealed secrets: the one place of this service that does. What is opened here is shown by `secrets::view` alone.

use encryption::Sealer;
use http_api::{Problem, ProblemKind};
use lifecycle::error_chain;
use signing::Secret;
use uuid::Uuid;

/// The secret that was sealed for a subscription.
///
/// # Errors
///
/// An `INTERNAL` when it was sealed with a key that is not configured any more, or is none.
pub(crate) fn open(sealer: &Sealer, subscription: Uuid, sealed: &[u8]) -> Result<Secret, Problem> {
    let failed = || Problem::new(ProblemKind::INTERNAL, "the secret could not be opened");
    let opened = sealer.open(subscription, sealed).map_err(|error| {
        tracing::error!(error = error_chain(&error), "failed to open a secret");
        failed()
    })?;
    Secret::from_bytes(opened).map_err(|error| {
        tracing::error!(error = error_chain(&error), "a sealed secret is none");
        failed()
    })
}

/// The same of a secret that signs no more: it may have been sealed with a key that was taken away since, which is no fault.
pub(crate) fn open_ended(sealer: &Sealer, subscription: Uuid, sealed: &[u8]) -> Option<Secret> {
    Secret::from_bytes(sealer.open(subscription, sealed).ok()?).ok()
}
