//! Identity of a push and the platform that it is for.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::{ContextV7, Timestamp, Uuid};

use crate::named;

/// Identifier of a push: a version 7 UUID, so it sorts by creation time and names its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PushId(Uuid);

impl PushId {
    /// A new identifier for something created at `now`. Two calls with the same time differ by their random part.
    pub fn at(now: DateTime<Utc>) -> Self {
        let seconds = u64::try_from(now.timestamp()).unwrap_or(0);
        let timestamp = Timestamp::from_unix(ContextV7::new(), seconds, now.timestamp_subsec_nanos());
        Self(Uuid::new_v7(timestamp))
    }

    /// When it was made, to the millisecond; the start of 1970 when the identifier was not made by [`Self::at`].
    pub fn created_at(self) -> DateTime<Utc> {
        let time = self.0.get_timestamp().and_then(|timestamp| {
            let (seconds, nanos) = timestamp.to_unix();
            DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanos)
        });
        time.unwrap_or_default()
    }

    /// The identifier as stored.
    pub fn uuid(self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for PushId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for PushId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The mobile platform that a push is for.
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
#[strum(serialize_all = "UPPERCASE")]
#[serde(rename_all = "UPPERCASE")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Platform {
    /// Apple's.
    Ios,
    /// Google's.
    Android,
}

named!(Platform, "platform");
