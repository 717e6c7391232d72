//! A JSON object member by member, as it is written: what members there are, in which order, how often. Members that
//! no caller asks for are not read any further than JSON itself needs.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object.
pub(crate) struct RawObject<'a>(Vec<(String, &'a RawValue)>);

impl<'a> RawObject<'a> {
    /// Reads an object; `None` for what is none.
    pub(crate) fn read(body: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// Whether it has no members but these, and each at most once.
    pub(crate) fn is_made_of(&self, names: &[&str]) -> bool {
        let times = |name: &str| self.0.iter().filter(|(other, _)| other == name).count();
        let is_known = |name: &String| names.contains(&name.as_str());
        self.0.iter().all(|(name, _)| is_known(name)) && names.iter().all(|name| times(name) <= 1)
    }

    /// A member that is a text, or missing or null.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, ()> {
        let Some(raw) = self.raw(name) else {
            return Ok(None);
        };
        serde_json::from_str(raw).map_err(drop)
    }

    /// A member as it is written.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        let member = self.0.iter().find(|(other, _)| other == name);
        member.map(|(_, raw)| raw.get())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Members).map(RawObject)
    }
}
