//! What a visit to the dashboard of a reseller may do beside looking.

use serde::{Deserialize, Serialize};

use crate::named;

/// One thing that a visit may do or not. Looking is no capability: every visit may.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Capability {
    /// See what notifications hold, and what endpoints answered.
    #[strum(serialize = "bodies")]
    #[serde(rename = "bodies")]
    Bodies,
    /// Make, change, pause, verify, test and delete subscriptions, and cancel what waits.
    #[strum(serialize = "manage")]
    #[serde(rename = "manage")]
    Manage,
    /// Send again and replay.
    #[strum(serialize = "resend")]
    #[serde(rename = "resend")]
    Resend,
    /// Look at signing secrets.
    #[strum(serialize = "secrets.reveal")]
    #[serde(rename = "secrets.reveal")]
    SecretsReveal,
    /// Make and revoke signing secrets.
    #[strum(serialize = "secrets.rotate")]
    #[serde(rename = "secrets.rotate")]
    SecretsRotate,
    /// Ask for quotas.
    #[strum(serialize = "quota")]
    #[serde(rename = "quota")]
    Quota,
}

named!(Capability, "capability");
