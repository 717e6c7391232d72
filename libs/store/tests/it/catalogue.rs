//! The catalogue that comes with the schema, as resellers read it: the file of it is up to date, and its payloads show
//! everything that can arrive.

use std::collections::HashSet;
use std::path::PathBuf;

use event_schema::{Attribute, Definition, Variant};
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::PgPool;
use store::Store;
use store::webhook::EventType;

/// An event type of the file.
#[derive(Serialize)]
struct Entry {
    name: String,
    description: String,
    attributes: Vec<Attribute>,
    example: Value,
    variants: Vec<Variant>,
    schema: Option<Value>,
}

async fn entries(pool: PgPool) -> Vec<Entry> {
    let types = Store::from_pool(pool).list_event_types().await.unwrap();
    assert!(types.len() >= 30, "{}", types.len());
    types.into_iter().map(entry).collect()
}

fn entry(event_type: EventType) -> Entry {
    Entry {
        name: event_type.name,
        description: event_type.description,
        attributes: serde_json::from_value(event_type.attributes).unwrap(),
        example: event_type.example,
        variants: serde_json::from_value(event_type.variants).unwrap(),
        schema: event_type.schema,
    }
}

impl Entry {
    fn payloads(&self) -> Vec<&Value> {
        let variants = self.variants.iter().map(|variant| &variant.data);
        std::iter::once(&self.example).chain(variants).collect()
    }

    /// What the payloads have at an attribute.
    fn values(&self, attribute: &Attribute) -> Vec<Option<&Value>> {
        let pointer = format!("/{}", attribute.name.replace('.', "/"));
        let payloads = self.payloads();
        payloads
            .into_iter()
            .map(|payload| payload.pointer(&pointer))
            .collect()
    }
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../sdks/catalogue.json")
}

/// Regenerate with `UPDATE_CATALOGUE=1 cargo test -p store catalogue_file`.
#[testkit::database_test]
async fn catalogue_file_is_up_to_date(pool: PgPool) {
    let mut made = serde_json::to_string_pretty(&entries(pool).await).unwrap();
    made.push('\n');
    if std::env::var_os("UPDATE_CATALOGUE").is_some() {
        std::fs::write(path(), &made).unwrap();
    }
    let present = std::fs::read_to_string(path()).unwrap();
    assert!(
        present == made,
        "sdks/catalogue.json is out of date: regenerate it with UPDATE_CATALOGUE=1"
    );
}

#[testkit::database_test]
async fn every_type_that_comes_with_the_schema_could_be_put_as_it_is(pool: PgPool) {
    for entry in entries(pool).await {
        let definition: Definition = serde_json::from_value(json!(entry)).unwrap();
        assert_eq!(definition.findings(&entry.name), [], "{}", entry.name);
        assert!(definition.schema.is_some() && !definition.attributes.is_empty());
    }
}

#[testkit::database_test]
async fn no_payload_is_shown_twice(pool: PgPool) {
    for entry in entries(pool).await {
        let payloads: Vec<String> = entry.payloads().into_iter().map(Value::to_string).collect();
        let different: HashSet<&String> = payloads.iter().collect();
        assert_eq!(different.len(), payloads.len(), "{}", entry.name);
    }
}

#[testkit::database_test]
async fn what_may_be_missing_is_shown_present_and_missing(pool: PgPool) {
    for entry in entries(pool).await {
        for attribute in entry.attributes.iter().filter(|attribute| !attribute.required) {
            let values = entry.values(attribute);
            let shown = (
                values.iter().any(Option::is_some),
                values.iter().any(Option::is_none),
            );
            assert_eq!(shown, (true, true), "{} {}", entry.name, attribute.name);
        }
    }
}

#[testkit::database_test]
async fn both_values_of_what_is_true_or_false_are_shown(pool: PgPool) {
    for entry in entries(pool).await {
        for attribute in entry
            .attributes
            .iter()
            .filter(|attribute| attribute.kind == "boolean")
        {
            let values = entry.values(attribute);
            for value in [json!(true), json!(false)] {
                assert!(
                    values.contains(&Some(&value)),
                    "{} {} {value}",
                    entry.name,
                    attribute.name
                );
            }
        }
    }
}

#[testkit::database_test]
async fn every_value_that_a_description_lists_is_shown(pool: PgPool) {
    let mut lists = 0;
    for entry in entries(pool).await {
        for attribute in &entry.attributes {
            let values = entry.values(attribute);
            let shown = |word: &str| {
                values
                    .iter()
                    .flatten()
                    .any(|value| **value == *word || **value == json!([word]))
            };
            let listed = listed(&attribute.description);
            lists += usize::from(!listed.is_empty());
            for word in listed {
                assert!(shown(word), "{} {} {word}", entry.name, attribute.name);
            }
        }
    }
    assert!(lists >= 15, "{lists}");
}

/// The words of a description such as `in or out.` or `Which of admin, tech and billing changed.`
fn listed(description: &str) -> Vec<&str> {
    let list = description.strip_prefix("Which of ").unwrap_or(description);
    let list = list
        .strip_suffix(" changed.")
        .unwrap_or(list)
        .trim_end_matches('.');
    let Some((before, last)) = list.rsplit_once(" or ").or_else(|| list.rsplit_once(" and ")) else {
        return Vec::new();
    };
    let words: Vec<&str> = before.split(", ").chain([last]).collect();
    let is_word = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if words.iter().all(is_word) {
        words
    } else {
        Vec::new()
    }
}

#[testkit::database_test]
async fn nothing_is_shown_that_is_no_attribute(pool: PgPool) {
    for entry in entries(pool).await {
        let names: HashSet<&str> = entry
            .attributes
            .iter()
            .map(|attribute| &*attribute.name)
            .collect();
        for payload in entry.payloads() {
            for name in leaves(payload, "") {
                assert!(names.contains(&*name), "{} {name}", entry.name);
            }
        }
    }
}

/// The names of what is no object, with dots between those of nested objects.
fn leaves(payload: &Value, within: &str) -> Vec<String> {
    let members = payload.as_object().unwrap().iter();
    members
        .flat_map(|(name, value)| match value {
            Value::Object(_) => leaves(value, &format!("{within}{name}.")),
            _ => vec![format!("{within}{name}")],
        })
        .collect()
}
