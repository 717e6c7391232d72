//! What a mail tells, as it is stored: the data of each kind, which its template shows.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::email::EmailKind;
use minijinja::value::{Serde, Value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Unreadable;

/// Which subscription a mail is about.
#[derive(Deserialize, Serialize)]
#[serde(rename_all(deserialize = "camelCase"))]
struct Subject {
    url: String,
    /// What its reseller calls it; may be empty.
    #[serde(default)]
    description: String,
    reseller_id: String,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all(deserialize = "camelCase"))]
struct StateChange {
    #[serde(flatten)]
    subject: Subject,
    state: String,
    previous: String,
    reason: String,
    /// Since when its endpoint has failed, if it does.
    failing_since: Option<DateTime<Utc>>,
    /// When it is deactivated if it goes on failing.
    deactivated_at: Option<DateTime<Utc>>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all(deserialize = "camelCase"))]
struct Exhaustion {
    #[serde(flatten)]
    subject: Subject,
    /// The type of one of the events.
    event_type: Option<String>,
    /// How its last attempt ended at the endpoint; `None` when that failed on our side, or its outcome was lost.
    error: Option<String>,
    /// When the first of them was given up.
    since: Option<DateTime<Utc>>,
}

#[derive(Deserialize, Serialize)]
struct FailedVerification {
    #[serde(flatten)]
    subject: Subject,
    /// How the last challenge ended.
    error: String,
    /// How many challenges there were.
    attempts: Option<u32>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all(deserialize = "camelCase"))]
struct Refusal {
    #[serde(flatten)]
    subject: Subject,
    /// The type of one of the events.
    event_type: Option<String>,
    /// What the endpoint answered to it.
    status: Option<u16>,
    /// Each status that it answered in one of them; none in mails of an earlier version.
    #[serde(default)]
    codes: BTreeMap<String, bool>,
    /// When the first of them was refused.
    since: Option<DateTime<Utc>>,
    /// Whether they are tried again all the same.
    #[serde(default)]
    retried: bool,
}

/// Nothing in it is of the reseller's choice: the mail goes to whatever address it named.
#[derive(Deserialize, Serialize)]
#[serde(rename_all(deserialize = "camelCase"))]
struct ConfirmationRequest {
    reseller_id: String,
    /// What has to come back.
    code: String,
}

#[derive(Deserialize, Serialize)]
struct SecurityChange {
    /// The subscription as it was before.
    #[serde(flatten)]
    subject: Subject,
    /// The latest changes, the oldest of them first.
    changes: Vec<OneChange>,
}

#[derive(Deserialize, Serialize)]
struct OneChange {
    /// ENDPOINT, ADDRESS, SECRET_MADE, SECRET_VIEWED, SECRET_REVOKED or DELETED.
    what: String,
    /// What it was before, where that is no secret.
    from: Option<String>,
    to: Option<String>,
    at: DateTime<Utc>,
}

#[derive(Deserialize, Serialize)]
struct Recovery {
    #[serde(flatten)]
    subject: Subject,
    /// How many are left that could be sent again; counted up to 100,000.
    #[serde(default)]
    remaining: u64,
    /// Why it ended before it was through: FAILING, INACTIVE or SWITCHED_OFF; missing too when a person has stopped it.
    because: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all(deserialize = "camelCase"))]
struct QuotaDecision {
    #[serde(flatten)]
    subject: Subject,
    /// What was asked for, a day.
    requested: u32,
    /// Whether that was asked for at all; in mails of an earlier version it was.
    #[serde(default = "yes")]
    asks_daily: bool,
    /// What was granted, a day; `None` when the request was denied, or left that as it is.
    granted: Option<u32>,
    /// The attempts a second that were asked for; `None` when they were to stay, and in mails of an earlier version.
    #[serde(default)]
    requested_per_second: Option<u32>,
    /// Those that were granted.
    #[serde(default)]
    granted_per_second: Option<u32>,
    /// What the operator who decided wants to say about it.
    note: Option<String>,
}

fn yes() -> bool {
    true
}

/// The data of a kind, checked, for its template.
pub(crate) fn read(kind: EmailKind, data: &serde_json::Value) -> Result<Value, Unreadable> {
    match kind {
        EmailKind::StateChanged => checked::<StateChange>(data),
        EmailKind::RetriesExhausted => checked::<Exhaustion>(data),
        EmailKind::VerificationFailed => checked::<FailedVerification>(data),
        EmailKind::DeliveryRefused => checked::<Refusal>(data),
        EmailKind::QuotaDecided => checked::<QuotaDecision>(data),
        EmailKind::AddressConfirmation => checked::<ConfirmationRequest>(data),
        EmailKind::SecurityChanged => checked::<SecurityChange>(data),
        EmailKind::DeliveriesRecovered => checked::<Recovery>(data),
    }
}

fn checked<T: DeserializeOwned + Serialize>(data: &serde_json::Value) -> Result<Value, Unreadable> {
    let told = T::deserialize(data).map_err(Unreadable::Data)?;
    Ok(Value::from(Serde(told)))
}
