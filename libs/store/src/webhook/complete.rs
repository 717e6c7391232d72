//! Completing attempts to deliver: the outcome, what it means for the subscription's health, the dead letter and the
//! e-mails that follow from it, all in one statement.

use std::borrow::Cow;
use std::collections::HashSet;

use chrono::{DateTime, Utc};
use domain::notification::{HealthSignal, NotificationId, NotificationStatus, Verdict};
use uuid::Uuid;

use crate::text::storable;
use crate::webhook::complete_fast::is_ordinary;
use crate::{Error, Store};

/// The end of one attempt.
#[derive(Debug, Clone)]
pub struct DeliveryCompletion {
    /// The notification.
    pub id: NotificationId,
    /// The token of the claim; a completion with an old one changes nothing.
    pub lease_token: Uuid,
    /// The status that follows, as `domain::lifecycle::transition` decides.
    pub status: NotificationStatus,
    /// When the next attempt is due; set for `RETRY` and only there.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// The time that was signed.
    pub started_at: DateTime<Utc>,
    /// Time from the start of the request to the answer, in milliseconds.
    pub millis: i64,
    /// What the attempt row records.
    pub verdict: Verdict,
}

fn signal(health: HealthSignal) -> &'static str {
    match health {
        HealthSignal::Success => "SUCCESS",
        HealthSignal::Failure => "FAILURE",
        HealthSignal::Gone => "GONE",
        HealthSignal::None => "NONE",
    }
}

/// Completions as the lists that a statement takes, one for each column.
pub(super) struct Columns<'a> {
    pub(super) ids: Vec<Uuid>,
    pub(super) lease_tokens: Vec<Uuid>,
    pub(super) statuses: Vec<&'static str>,
    pub(super) next_attempts: Vec<Option<DateTime<Utc>>>,
    pub(super) started: Vec<DateTime<Utc>>,
    pub(super) millis: Vec<i64>,
    pub(super) response_statuses: Vec<Option<i32>>,
    pub(super) response_bodies: Vec<Option<Cow<'a, str>>>,
    pub(super) error_types: Vec<Option<&'static str>>,
    pub(super) errors: Vec<Option<Cow<'a, str>>>,
    pub(super) fingerprints: Vec<Option<Cow<'a, str>>>,
    pub(super) signals: Vec<&'static str>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(completions: &'a [DeliveryCompletion]) -> Self {
        let all = completions.iter();
        let text = |of: fn(&Verdict) -> Option<&str>| {
            let each = completions.iter();
            each.map(|c| of(&c.verdict).map(storable)).collect()
        };
        Self {
            ids: all.clone().map(|c| c.id.uuid()).collect(),
            lease_tokens: all.clone().map(|c| c.lease_token).collect(),
            statuses: all.clone().map(|c| c.status.as_str()).collect(),
            next_attempts: all.clone().map(|c| c.next_attempt_at).collect(),
            started: all.clone().map(|c| c.started_at).collect(),
            millis: all.clone().map(|c| c.millis).collect(),
            response_statuses: all
                .clone()
                .map(|c| c.verdict.response_status.map(i32::from))
                .collect(),
            response_bodies: text(|v| v.response_body.as_deref()),
            error_types: all.clone().map(|c| c.verdict.error_type).collect(),
            errors: text(|v| v.error.as_deref()),
            fingerprints: text(|v| v.fingerprint.as_deref()),
            signals: all.map(|c| signal(c.verdict.health)).collect(),
        }
    }
}

impl Store {
    /// Completes a batch at the time `at`; returns the notifications whose completion was accepted. One that is missing
    /// had lost its lease.
    ///
    /// A subscription whose attempts fail notes since when; one that succeeds again is healed; one that redirects or is
    /// gone is deactivated. When failing has lasted too long is judged elsewhere, see [`Store::judge_health`].
    pub async fn complete_deliveries(
        &self,
        completions: &[DeliveryCompletion],
        at: DateTime<Utc>,
    ) -> Result<HashSet<NotificationId>, Error> {
        if completions.iter().all(is_ordinary) {
            return self.complete_fast(completions, at).await;
        }
        let columns = Columns::of(completions);
        let completed = sqlx::query_file_scalar!(
            "queries/webhook/complete_deliveries.sql",
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
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(completed.into_iter().map(NotificationId::from).collect())
    }
}
