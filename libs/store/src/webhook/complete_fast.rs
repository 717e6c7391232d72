//! Completing attempts of which none becomes a dead letter: delivered, or to be tried again. That is nearly all of them,
//! and a statement that writes no dead letters and no mails about them costs half as much, since PostgreSQL prepares every
//! part of a statement each time, needed or not.

use std::borrow::Cow;
use std::collections::HashSet;

use chrono::{DateTime, Utc};
use domain::notification::{HealthSignal, NotificationId, NotificationStatus};

use crate::webhook::complete::{Columns, DeliveryCompletion};
use crate::{Error, Store};

/// Whether a completion leaves no dead letter and stops nothing.
pub(super) fn is_ordinary(completion: &DeliveryCompletion) -> bool {
    matches!(
        completion.status,
        NotificationStatus::Sent | NotificationStatus::Retry
    ) && completion.verdict.health != HealthSignal::Gone
}

impl Store {
    /// As [`Store::complete_deliveries`], for completions that all are ordinary.
    pub(super) async fn complete_fast(
        &self,
        completions: &[DeliveryCompletion],
        at: DateTime<Utc>,
    ) -> Result<HashSet<NotificationId>, Error> {
        let columns = Columns::of(completions);
        let all_succeeded = completions
            .iter()
            .all(|c| c.verdict.health == HealthSignal::Success);
        let completed = sqlx::query_file_scalar!(
            "queries/webhook/complete_fast.sql",
            &columns.ids,
            &columns.lease_tokens,
            &columns.statuses as &[&str],
            &columns.next_attempts as &[Option<DateTime<Utc>>],
            &columns.started,
            &columns.millis,
            &columns.response_statuses as &[Option<i32>],
            &columns.response_bodies as &[Option<Cow<'_, str>>],
            &columns.error_types as &[Option<&str>],
            &columns.errors as &[Option<Cow<'_, str>>],
            &columns.fingerprints as &[Option<Cow<'_, str>>],
            &columns.signals as &[&str],
            at,
            all_succeeded,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(completed.into_iter().map(NotificationId::from).collect())
    }
}
