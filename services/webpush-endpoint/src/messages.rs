//! `DELETE /m/{message_id}`: takes a message back that still waits.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use http::StatusCode;
use tokio::time::timeout_at;
use webpush::{MessageId, Refusal};

use crate::answer::Refused;
use crate::app::App;

/// Deletes a message. What is not there (any more) is as good as deleted.
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Refused> {
    let Path(id) = id.map_err(|_| Refusal::MessageId)?;
    // As it was made: some put the padding of base64 back.
    let id = id.trim_end_matches('=');
    let message = MessageId::open(&app.keys, id).ok_or(Refusal::MessageId)?;
    let versions = [id];
    let deleting = app.store.webpush_delete(message.uaid, &versions);
    match timeout_at(app.deadline(), deleting).await {
        Ok(Ok(_)) => Ok(StatusCode::NO_CONTENT),
        _ => Err(Refusal::Storage.into()),
    }
}
