//! Which fields of a payload its schema lists, and the payload without the others.
//!
//! JSON Schema allows what it does not mention. Here a field counts as listed only when some part of the schema that
//! applies to its place names it: under `properties`, by `patternProperties`, or by an `additionalProperties` that is not
//! `false`. Parts of `allOf`, `anyOf`, `oneOf`, `if`, `then`, `else` and `$ref` apply where they stand, whichever of them
//! the payload keeps to: that is for the validator. `true` lists everything below its place.

use std::collections::{HashMap, HashSet};
use std::ptr;

use jsonschema::{PatternOptions, Validator};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::schema::TOLD;
use crate::text::Reader;

/// What lists the fields of payloads.
#[derive(Debug)]
pub(crate) struct ListedFields {
    schema: Value,
    /// The patterns of names that stand in it, compiled.
    patterns: HashMap<String, Validator>,
}

/// What of a payload its schema lists.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    /// JSON Pointers to the first fields that are not listed; what is below one of them is not looked at.
    pub(crate) unlisted: Vec<String>,
    /// The payload without any of them, as JSON. What stays is as it was written, but for blanks.
    pub(crate) kept: String,
}

/// The parts of a schema that apply to a place of a payload.
#[derive(Default)]
struct Parts<'s> {
    parts: Vec<&'s Map<String, Value>>,
    seen: HashSet<*const Map<String, Value>>,
    /// Everything is listed here.
    open: bool,
}

impl ListedFields {
    pub(crate) fn of(schema: &Value) -> Self {
        let mut patterns = HashMap::new();
        compile_names(schema, &mut patterns);
        Self {
            schema: schema.clone(),
            patterns,
        }
    }

    /// Tells the listed fields of a payload from the others. Names that are given twice are looked at each time: readers
    /// differ in which of them they take.
    pub(crate) fn cut(&self, payload: &str) -> Result<Cut, serde_json::Error> {
        let _: &RawValue = serde_json::from_str(payload)?;
        self.read(&mut Reader::of(payload))
    }

    fn read(&self, text: &mut Reader<'_>) -> Result<Cut, serde_json::Error> {
        let mut cut = Cut::default();
        let mut parts = Parts::default();
        self.list_all(&self.schema, &mut parts);
        self.walk(text, &parts, &mut String::new(), &mut cut)?;
        Ok(cut)
    }

    fn walk(
        &self,
        text: &mut Reader<'_>,
        parts: &Parts<'_>,
        place: &mut String,
        cut: &mut Cut,
    ) -> Result<(), serde_json::Error> {
        match text.peek() {
            Some(b'{' | b'[') if parts.open => cut.kept.push_str(text.value()),
            Some(first @ (b'{' | b'[')) => {
                if let Some(given) = parts.given_at(text) {
                    cut.kept.push_str(given);
                } else if first == b'{' {
                    self.walk_members(text, parts, place, cut)?;
                } else {
                    self.walk_items(text, parts, place, cut)?;
                }
            }
            _ => cut.kept.push_str(text.value()),
        }
        Ok(())
    }

    fn walk_members(
        &self,
        text: &mut Reader<'_>,
        parts: &Parts<'_>,
        place: &mut String,
        cut: &mut Cut,
    ) -> Result<(), serde_json::Error> {
        let above = place.len();
        text.take(b'{');
        cut.kept.push('{');
        let mut first = true;
        while text.goes_on(b'}') {
            let name = text.name()?;
            place.push('/');
            place.push_str(&name.replace('~', "~0").replace('/', "~1"));
            if let Some(below) = self.member(parts, &name) {
                if !std::mem::take(&mut first) {
                    cut.kept.push(',');
                }
                cut.kept.push_str(&Value::String(name).to_string());
                cut.kept.push(':');
                self.walk(text, &below, place, cut)?;
            } else {
                text.value();
                cut.note(place);
            }
            place.truncate(above);
        }
        cut.kept.push('}');
        Ok(())
    }

    fn walk_items(
        &self,
        text: &mut Reader<'_>,
        parts: &Parts<'_>,
        place: &mut String,
        cut: &mut Cut,
    ) -> Result<(), serde_json::Error> {
        let above = place.len();
        text.take(b'[');
        cut.kept.push('[');
        let mut index = 0;
        while text.goes_on(b']') {
            if index > 0 {
                cut.kept.push(',');
            }
            place.push('/');
            place.push_str(&index.to_string());
            self.walk(text, &self.item(parts, index), place, cut)?;
            place.truncate(above);
            index += 1;
        }
        cut.kept.push(']');
        Ok(())
    }

    /// Adds a part, with those that apply wherever it does.
    fn add<'s>(&'s self, schema: &'s Value, parts: &mut Parts<'s>) {
        let Value::Object(part) = schema else { return };
        // References may lead back to where they stand.
        if !parts.seen.insert(ptr::from_ref(part)) {
            return;
        }
        parts.parts.push(part);
        for (word, value) in part {
            match (word.as_str(), value) {
                ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                    branches.iter().for_each(|branch| self.add(branch, parts));
                }
                ("if" | "then" | "else", branch) => self.add(branch, parts),
                ("dependentSchemas" | "dependencies", Value::Object(branches)) => {
                    branches.values().for_each(|branch| self.add(branch, parts));
                }
                ("$ref", Value::String(reference)) => {
                    if let Some(target) = self.target(reference) {
                        self.list_all(target, parts);
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds what a place of its own is said to be. Returns whether there may be anything.
    fn list_all<'s>(&'s self, schema: &'s Value, parts: &mut Parts<'s>) -> bool {
        parts.open |= *schema == Value::Bool(true);
        self.add(schema, parts);
        *schema != Value::Bool(false)
    }

    fn target(&self, reference: &str) -> Option<&Value> {
        self.schema.pointer(reference.strip_prefix('#')?)
    }

    /// What applies to the member `name`, when it is listed.
    fn member<'s>(&'s self, parts: &Parts<'s>, name: &str) -> Option<Parts<'s>> {
        let mut below = Parts::default();
        let mut listed = false;
        for part in &parts.parts {
            let mut named = false;
            if let Some(schema) = part.get("properties").and_then(|named| named.get(name)) {
                named |= self.list_all(schema, &mut below);
            }
            for (pattern, schema) in part
                .get("patternProperties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                let matcher = self.patterns.get(pattern);
                if matcher.is_some_and(|matcher| matcher.is_valid(&Value::String(name.to_owned()))) {
                    named |= self.list_all(schema, &mut below);
                }
            }
            for word in ["additionalProperties", "unevaluatedProperties"] {
                if let Some(schema) = part.get(word).filter(|_| !named) {
                    named |= self.list_all(schema, &mut below);
                }
            }
            listed |= named;
        }
        listed.then_some(below)
    }

    /// What applies to the item at this index.
    fn item<'s>(&'s self, parts: &Parts<'s>, index: usize) -> Parts<'s> {
        let mut below = Parts::default();
        for part in &parts.parts {
            for word in [
                "prefixItems",
                "items",
                "additionalItems",
                "contains",
                "unevaluatedItems",
            ] {
                match part.get(word) {
                    Some(Value::Array(items)) => {
                        if let Some(schema) = items.get(index) {
                            self.list_all(schema, &mut below);
                        }
                    }
                    Some(schema) => {
                        self.list_all(schema, &mut below);
                    }
                    None => {}
                }
            }
        }
        below
    }
}

impl Parts<'_> {
    /// The next value, if the schema holds this very one, as `const` or in `enum`.
    fn given_at<'t>(&self, text: &mut Reader<'t>) -> Option<&'t str> {
        let mut given = self.parts.iter().flat_map(|part| {
            let one = part.get("const").into_iter();
            one.chain(part.get("enum").and_then(Value::as_array).into_iter().flatten())
        });
        given.find_map(|value| text.written_as(value))
    }
}

impl Cut {
    fn note(&mut self, place: &str) {
        if self.unlisted.len() < TOLD {
            self.unlisted.push(place.to_owned());
        }
    }
}

/// Compiles every pattern of names, as the validator does.
fn compile_names(schema: &Value, patterns: &mut HashMap<String, Validator>) {
    match schema {
        Value::Object(members) => {
            let named = members.get("patternProperties").and_then(Value::as_object);
            for pattern in named.into_iter().flat_map(Map::keys) {
                let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
                if let Ok(matcher) = options.build(&json!({ "pattern": pattern })) {
                    patterns.insert(pattern.clone(), matcher);
                }
            }
            members
                .values()
                .for_each(|member| compile_names(member, patterns));
        }
        Value::Array(items) => items.iter().for_each(|item| compile_names(item, patterns)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is not listed, and what is left.
    fn cut(schema: &Value, payload: &str) -> (Vec<String>, String) {
        let Cut { unlisted, kept } = ListedFields::of(schema).cut(payload).unwrap();
        (unlisted, kept)
    }

    #[track_caller]
    fn unlisted(schema: &Value, payload: &Value) -> Vec<String> {
        cut(schema, &payload.to_string()).0
    }

    #[test]
    fn a_field_that_is_not_listed_is_named_wherever_it_stands() {
        let schema = json!({"type": "object", "properties": {
            "domain": {"type": "object", "properties": {"name": {"type": "string"}}},
            "contacts": {"type": "array", "items": {"properties": {"id": {}}}},
        }});
        let payload = json!({
            "domain": {"name": "example.org", "authCode": "s3cr3t"},
            "contacts": [{"id": "c-1"}, {"id": "c-2", "phone": "+371"}],
            "pass/word~": 1,
        });
        let mut found = unlisted(&schema, &payload);
        found.sort();
        assert_eq!(found, ["/contacts/1/phone", "/domain/authCode", "/pass~1word~0"]);
    }

    #[test]
    fn what_is_left_is_as_it_was_written() {
        let schema = json!({"properties": {
            "price": {"type": "number"}, "rates": {"items": {"properties": {"n": {}}}}, "text": {},
        }});
        let payload = r#"{ "secret": {"price": 1}, "price": 1.10, "rates": [ {"n": 123456789012345678901234567890, "x": 1}, [], 2 ],
            "text": "\u00e4\n" }"#;
        let (unlisted, kept) = cut(&schema, payload);
        assert_eq!(unlisted, ["/secret", "/rates/0/x"]);
        assert_eq!(
            kept,
            r#"{"price":1.10,"rates":[{"n":123456789012345678901234567890},[],2],"text":"\u00e4\n"}"#
        );
    }

    #[test]
    fn a_name_that_is_given_twice_is_looked_at_twice() {
        let schema = json!({"properties": {"domain": {"properties": {"name": {}}}}});
        let payload = r#"{"domain":{"authCode":"s3cr3t"},"domain":{"name":"example.org"}}"#;
        let (unlisted, kept) = cut(&schema, payload);
        assert_eq!(unlisted, ["/domain/authCode"]);
        assert_eq!(kept, r#"{"domain":{},"domain":{"name":"example.org"}}"#);
    }

    #[test]
    fn every_way_of_listing_a_field_counts() {
        let a = || json!({"properties": {"a": {"type": "integer"}}});
        for schema in [
            a(),
            json!({"allOf": [a(), {"properties": {"b": {}}}]}),
            json!({"anyOf": [{"required": ["b"]}, a()]}),
            json!({"oneOf": [a()]}),
            json!({"if": {"required": ["b"]}, "then": {}, "else": a()}),
            json!({"dependentSchemas": {"b": a()}}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": a()}}),
            json!({"patternProperties": {"^[ab]$": {}}}),
            json!({"additionalProperties": {"type": "integer"}}),
            json!({"additionalProperties": true}),
            json!({"unevaluatedProperties": true}),
            json!({"const": {"a": 1}}),
            json!({"enum": [1, {"a": 1}]}),
            json!(true),
        ] {
            assert!(unlisted(&schema, &json!({"a": 1})).is_empty(), "{schema}");
        }
    }

    #[test]
    fn what_says_nothing_of_a_field_does_not_list_it() {
        for schema in [
            json!({}),
            json!({"type": "object"}),
            json!({"required": ["a"]}),
            json!({"properties": {"a": false}}),
            json!({"properties": {"b": {"properties": {"a": {}}}}}),
            json!({"patternProperties": {"^b": {}}}),
            json!({"additionalProperties": false}),
            json!({"allOf": [true, {"properties": {"b": {}}}]}),
            json!({"enum": [{"a": 2}]}),
            json!({"$ref": "#/$defs/b"}),
        ] {
            assert_eq!(unlisted(&schema, &json!({"a": 1})), ["/a"], "{schema}");
        }
    }

    #[test]
    fn true_lists_everything_below_its_place_and_an_empty_schema_nothing() {
        let payload = json!({"a": {"b": {"c": 1}}});
        assert!(unlisted(&json!({"properties": {"a": true}}), &payload).is_empty());
        assert_eq!(unlisted(&json!({"properties": {"a": {}}}), &payload), ["/a/b"]);
    }

    #[test]
    fn schemas_that_refer_to_themselves_list_payloads_of_any_depth() {
        let tree =
            json!({"properties": {"children": {"items": {"$ref": "#"}}, "n": {}}, "anyOf": [{"$ref": "#"}]});
        let leaf = json!({"n": 1, "x": 1});
        let deep = (0..50).fold(leaf, |inner, _| json!({"n": 1, "children": [inner]}));
        assert_eq!(
            unlisted(&tree, &deep),
            [format!("{}/x", "/children/0".repeat(50))]
        );
    }

    #[test]
    fn of_a_flood_of_fields_some_are_told_and_all_are_dropped() {
        let payload: Value = (0..1000).map(|n| (n.to_string(), json!(n))).collect();
        let (unlisted, kept) = cut(&json!({}), &payload.to_string());
        assert_eq!((unlisted.len(), kept.as_str()), (TOLD, "{}"));
    }

    /// Lists in lists, objects in objects, and values that the schema holds at every level.
    #[test]
    fn each_byte_is_looked_at_a_few_times_however_deep_it_stands() {
        let schema = json!({
            "properties": {"a": {"$ref": "#"}}, "items": {"$ref": "#"}, "enum": [["x"], {"a": "x"}], "const": [[["x"]]],
        });
        let listed = ListedFields::of(&schema);
        for (open, close) in [
            ("[", "]"),
            (r#"{"a":"#, "}"),
            (r#"{"b":[1],"a":["#, "]}"),
            ("[ 1 ,", "]"),
        ] {
            let depth = 500;
            let text = format!(
                "{}\"{}\"{}",
                open.repeat(depth),
                "y".repeat(500),
                close.repeat(depth)
            );
            let mut reader = Reader::of(&text);
            listed.read(&mut reader).unwrap();
            assert!(
                reader.passed <= 5 * text.len(),
                "{} of {}",
                reader.passed,
                text.len()
            );
        }
    }
}
