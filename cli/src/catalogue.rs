//! The catalogue of event types that is built in, for commands that ask no server.

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a database has after its migrations.
const BUILT_IN: &str = include_str!("../../sdks/catalogue.json");

/// An event type as it is shown to resellers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventType {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) attributes: Vec<Attribute>,
    /// Data that is acceptable.
    pub(crate) example: Value,
    #[serde(default)]
    pub(crate) variants: Vec<Variant>,
    #[serde(default)]
    pub(crate) schema: Option<Value>,
}

/// An attribute of an event type's data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Attribute {
    /// With dots between the names of nested objects.
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) required: bool,
}

/// One of the forms that an event type's data takes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Variant {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) data: Value,
}

/// The event types that are known, by name.
#[derive(Debug)]
pub(crate) struct Catalogue {
    pub(crate) types: Vec<EventType>,
}

impl Catalogue {
    /// The one that is built in.
    pub(crate) fn built_in() -> anyhow::Result<Self> {
        let types =
            serde_json::from_str(BUILT_IN).context("the catalogue that is built in cannot be read")?;
        Ok(Self { types })
    }

    /// The event type of this name.
    pub(crate) fn find(&self, name: &str) -> anyhow::Result<&EventType> {
        let names = self.types.iter().map(|event_type| event_type.name.as_str());
        match self.types.iter().find(|event_type| event_type.name == name) {
            Some(found) => Ok(found),
            None => bail!(
                "the catalogue has no event type {name:?}{} `postrider events list` shows all of them",
                match domain::nearest::question(name, names) {
                    nothing if nothing.is_empty() => ";".to_owned(),
                    question => question,
                }
            ),
        }
    }
}

impl EventType {
    /// The data of a variant, or the example without one.
    pub(crate) fn data(&self, variant: Option<&str>) -> anyhow::Result<&Value> {
        let Some(name) = variant else {
            return Ok(&self.example);
        };
        let names: Vec<&str> = self
            .variants
            .iter()
            .map(|variant| variant.name.as_str())
            .collect();
        match self.variants.iter().find(|variant| variant.name == name) {
            Some(variant) => Ok(&variant.data),
            None if names.is_empty() => bail!("{} has no variants; leave --variant out", self.name),
            None => bail!(
                "{} has no variant {name:?}; it has {}",
                self.name,
                names.join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_that_is_built_in_can_be_read() {
        let catalogue = Catalogue::built_in().unwrap();
        let found = catalogue.find("domain.created").unwrap();
        assert!(found.example["domain"]["name"].is_string());
        assert!(
            found
                .attributes
                .iter()
                .any(|attribute| attribute.name == "domain.name" && attribute.required)
        );
    }

    #[test]
    fn every_example_and_variant_fits_its_schema() {
        for event_type in Catalogue::built_in().unwrap().types {
            let Some(schema) = &event_type.schema else {
                continue;
            };
            let rules =
                event_schema::PayloadRules::compile(schema, domain::event::UnknownFields::Refuse).unwrap();
            let variants = event_type.variants.iter().map(|variant| &variant.data);
            for data in variants.chain([&event_type.example]) {
                let text = data.to_string();
                assert_eq!(rules.check(&text).unwrap().violations, [], "{}", event_type.name);
            }
        }
    }

    #[test]
    fn unknown_names_are_answered_with_those_that_are_like_them() {
        let catalogue = Catalogue::built_in().unwrap();
        let error = catalogue.find("domain.craeted").unwrap_err().to_string();
        assert!(error.contains("did you mean domain.created"), "{error}");
        let created = catalogue.find("domain.created").unwrap();
        let error = created.data(Some("nowhere")).unwrap_err().to_string();
        assert!(error.contains("variant"), "{error}");
    }
}
