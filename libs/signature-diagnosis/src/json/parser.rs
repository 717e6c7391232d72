//! Reads JSON without losing what `serde_json::Value` forgets.
//!
//! `serde_json` does the parsing, a value at a time, and hands over the text of what is in it. Its features `preserve_order` and
//! `arbitrary_precision` would keep order and numbers as well, but for every crate that is built along with this one: there they
//! change which values are equal, and still one of two members of the same name is lost.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Json;

/// Values within values, at most: deeper ones are of no interest here, and `read` calls itself.
const DEPTH_MAX: usize = 100;

/// The document that these bytes are; `None` when they are none, or too deep a one.
pub(super) fn parse(bytes: &[u8]) -> Option<Json> {
    read(serde_json::from_slice(bytes).ok()?, 0)
}

fn read(value: &RawValue, depth: usize) -> Option<Json> {
    if depth > DEPTH_MAX {
        return None;
    }
    let text = value.get();
    match text.as_bytes().first()? {
        b'{' => {
            let Members(members) = serde_json::from_str(text).ok()?;
            let members = members
                .into_iter()
                .map(|(name, value)| Some((name, read(value, depth + 1)?)));
            members.collect::<Option<_>>().map(Json::Object)
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            let items = items.into_iter().map(|item| read(item, depth + 1));
            items.collect::<Option<_>>().map(Json::Array)
        }
        b'"' => serde_json::from_str(text).ok().map(Json::Text),
        _ => Some(Json::Plain(text.to_owned())),
    }
}

/// Of an object, as they are there: in their order, and with every one of several of the same name.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}
