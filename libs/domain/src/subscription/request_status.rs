//! What a reseller can ask for that takes its time: a higher quota, and missed events once more.

use crate::named;

/// Where a quota request stands.
#[derive(
    serde::Serialize, Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum QuotaRequestStatus {
    /// No operator has decided it yet.
    Requested,
    /// The quota was raised.
    Approved,
    /// It was not.
    Denied,
}

named!(QuotaRequestStatus, "status of a quota request");

/// Where a replay stands.
#[derive(
    serde::Serialize, Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ReplayStatus {
    /// Goes on, or waits for its subscription to be active.
    Running,
    /// Has been through all of its events.
    Completed,
    /// Was stopped before.
    Cancelled,
}

named!(ReplayStatus, "status of a replay");
