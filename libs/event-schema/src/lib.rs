//! What an event type's entry in the catalogue must be, and whether a payload is what its JSON Schema asks for.
//!
//! It deliberately fetches nothing: a schema that refers to something outside itself is refused. And it never repeats
//! what a payload holds: an explanation names the place and the rule.

mod definition;
mod listed;
mod reach;
mod rule;
mod rules;
mod schema;
mod text;
mod variant;

pub use definition::{Attribute, DEFINITION_MAX, Definition, Finding};
pub use rule::Rule;
pub use rules::{Checked, PayloadRules};
pub use schema::{PayloadSchema, SchemaError, Violation};
pub use variant::Variant;
