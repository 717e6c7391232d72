//! Further payloads of an event type, one for each way that it can differ from the example.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definition::{DESCRIPTION_MAX, Finding, JSON_MAX};

/// Most variants of an event type.
const VARIANTS_MAX: usize = 50;
/// Longest name of a variant, in bytes.
const NAME_MAX: usize = 50;
/// Most bytes of compact JSON that the data of all variants of an event type may take: a reader of the catalogue gets
/// them all.
const ALL_DATA_MAX: usize = 4 * JSON_MAX;

/// A way that payloads of an event type can differ from its example: another reason, another direction, an attribute
/// that is not always there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub struct Variant {
    /// Tells it from the other variants of its event type: words of small letters and digits, with hyphens between them.
    pub name: String,
    /// When it occurs, for people.
    pub description: String,
    /// A payload.
    pub data: Value,
}

/// What is wrong with the variants, whatever the schema says.
pub(crate) fn check(variants: &[Variant], findings: &mut Vec<Finding>) {
    if variants.len() > VARIANTS_MAX {
        findings.push(Finding::new(
            "variants",
            format!("must be at most {VARIANTS_MAX}"),
        ));
    }
    let mut names = HashSet::new();
    let mut bytes = 0;
    for (place, variant) in variants.iter().enumerate() {
        let mut wrong = |field, detail: String| findings.push(Finding::new(place_of(place, field), detail));
        if !is_name(&variant.name) {
            let detail = format!(
                "must be words of small letters and digits with hyphens between them, such as court-order, and at most \
                 {NAME_MAX} bytes long"
            );
            wrong("name", detail);
        } else if !names.insert(&variant.name) {
            wrong("name", "must not be given twice".to_owned());
        }
        if variant.description.trim().is_empty() || variant.description.len() > DESCRIPTION_MAX {
            let detail = format!("must be a text of at most {DESCRIPTION_MAX} bytes that is not blank");
            wrong("description", detail);
        }
        let length = variant.data.to_string().len();
        bytes += length;
        if !variant.data.is_object() {
            wrong("data", "must be a JSON object".to_owned());
        } else if length > JSON_MAX {
            wrong("data", format!("must be at most {JSON_MAX} bytes long"));
        }
    }
    if bytes > ALL_DATA_MAX {
        let detail = format!("must hold at most {ALL_DATA_MAX} bytes of data together");
        findings.push(Finding::new("variants", detail));
    }
}

/// A field of the variant at this place, as findings name it.
pub(crate) fn place_of(place: usize, field: &str) -> String {
    format!("variants[{place}].{field}")
}

fn is_name(name: &str) -> bool {
    let is_word = |word: &str| {
        let mut bytes = word.bytes();
        !word.is_empty() && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    name.len() <= NAME_MAX && name.split('-').all(is_word)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn variant(name: &str) -> Variant {
        Variant {
            name: name.to_owned(),
            description: "It was asked for.".to_owned(),
            data: json!({}),
        }
    }

    fn fields(variants: &[Variant]) -> Vec<String> {
        let mut findings = Vec::new();
        check(variants, &mut findings);
        findings.into_iter().map(|finding| finding.field).collect()
    }

    #[test]
    fn names_are_words_with_hyphens_between_them_and_unique() {
        for name in [
            "in",
            "court-order",
            "in-60-days",
            "ipv6",
            "7",
            &"x".repeat(NAME_MAX),
        ] {
            assert!(fields(&[variant(name)]).is_empty(), "{name}");
        }
        let too_long = "x".repeat(NAME_MAX + 1);
        for name in [
            "", "-", "a-", "-a", "a--b", "A", "a_b", "a b", "ä", "a.b", &too_long,
        ] {
            assert_eq!(fields(&[variant(name)]), ["variants[0].name"], "{name}");
        }
        let twice = [variant("in"), variant("out"), variant("in")];
        assert_eq!(fields(&twice), ["variants[2].name"]);
    }

    #[test]
    fn a_variant_says_when_it_occurs_and_holds_an_object() {
        for description in [" ", &"x".repeat(DESCRIPTION_MAX + 1)] {
            let wrong = Variant {
                description: description.to_owned(),
                ..variant("in")
            };
            assert_eq!(fields(&[wrong]), ["variants[0].description"]);
        }
        for data in [json!(null), json!([]), json!({"text": "x".repeat(JSON_MAX)})] {
            let wrong = Variant {
                data,
                ..variant("in")
            };
            assert_eq!(fields(&[wrong]), ["variants[0].data"]);
        }
    }

    #[test]
    fn there_are_neither_too_many_nor_too_large_ones() {
        let all: Vec<_> = (0..=VARIANTS_MAX)
            .map(|number| variant(&format!("v-{number}")))
            .collect();
        assert!(fields(&all[1..]).is_empty());
        assert_eq!(fields(&all), ["variants"]);
        let large = |number| Variant {
            data: json!({"text": "x".repeat(JSON_MAX - 11)}),
            ..variant(&format!("v-{number}"))
        };
        let large: Vec<_> = (0..=ALL_DATA_MAX / JSON_MAX).map(large).collect();
        assert!(fields(&large[1..]).is_empty());
        assert_eq!(fields(&large), ["variants"]);
    }
}
