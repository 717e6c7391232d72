//! The two lanes, by the names that operators and keys use.

use serde::{Deserialize, Serialize};

use crate::named;

/// A lane, as operators name it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// Pushes.
    Push,
    /// Notifications, their first attempts and their retries.
    Reseller,
}

named!(Lane, "lane");
