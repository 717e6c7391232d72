//! How far the references and patterns of a schema reach: what of its work doubles, and with what. It is read from the
//! schema's text alone, and rather sees too much than too little.

use serde_json::Value;

/// A reference: where it stands, and where it leads.
struct Reference {
    place: String,
    target: String,
}

/// What a schema holds that its cost depends on.
#[derive(Default)]
pub(crate) struct Reach {
    references: Vec<Reference>,
    patterns: usize,
    /// Whether a reference may lead elsewhere than its text says.
    is_renamed: bool,
    /// Whether a reference does not name its target as a JSON Pointer.
    is_roundabout: bool,
}

impl Reach {
    pub(crate) fn of(schema: &Value) -> Self {
        let mut reach = Self::default();
        reach.look_at(schema, "");
        reach
    }

    /// How many references there are, wherever they stand.
    pub(crate) fn references(&self) -> usize {
        self.references.len()
    }

    /// How many patterns there are.
    pub(crate) fn patterns(&self) -> usize {
        self.patterns
    }

    /// Whether every reference says plainly where it leads.
    pub(crate) fn is_plain(&self) -> bool {
        !self.is_renamed && !self.is_roundabout
    }

    /// How many references may lead back to themselves, by whatever way.
    pub(crate) fn cyclic_references(&self) -> usize {
        let places = 0..self.references.len();
        places.filter(|place| self.leads_back(*place)).count()
    }

    fn look_at(&mut self, value: &Value, place: &str) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    self.note(name, member, place);
                    self.look_at(
                        member,
                        &format!("{place}/{}", name.replace('~', "~0").replace('/', "~1")),
                    );
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.look_at(item, &format!("{place}/{index}"));
                }
            }
            _ => {}
        }
    }

    fn note(&mut self, name: &str, member: &Value, place: &str) {
        match name {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                self.is_roundabout |= pointer_of(name, member).is_none();
                self.references.push(Reference {
                    place: place.to_owned(),
                    target: pointer_of(name, member).unwrap_or_default().to_owned(),
                });
            }
            "$id" | "id" if member.is_string() && !place.is_empty() => self.is_renamed = true,
            "pattern" => self.patterns += 1,
            "patternProperties" => self.patterns += member.as_object().map_or(0, serde_json::Map::len),
            _ => {}
        }
    }

    fn leads_back(&self, start: usize) -> bool {
        let mut reached = vec![false; self.references.len()];
        let mut ahead = vec![start];
        while let Some(place) = ahead.pop() {
            for (next, reference) in self.references.iter().enumerate() {
                if !reached[next] && self.is_below(reference, &self.references[place].target) {
                    reached[next] = true;
                    ahead.push(next);
                }
            }
        }
        reached[start]
    }

    fn is_below(&self, reference: &Reference, target: &str) -> bool {
        let rest = reference.place.strip_prefix(target);
        self.is_renamed || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// The place that a reference names, when it does so plainly.
fn pointer_of<'a>(name: &str, member: &'a Value) -> Option<&'a str> {
    let pointer = member.as_str()?.strip_prefix('#')?;
    let plain = pointer.is_empty() || pointer.starts_with('/') && !pointer.contains('%');
    Some(pointer).filter(|_| plain && name == "$ref")
}

/// How many lists and objects a value holds in each other.
pub(crate) fn depth_of(value: &Value) -> u32 {
    match value {
        Value::Object(members) => 1 + members.values().map(depth_of).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_that_lead_back_are_told_from_those_that_do_not() {
        for (schema, cyclic) in [
            (
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {}}}),
                0,
            ),
            (json!({"items": {"$ref": "#"}}), 1),
            (
                json!({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}),
                2,
            ),
            (
                json!({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}),
                1,
            ),
            (
                json!({"$ref": "#/$defs/ab", "$defs": {"a": {"items": {"$ref": "#/$defs/ab"}}, "ab": {}}}),
                0,
            ),
            (json!({"items": {"$dynamicRef": "#node"}}), 1),
            (json!({"items": {"$ref": "#node"}, "$anchor": "node"}), 1),
            (
                json!({"$ref": "#/$defs/a", "$defs": {"a": {"$id": "x:y", "$ref": "#/$defs/b"}}}),
                2,
            ),
        ] {
            assert_eq!(Reach::of(&schema).cyclic_references(), cyclic, "{schema}");
        }
    }

    #[test]
    fn patterns_are_counted_wherever_they_stand() {
        let schema =
            json!({"pattern": "a", "items": {"patternProperties": {"a": {}, "b": {"pattern": "c"}}}});
        assert_eq!(Reach::of(&schema).patterns(), 4);
    }

    #[test]
    fn depth_counts_what_holds_what() {
        assert_eq!(
            [json!(1), json!([]), json!({"a": [{}]})].each_ref().map(depth_of),
            [0, 1, 3]
        );
    }
}
