//! What an ingest key is limited to, for callers that hand in one kind of thing and should not be able to hand in another.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::lane::Lane;
use crate::reseller::{RESELLER_ID_FORM, is_reseller_id};
use crate::subscription::{EventFilter, FilterError, patterns_of};

/// Most entries of each list.
pub const SCOPE_ENTRIES: usize = 100;
/// The longest entry, in bytes.
const ENTRY_MAX_BYTES: usize = 200;

/// What a key may hand in. A list that is empty limits nothing, and lists of one lane alone shut the other.
///
/// One that a later version wrote, with limits that are not known here, cannot be read: a key must not be able to do more for it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Scope {
    /// Pushes alone, or events alone (`reseller`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    /// Pushes of these message prototypes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_items = 100, required = false))]
    pub prototypes: Vec<String>,
    /// Events of these resellers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_items = 100, required = false))]
    pub resellers: Vec<String>,
    /// Events of these types: `domain.created`, or `domain.*` for all that begin so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_items = 100, required = false))]
    pub event_types: Vec<String>,
}

/// What is handed in is not within the scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfScope {
    /// The field of what is handed in that is not.
    pub field: &'static str,
    /// To what the key is limited.
    limit: String,
}

impl fmt::Display for OutOfScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the API key may hand in {} only", self.limit)
    }
}

impl Scope {
    /// Whether it limits nothing.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// The only lane that is open, if one is shut: a key for pushes of one prototype hands in no events.
    fn only(&self) -> Option<Lane> {
        let of_events = !self.resellers.is_empty() || !self.event_types.is_empty();
        self.lane.or(match (self.prototypes.is_empty(), of_events) {
            (false, false) => Some(Lane::Push),
            (true, true) => Some(Lane::Reseller),
            _ => None,
        })
    }

    /// Why a push of this prototype may not be handed in, if so.
    pub fn refuses_push(&self, prototype: Option<&str>) -> Option<OutOfScope> {
        if self.only() == Some(Lane::Reseller) {
            return Some(out_of("", "events"));
        }
        let within = self.prototypes.is_empty()
            || prototype.is_some_and(|prototype| self.prototypes.iter().any(|one| one == prototype));
        (!within).then(|| out_of("messagePrototypeKey", &listed("pushes of", &self.prototypes)))
    }

    /// Why an event of this reseller and type may not be handed in, if so.
    pub fn refuses_event(&self, reseller: &str, event_type: &str) -> Option<OutOfScope> {
        if self.only() == Some(Lane::Push) {
            return Some(out_of("", "pushes"));
        }
        if !self.resellers.is_empty() && !self.resellers.iter().any(|one| one == reseller) {
            return Some(out_of("resellerId", &listed("events of", &self.resellers)));
        }
        let within = self.event_types.is_empty()
            || patterns_of(event_type)
                .iter()
                .any(|pattern| self.event_types.contains(pattern));
        (!within).then(|| out_of("type", &listed("events of the types", &self.event_types)))
    }

    /// What is wrong with it, by the field.
    pub fn wrong(&self) -> Vec<(&'static str, String)> {
        let mut wrong = Vec::new();
        let sound = |text: &String| {
            !text.trim().is_empty() && text.len() <= ENTRY_MAX_BYTES && !text.contains(char::is_control)
        };
        let prototype = format!("must be 1 to {ENTRY_MAX_BYTES} bytes without control characters");
        let lists: [(&'static str, &[String], bool, String, Lane); 3] = [
            (
                "prototypes",
                &self.prototypes,
                self.prototypes.iter().all(sound),
                prototype,
                Lane::Push,
            ),
            (
                "resellers",
                &self.resellers,
                self.resellers.iter().all(|id| is_reseller_id(id)),
                format!("must be {RESELLER_ID_FORM}"),
                Lane::Reseller,
            ),
            (
                "eventTypes",
                &self.event_types,
                self.event_types
                    .iter()
                    .all(|text| EventFilter::parse(text).is_ok()),
                FilterError.to_string(),
                Lane::Reseller,
            ),
        ];
        for (field, entries, sound, form, lane) in lists {
            if !sound {
                wrong.push((field, format!("each entry {form}")));
            } else if entries.len() > SCOPE_ENTRIES {
                wrong.push((field, format!("has at most {SCOPE_ENTRIES} entries")));
            } else if !entries.is_empty() && self.lane.is_some_and(|only| only != lane) {
                wrong.push((field, format!("goes with the lane {lane} only")));
            }
        }
        wrong
    }
}

/// The limits in words, such as `lane push, prototypes Hello Bye`; nothing when there are none.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lane = self.lane.map(|lane| format!("lane {lane}"));
        let lists = [
            ("prototypes", &self.prototypes),
            ("resellers", &self.resellers),
            ("event types", &self.event_types),
        ];
        let lists = lists.into_iter().filter(|(_, entries)| !entries.is_empty());
        let lists = lists.map(|(name, entries)| format!("{name} {}", entries.join(" ")));
        f.write_str(&lane.into_iter().chain(lists).collect::<Vec<_>>().join(", "))
    }
}

/// What limits a key, in words: its scope and how many it may hand in a second; nothing when nothing does.
pub fn limits(scope: &Scope, per_second: Option<u32>) -> String {
    let rate = per_second.map(|rate| format!("{rate} a second"));
    let scope = Some(scope.to_string()).filter(|scope| !scope.is_empty());
    scope.into_iter().chain(rate).collect::<Vec<_>>().join(", ")
}

fn out_of(field: &'static str, limit: &str) -> OutOfScope {
    OutOfScope {
        field,
        limit: limit.to_owned(),
    }
}

fn listed(what: &str, entries: &[String]) -> String {
    format!("{what} {}", entries.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn an_open_scope_refuses_nothing() {
        let scope = Scope::default();
        assert!(scope.is_open() && scope.wrong().is_empty());
        assert_eq!(scope.refuses_push(None), None);
        assert_eq!(scope.refuses_event("acme", "domain.created"), None);
    }

    #[test]
    fn each_limit_names_the_field_and_what_is_allowed() {
        let scope = Scope {
            prototypes: names(&["Hello", "Bye"]),
            resellers: names(&["acme"]),
            event_types: names(&["domain.*", "zone.changed"]),
            ..Scope::default()
        };
        assert_eq!(scope.refuses_push(Some("Bye")), None);
        for prototype in [None, Some("hello")] {
            let refused = scope.refuses_push(prototype).unwrap();
            assert_eq!(refused.field, "messagePrototypeKey");
            assert_eq!(
                refused.to_string(),
                "the API key may hand in pushes of Hello, Bye only"
            );
        }
        for (reseller, event_type, field) in [
            ("acme", "domain.transfer.completed", None),
            ("acme", "zone.changed", None),
            ("acme", "zone.removed", Some("type")),
            ("bolt", "zone.changed", Some("resellerId")),
        ] {
            let refused = scope.refuses_event(reseller, event_type);
            assert_eq!(
                refused.map(|refused| refused.field),
                field,
                "{reseller} {event_type}"
            );
        }
    }

    #[test]
    fn a_lane_shuts_the_other() {
        let of = |lane| Scope {
            lane: Some(lane),
            ..Scope::default()
        };
        assert!(of(Lane::Push).refuses_event("acme", "domain.created").is_some());
        assert_eq!(of(Lane::Push).refuses_push(None), None);
        assert!(of(Lane::Reseller).refuses_push(Some("Hello")).is_some());
        assert_eq!(of(Lane::Reseller).refuses_event("acme", "domain.created"), None);
    }

    #[test]
    fn lists_of_one_lane_alone_shut_the_other() {
        let pushes = Scope {
            prototypes: names(&["Hello"]),
            ..Scope::default()
        };
        assert!(pushes.refuses_event("acme", "domain.created").is_some());
        assert_eq!(pushes.refuses_push(Some("Hello")), None);
        for events in [
            Scope {
                resellers: names(&["acme"]),
                ..Scope::default()
            },
            Scope {
                event_types: names(&["domain.*"]),
                ..Scope::default()
            },
        ] {
            assert!(events.refuses_push(Some("Hello")).is_some());
            assert_eq!(events.refuses_event("acme", "domain.created"), None);
        }
    }

    #[test]
    fn what_could_not_be_meant_is_told_by_its_field() {
        let wrong = Scope {
            lane: Some(Lane::Push),
            prototypes: names(&[" "]),
            resellers: names(&["acme"]),
            event_types: names(&["domain"]),
        };
        let fields: Vec<_> = wrong.wrong().into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["prototypes", "resellers", "eventTypes"]);
        let many = Scope {
            resellers: vec!["acme".to_owned(); SCOPE_ENTRIES + 1],
            ..Scope::default()
        };
        assert_eq!(
            many.wrong(),
            [("resellers", "has at most 100 entries".to_owned())]
        );
    }

    #[test]
    fn its_words_name_what_it_is_limited_to() {
        let scope = Scope {
            lane: Some(Lane::Push),
            prototypes: names(&["Hello", "Bye"]),
            ..Scope::default()
        };
        assert_eq!(scope.to_string(), "lane push, prototypes Hello Bye");
        assert_eq!(
            limits(&scope, Some(9)),
            "lane push, prototypes Hello Bye, 9 a second"
        );
        assert_eq!(limits(&Scope::default(), Some(9)), "9 a second");
        assert_eq!(limits(&Scope::default(), None), "");
    }
}
