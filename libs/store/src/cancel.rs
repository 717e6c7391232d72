//! Cancelling what has not been sent yet. That is final: no resend and no replay sends it. Its dead letter is discarded
//! from the beginning, with the operator's note, since there is nothing to mend: it is in the lists, and waits for no
//! operator.

use std::fmt::Display;
use std::str::FromStr;

use serde_json::{Value, json};
use sqlx::{Postgres, Transaction};

use crate::{Act, Error, stored};

/// What came of cancelling a push or a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancellation<S> {
    /// It was in this status, and will not be sent.
    Done(S),
    /// It is being sent: the database cannot tell whether it still could be stopped.
    BeingSent,
    /// It has ended before.
    Ended(S),
    /// There is no such thing.
    Unknown,
}

/// What a statement that cancels one has found.
pub(crate) struct Found {
    /// Its status before.
    pub(crate) status: String,
    /// Whether it was being sent.
    pub(crate) claimed: bool,
    /// Whether it is cancelled now.
    pub(crate) cancelled: bool,
}

/// Commits what a statement that cancels a `kind` has done, with its entry in the audit log.
pub(crate) async fn commit<S: FromStr>(
    mut transaction: Transaction<'_, Postgres>,
    found: Option<Found>,
    kind: &'static str,
    id: impl Display,
    act: Act<'_>,
) -> Result<Cancellation<S>, Error> {
    let Some(found) = found else {
        return Ok(Cancellation::Unknown);
    };
    let status = stored("status", &found.status)?;
    if !found.cancelled {
        return Ok(if found.claimed {
            Cancellation::BeingSent
        } else {
            Cancellation::Ended(status)
        });
    }
    let (action, details) = (format!("{kind}.cancel"), json!({ "status": found.status }));
    let entry = act.entry(&action, format!("{kind}/{id}"), details);
    entry.record(&mut transaction).await?;
    transaction.commit().await?;
    Ok(Cancellation::Done(status))
}

/// Commits what a statement that cancels several of a `kind` has done, with one entry in the audit log. Returns how many were cancelled.
pub(crate) async fn commit_all(
    mut transaction: Transaction<'_, Postgres>,
    found: &[Found],
    kind: &'static str,
    chosen: Value,
    act: Act<'_>,
) -> Result<u64, Error> {
    let cancelled = found.iter().filter(|found| found.cancelled).count() as u64;
    if cancelled == 0 {
        return Ok(0);
    }
    let (action, details) = (
        format!("{kind}.cancel-many"),
        json!({ "cancelled": cancelled, "filter": chosen }),
    );
    let lane = if kind == "push" { "push" } else { "reseller" };
    let entry = act.entry(&action, format!("lane/{lane}"), details);
    entry.record(&mut transaction).await?;
    transaction.commit().await?;
    Ok(cancelled)
}
