//! YAML into a tree that remembers the line of every value, so that an error can point at it.
//!
//! It deliberately knows no key: which ones there are is for `layers` to say.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;

/// A value and the line it stands on, counted from 1.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) line: u64,
    pub(crate) content: Content,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// Null, a boolean, a number or a text.
    Scalar(Value),
    /// Entries in the order of the text.
    Map(Vec<(String, Node)>),
    /// Entries in the order of the text.
    List(Vec<Node>),
}

impl Content {
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Scalar(Value::Null))
    }
}

/// Why a text is not YAML. The message quotes no line of it, which could hold a secret.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) line: u64,
    pub(crate) column: u64,
    pub(crate) message: String,
}

pub(crate) fn parse(text: &str) -> Result<Node, SyntaxError> {
    // `yes`, `no`, `on` and `off` are texts in YAML 1.2.
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let root: Spanned<Content> = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let location = error.location();
        SyntaxError {
            line: location.map_or(0, |location| location.line()),
            column: location.map_or(0, |location| location.column()),
            message: error.without_snippet().to_string(),
        }
    })?;
    Ok(root.into())
}

impl From<Spanned<Content>> for Node {
    fn from(spanned: Spanned<Content>) -> Self {
        Self {
            line: spanned.referenced.line(),
            content: spanned.value,
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, Spanned<Content>>()? {
            entries.push((key, value.into()));
        }
        Ok(Content::Map(entries))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Content, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element::<Spanned<Content>>()? {
            items.push(item.into());
        }
        Ok(Content::List(items))
    }
}
