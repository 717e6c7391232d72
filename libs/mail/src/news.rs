//! What a mail tells, as it is stored.

use chrono::{DateTime, Utc};
use domain::email::EmailKind;
use serde::Deserialize;
use serde_json::Value;

use crate::Unreadable;

/// The occasion of a mail with everything that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A subscription is in another state.
    StateChanged(StateChange),
    /// Notifications were given up after all their retries.
    RetriesExhausted(Exhaustion),
    /// An endpoint did not answer its challenges.
    VerificationFailed(FailedVerification),
    /// An endpoint refused notifications.
    DeliveryRefused(Refusal),
    /// A request for another quota was decided.
    QuotaDecided(QuotaDecision),
    /// A recipient has to say that an address is theirs.
    AddressConfirmation(ConfirmationRequest),
    /// Where or how a subscription is delivered to, or whom it tells, was changed.
    SecurityChanged(SecurityChange),
    /// What an outage had given up was sent again by itself.
    DeliveriesRecovered(Recovery),
}

/// Which subscription a mail is about.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// Where its notifications go.
    pub url: String,
    /// What its reseller calls it; may be empty.
    #[serde(default)]
    pub description: String,
    /// Whose it is.
    pub reseller_id: String,
}

/// The data of `STATE_CHANGED`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateChange {
    /// The subscription.
    #[serde(flatten)]
    pub subject: Subject,
    /// The state now.
    pub state: String,
    /// The state before.
    pub previous: String,
    /// Why.
    pub reason: String,
    /// Since when its endpoint has failed, if it does.
    pub failing_since: Option<DateTime<Utc>>,
    /// When it is deactivated if it goes on failing.
    pub deactivated_at: Option<DateTime<Utc>>,
    /// How many changes there were since the mail before.
    #[serde(skip)]
    pub count: u64,
}

/// The data of `RETRIES_EXHAUSTED`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exhaustion {
    /// The subscription.
    #[serde(flatten)]
    pub subject: Subject,
    /// The type of one of the events.
    pub event_type: Option<String>,
    /// How its last attempt ended.
    pub error: Option<String>,
    /// When the first of them was given up.
    pub since: Option<DateTime<Utc>>,
    /// How many were given up.
    #[serde(skip)]
    pub count: u64,
}

/// The data of `VERIFICATION_FAILED`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedVerification {
    /// The subscription.
    #[serde(flatten)]
    pub subject: Subject,
    /// How the last challenge ended.
    pub error: String,
    /// How many challenges there were.
    pub attempts: Option<u32>,
}

/// The data of `DELIVERY_REFUSED`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// The subscription.
    #[serde(flatten)]
    pub subject: Subject,
    /// The type of one of the events.
    pub event_type: Option<String>,
    /// What the endpoint answered to it.
    pub status: Option<u16>,
    /// When the first of them was refused.
    pub since: Option<DateTime<Utc>>,
    /// How many were refused.
    #[serde(skip)]
    pub count: u64,
}

/// The data of `ADDRESS_CONFIRMATION`. Nothing in it is of the reseller's choice: the mail goes to whatever address it named.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfirmationRequest {
    /// Who named the address.
    pub reseller_id: String,
    /// What has to come back.
    pub code: String,
}

/// The data of `SECURITY_CHANGED`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityChange {
    /// The subscription, as it was before.
    #[serde(flatten)]
    pub subject: Subject,
    /// The latest changes, the oldest of them first.
    pub changes: Vec<OneChange>,
    /// How many there were.
    #[serde(skip)]
    pub count: u64,
}

/// The data of `DELIVERIES_RECOVERED`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// The subscription.
    #[serde(flatten)]
    pub subject: Subject,
    /// How many are left that could be sent again; counted up to 100,000.
    #[serde(default)]
    pub remaining: u64,
    /// Why it ended before it was through: FAILING, INACTIVE or SWITCHED_OFF; missing too when a person has stopped it.
    pub because: Option<String>,
    /// How many were sent again.
    #[serde(skip)]
    pub count: u64,
}

/// The data of `QUOTA_DECIDED`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaDecision {
    /// The subscription.
    #[serde(flatten)]
    pub subject: Subject,
    /// What was asked for, a day.
    pub requested: u32,
    /// What was granted, a day; `None` when the request was denied.
    pub granted: Option<u32>,
    /// What the operator who decided wants to say about it.
    pub note: Option<String>,
}

/// One of the changes that [`SecurityChange`] tells of.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OneChange {
    /// ENDPOINT, ADDRESS, SECRET_MADE, SECRET_REVOKED or DELETED.
    pub what: String,
    /// What it was before, where that is no secret.
    pub from: Option<String>,
    /// What it is now.
    pub to: Option<String>,
    /// When.
    pub at: DateTime<Utc>,
}

impl News {
    /// Reads what a mail of a kind tells; `occurrences` is how many occasions it stands for.
    ///
    /// # Errors
    ///
    /// [`Unreadable::Data`] when something is missing or means nothing.
    pub fn read(kind: EmailKind, data: &Value, occurrences: u64) -> Result<Self, Unreadable> {
        Ok(match kind {
            EmailKind::StateChanged => {
                let change = StateChange::deserialize(data).map_err(Unreadable::Data)?;
                Self::StateChanged(StateChange {
                    count: occurrences,
                    ..change
                })
            }
            EmailKind::RetriesExhausted => {
                let exhaustion = Exhaustion::deserialize(data).map_err(Unreadable::Data)?;
                Self::RetriesExhausted(Exhaustion {
                    count: occurrences,
                    ..exhaustion
                })
            }
            EmailKind::VerificationFailed => {
                Self::VerificationFailed(FailedVerification::deserialize(data).map_err(Unreadable::Data)?)
            }
            EmailKind::DeliveryRefused => {
                let refusal = Refusal::deserialize(data).map_err(Unreadable::Data)?;
                Self::DeliveryRefused(Refusal {
                    count: occurrences,
                    ..refusal
                })
            }
            EmailKind::QuotaDecided => {
                Self::QuotaDecided(QuotaDecision::deserialize(data).map_err(Unreadable::Data)?)
            }
            EmailKind::AddressConfirmation => {
                Self::AddressConfirmation(ConfirmationRequest::deserialize(data).map_err(Unreadable::Data)?)
            }
            EmailKind::SecurityChanged => {
                let change = SecurityChange::deserialize(data).map_err(Unreadable::Data)?;
                Self::SecurityChanged(SecurityChange {
                    count: occurrences,
                    ..change
                })
            }
            EmailKind::DeliveriesRecovered => {
                let recovery = Recovery::deserialize(data).map_err(Unreadable::Data)?;
                Self::DeliveriesRecovered(Recovery {
                    count: occurrences,
                    ..recovery
                })
            }
        })
    }
}
