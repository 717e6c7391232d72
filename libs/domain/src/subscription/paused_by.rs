//! Whose pause keeps notifications back, and what else does.

use crate::named;

/// Whose pause it is, the widest first: that one is named when there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum PausedBy {
    /// An operator has paused the lane.
    Lane,
    /// An operator has paused all of the reseller.
    AllOfReseller,
    /// An operator has paused the subscription.
    Operator,
    /// The reseller has paused its subscription.
    Reseller,
}

named!(PausedBy, "one who pauses");

impl PausedBy {
    /// What that means, as the end of a sentence about a notification.
    pub fn said(self) -> &'static str {
        match self {
            Self::Lane => "all deliveries are paused by an operator",
            Self::AllOfReseller => "its reseller is paused by an operator",
            Self::Operator => "the subscription is paused by an operator",
            Self::Reseller => "its reseller has paused the subscription",
        }
    }

    /// The two that a reseller can tell apart: its own pause, and one that only operators end.
    pub fn for_reseller(self) -> &'static str {
        match self {
            Self::Lane | Self::AllOfReseller | Self::Operator => "OPERATOR",
            Self::Reseller => "RESELLER",
        }
    }
}

/// What holds back the notifications of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeldBack {
    /// Whose pause does.
    pub paused_by: Option<PausedBy>,
    /// Whether it waits for the answer of its endpoint to the challenge.
    pub is_unverified: bool,
}
