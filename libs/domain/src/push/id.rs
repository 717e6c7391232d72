//! Identity of a push and the platform that it is for.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::{ContextV7, Timestamp, Uuid};

/// Identifier of a push: a version 7 UUID, so it sorts by creation time and names its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PushId(Uuid);

impl PushId {
    /// A new identifier for something created at `now`. Two calls with the same time differ by their random part.
    #[must_use]
    pub fn at(now: DateTime<Utc>) -> Self {
        let seconds = u64::try_from(now.timestamp()).unwrap_or(0);
        let timestamp = Timestamp::from_unix(ContextV7::new(), seconds, now.timestamp_subsec_nanos());
        Self(Uuid::new_v7(timestamp))
    }

    /// When it was made, to the millisecond; the start of 1970 when the identifier was not made by [`Self::at`].
    #[must_use]
    pub fn created_at(self) -> DateTime<Utc> {
        let time = self.0.get_timestamp().and_then(|timestamp| {
            let (seconds, nanos) = timestamp.to_unix();
            DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanos)
        });
        time.unwrap_or_default()
    }

    /// The identifier as stored.
    #[must_use]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Platform {
    /// Apple's.
    Ios,
    /// Google's.
    Android,
}

impl Platform {
    /// Every platform there is.
    pub const ALL: [Self; 2] = [Self::Ios, Self::Android];

    /// The name on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ios => "IOS",
            Self::Android => "ANDROID",
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A platform's name that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown platform {0:?}: use IOS or ANDROID")]
pub struct UnknownPlatform(pub String);

impl FromStr for Platform {
    type Err = UnknownPlatform;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|p| p.as_str() == name)
            .ok_or_else(|| UnknownPlatform(name.to_owned()))
    }
}
