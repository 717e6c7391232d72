//! Completing attempts to deliver: the outcome, what it means for the subscription's health, the dead letter and the
//! e-mails that follow from it, all in one statement.

use std::borrow::Cow;
use std::collections::HashSet;

use chrono::{DateTime, Utc};
use domain::notification::{Classification, HealthSignal, NotificationId, NotificationStatus};
use uuid::Uuid;

use crate::text::storable;
use crate::{Error, Store, column};

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
    pub classification: Classification,
}

fn signal(health: HealthSignal) -> &'static str {
    match health {
        HealthSignal::Success => "SUCCESS",
        HealthSignal::Failure => "FAILURE",
        HealthSignal::Gone => "GONE",
        HealthSignal::None => "NONE",
    }
}

/// Whether a completion leaves no dead letter, stops nothing and needs no mail.
fn is_ordinary(completion: &DeliveryCompletion) -> bool {
    match completion.status {
        NotificationStatus::Sent => completion.classification.health != HealthSignal::Gone,
        NotificationStatus::Retry => !matches!(
            completion.classification.response_status,
            Some(400..=407 | 409..=424 | 426..=428 | 430..=499)
        ),
        _ => false,
    }
}

/// Runs a statement that completes; it takes the completions as lists, one for each column.
macro_rules! complete {
    ($statement:literal, $completions:expr, $at:expr $(, $more:expr)?) => {{
        let all: &[DeliveryCompletion] = $completions;
        let text = |of: fn(&Classification) -> Option<&str>| column(all, move |c| of(&c.classification).map(storable));
        sqlx::query_file_scalar!(
            $statement,
            &column(all, |c| c.id.uuid()),
            &column(all, |c| c.lease_token),
            &column(all, |c| c.status.as_str()) as &[&str],
            &column(all, |c| c.next_attempt_at) as &[Option<DateTime<Utc>>],
            &column(all, |c| c.started_at),
            &column(all, |c| c.millis),
            &column(all, |c| c.classification.response_status.map(i32::from)) as &[Option<i32>],
            &text(|v| v.response_body.as_deref()) as &[Option<Cow<'_, str>>],
            &column(all, |c| c.classification.error_type) as &[Option<&str>],
            &text(|v| v.error.as_deref()) as &[Option<Cow<'_, str>>],
            &text(|v| v.fingerprint.as_deref()) as &[Option<Cow<'_, str>>],
            &column(all, |c| signal(c.classification.health)) as &[&str],
            $at,
            $($more,)?
        )
    }};
}

impl Store {
    /// Completes a batch at the time `at`; returns the notifications whose completion was accepted. One that is missing
    /// had lost its lease.
    ///
    /// A subscription whose attempts fail notes since when; one that succeeds again is healed; one that redirects or is
    /// gone is deactivated. When failing has lasted too long is decided elsewhere, see [`Store::evaluate_health`].
    ///
    /// Nearly always all are ordinary; a statement that writes no dead letters and no mails about them costs half as much, since
    /// PostgreSQL prepares every part of a statement each time, needed or not.
    pub async fn complete_deliveries(
        &self,
        completions: &[DeliveryCompletion],
        at: DateTime<Utc>,
    ) -> Result<HashSet<NotificationId>, Error> {
        let mut connection = self.resting.take().await?;
        let completed = if completions.iter().all(is_ordinary) {
            let succeeded = |c: &DeliveryCompletion| c.classification.health == HealthSignal::Success;
            let all_succeeded = completions.iter().all(succeeded);
            complete!(
                "queries/webhook/complete_fast.sql",
                completions,
                at,
                all_succeeded
            )
            .fetch_all(&mut *connection)
            .await?
        } else {
            complete!("queries/webhook/complete_deliveries.sql", completions, at)
                .fetch_all(&mut *connection)
                .await?
        };
        connection.rest();
        Ok(completed.into_iter().map(NotificationId::from).collect())
    }
}
