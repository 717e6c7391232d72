//! The states of a subscription. Whether the reseller has paused it is a separate matter.

use crate::named;

/// What a subscription gets.
#[derive(
    serde::Serialize,
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum SubscriptionState {
    /// Nothing but challenges, until its endpoint has answered one.
    PendingVerification,
    /// Everything that its filter lets through.
    Active,
    /// The same, although it has failed for days.
    Degraded,
    /// Nothing. Its events are stored and can be replayed.
    Deactivated,
}

named!(SubscriptionState, "state of a subscription");

impl SubscriptionState {
    /// Whether events become notifications.
    pub fn receives(self) -> bool {
        matches!(self, Self::Active | Self::Degraded)
    }
}
