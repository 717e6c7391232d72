//! Which event types a subscription gets.

use std::fmt;

/// Longest name of an event type, in bytes.
const MAX_LENGTH: usize = 100;
/// What selects every event type.
const ALL: &str = "*";

/// One entry of a subscription's filter: an event type, all types below a prefix, or all.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventFilter(String);

/// Why a text is no filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an event type such as domain.created, a prefix such as domain.*, or * for all")]
pub struct FilterError;

impl EventFilter {
    /// Reads an entry.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let prefix = text.strip_suffix(".*").is_some_and(is_dotted);
        if text == ALL || prefix && text.len() <= MAX_LENGTH || is_event_type(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(FilterError)
    }

    /// Whether it lets an event type through.
    pub fn matches(&self, event_type: &str) -> bool {
        patterns_of(event_type).contains(&self.0)
    }

    /// The event type, when the entry names exactly one.
    pub fn exact(&self) -> Option<&str> {
        (!self.0.ends_with(ALL)).then_some(self.0.as_str())
    }

    /// The entry as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a text can be the name of an event type: words of small letters, digits and underscores, at least two, with
/// dots between them.
pub fn is_event_type(text: &str) -> bool {
    text.len() <= MAX_LENGTH && text.contains('.') && is_dotted(text)
}

/// Every entry that lets an event type through, the most general first. A subscription gets the event when its filter
/// has one of them, which a database can find without knowing the rule.
pub fn patterns_of(event_type: &str) -> Vec<String> {
    let prefixes = event_type
        .match_indices('.')
        .map(|(end, _)| format!("{}.{ALL}", &event_type[..end]));
    std::iter::once(ALL.to_owned())
        .chain(prefixes)
        .chain(std::iter::once(event_type.to_owned()))
        .collect()
}

fn is_dotted(text: &str) -> bool {
    text.split('.').all(|word| {
        word.starts_with(|first: char| first.is_ascii_lowercase())
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_let_through_by_itself_its_prefixes_and_all() {
        assert_eq!(
            patterns_of("domain.transfer.completed"),
            ["*", "domain.*", "domain.transfer.*", "domain.transfer.completed"]
        );
        let lets = |filter: &str, event_type| EventFilter::parse(filter).unwrap().matches(event_type);
        assert!(lets("domain.*", "domain.created") && lets("*", "domain.created"));
        assert!(!lets("domain.*", "domains.created") && !lets("domain.created", "domain.created_again"));
    }

    #[test]
    fn other_texts_are_no_filters() {
        for text in [
            "",
            "**",
            "*.created",
            "domain",
            "domain.",
            ".created",
            "Domain.created",
            "domain.*.x",
            "a b.c",
            "*.*",
        ] {
            assert!(EventFilter::parse(text).is_err(), "{text}");
        }
        assert!(EventFilter::parse(&format!("domain.{}", "a".repeat(100))).is_err());
    }
}
