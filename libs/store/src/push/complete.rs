//! Completing attempts: the push's next state, the attempt's outcome and, where the push ended badly, its dead letter,
//! in one statement for a batch.
//!
//! The dead letter belongs to the same transaction because a terminal failure that no operator is told of would be a push
//! dropped silently.

use std::borrow::Cow;
use std::collections::HashSet;

use chrono::{DateTime, Utc};
use domain::push::{Classification, ErrorType, PushId, PushStatus};
use uuid::Uuid;

use crate::text::storable;
use crate::{Error, Store, column};

/// The end of one attempt.
#[derive(Debug, Clone)]
pub struct Completion {
    /// The push.
    pub id: PushId,
    /// The token of the claim; a completion with an old one changes nothing.
    pub lease_token: Uuid,
    /// The status that follows, as `domain::lifecycle::transition` decides.
    pub status: PushStatus,
    /// When the next attempt is due; set for `RETRY` and only there.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// Time from the start of the request to the end of the answer, in milliseconds.
    pub millis: i64,
    /// The HTTP status of the answer, if there was one.
    pub response_status: Option<u16>,
    /// What the attempt row records.
    pub classification: Classification,
}

impl Store {
    /// Completes a batch; returns the pushes whose completion was accepted. One that is missing had lost its lease: it
    /// was rescued meanwhile, and what became of its attempt is recorded as unknown. A batch may hold that late completion
    /// beside the one of the present claim: only the row whose token matched is carried on.
    pub async fn complete_pushes(&self, completions: &[Completion]) -> Result<HashSet<PushId>, Error> {
        let text = |of: fn(&Classification) -> Option<&str>| {
            column(completions, move |c| of(&c.classification).map(storable))
        };
        let mut connection = self.resting.take().await?;
        let completed = sqlx::query_file_scalar!(
            "queries/push/complete_pushes.sql",
            &column(completions, |c| c.id.uuid()),
            &column(completions, |c| c.lease_token),
            &column(completions, |c| c.status.as_str()) as &[&str],
            &column(completions, |c| c.next_attempt_at) as &[Option<DateTime<Utc>>],
            &column(completions, |c| c.millis),
            &column(completions, |c| c.classification.status.as_str()) as &[&str],
            &column(completions, |c| c
                .classification
                .error_type
                .map(ErrorType::as_str)) as &[Option<&str>],
            &column(completions, |c| c.classification.swrve_error_code) as &[Option<i64>],
            &text(|v| v.swrve_error_message.as_deref()) as &[Option<Cow<'_, str>>],
            &text(|v| v.other_error.as_deref()) as &[Option<Cow<'_, str>>],
            &text(|v| v.fingerprint.as_deref()) as &[Option<Cow<'_, str>>],
            &column(completions, |c| c
                .response_status
                .and_then(|status| i16::try_from(status).ok())) as &[Option<i16>],
        )
        .fetch_all(&mut *connection)
        .await?;
        connection.rest();
        Ok(completed.into_iter().map(PushId::from).collect())
    }
}
