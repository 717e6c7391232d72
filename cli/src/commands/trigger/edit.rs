//! `--set PATH=VALUE`: one value of the data that is to be another one.

use std::str::FromStr;

use anyhow::{anyhow, bail};
use serde_json::Value;

/// A change of one value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Edit {
    path: Vec<String>,
    value: Value,
}

impl FromStr for Edit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some((path, value)) = text.split_once('=') else {
            return Err(format!(
                "{text:?} has no equals sign; write PATH=VALUE, such as domain.name=example.net"
            ));
        };
        // domain.nameservers[0] means the same as domain.nameservers.0.
        let path = path.replace('[', ".").replace(']', "");
        let parts: Vec<String> = path.split('.').map(str::to_owned).collect();
        if parts.iter().any(|part| part.trim().is_empty()) {
            return Err(format!(
                "{path:?} is no path; write names with dots between them, such as domain.name"
            ));
        }
        Ok(Self {
            path: parts,
            value: serde_json::from_str(value).unwrap_or_else(|_| value.into()),
        })
    }
}

impl Edit {
    /// The path as it is typed.
    pub(super) fn path(&self) -> String {
        self.path.join(".")
    }

    /// The path as the catalogue names attributes: without places in lists.
    pub(super) fn attribute(&self) -> String {
        let names = self.path.iter().filter(|part| part.parse::<usize>().is_err());
        names.cloned().collect::<Vec<_>>().join(".")
    }

    /// Changes the value. What leads to it must be there; the last name may be new.
    pub(super) fn apply(&self, data: &mut Value) -> anyhow::Result<()> {
        let (last, above) = self
            .path
            .split_last()
            .ok_or_else(|| anyhow!("the path is empty"))?;
        let mut place = data;
        for (depth, part) in above.iter().enumerate() {
            let found = match &mut *place {
                Value::Object(members) => {
                    if !members.contains_key(part) {
                        let known: Vec<&str> = members.keys().map(String::as_str).collect();
                        return Err(self.lost(depth, part, &known));
                    }
                    members.get_mut(part)
                }
                Value::Array(items) => match part.parse::<usize>() {
                    Ok(index) if index < items.len() => items.get_mut(index),
                    _ => return Err(self.out_of(depth, part, items.len())),
                },
                other => bail!("--set {}: {}", self.path(), self.leaf(depth, other)),
            };
            place = found.ok_or_else(|| anyhow!("--set {}: there is no {part}", self.path()))?;
        }
        self.put(place, last)
    }

    fn put(&self, place: &mut Value, last: &str) -> anyhow::Result<()> {
        let depth = self.path.len() - 1;
        match place {
            Value::Object(members) => {
                members.insert(last.to_owned(), self.value.clone());
            }
            Value::Array(items) => match last.parse::<usize>() {
                Ok(index) if index < items.len() => items[index] = self.value.clone(),
                Ok(index) if index == items.len() => items.push(self.value.clone()),
                _ => return Err(self.out_of(depth, last, items.len())),
            },
            other => bail!("--set {}: {}", self.path(), self.leaf(depth, other)),
        }
        Ok(())
    }

    fn above(&self, depth: usize) -> String {
        if depth == 0 {
            "the data".to_owned()
        } else {
            self.path[..depth].join(".")
        }
    }

    fn lost(&self, depth: usize, part: &str, known: &[&str]) -> anyhow::Error {
        let question = match domain::nearest::question(part, known.iter().copied()) {
            nothing if nothing.is_empty() => ".".to_owned(),
            question => question,
        };
        let known = if known.is_empty() {
            "nothing".to_owned()
        } else {
            known.join(", ")
        };
        anyhow!(
            "--set {}: {} has no {part}{question} It has {known}",
            self.path(),
            self.above(depth)
        )
    }

    fn out_of(&self, depth: usize, part: &str, length: usize) -> anyhow::Error {
        anyhow!(
            "--set {}: {} is a list of {length}; write a place from 0 on instead of {part}, at most {length} to add one",
            self.path(),
            self.above(depth)
        )
    }

    fn leaf(&self, depth: usize, found: &Value) -> String {
        let kind = match found {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            _ => "a text",
        };
        let above = self.above(depth);
        format!("{above} is {kind} with nothing below it; set {above} itself, to an object if need be")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(edit: &str) -> anyhow::Result<Value> {
        let mut data = json!({"domain": {"name": "a", "ns": ["x", "y"]}, "count": 1});
        let edit: Edit = edit.parse().map_err(anyhow::Error::msg)?;
        edit.apply(&mut data).map(|()| data)
    }

    #[test]
    fn values_are_json_or_text_and_places_are_numbers() {
        for (edit, path, wanted) in [
            ("domain.name=example.net", "/domain/name", json!("example.net")),
            ("domain.name=\"1\"", "/domain/name", json!("1")),
            ("count=2", "/count", json!(2)),
            ("count={\"a\":[]}", "/count", json!({"a": []})),
            ("domain.ns.1=z", "/domain/ns/1", json!("z")),
            ("domain.ns[2]=z=z", "/domain/ns/2", json!("z=z")),
            ("domain.new=null", "/domain/new", Value::Null),
        ] {
            let data = changed(edit).unwrap();
            assert_eq!(data.pointer(path), Some(&wanted), "{edit}");
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_says_where_it_ends() {
        for (edit, part) in [
            ("domain", "no equals sign"),
            ("=1", "is no path"),
            ("domain..name=1", "is no path"),
            (
                "domian.name=1",
                "the data has no domian; did you mean domain? It has count, domain",
            ),
            ("owner.name=1", "the data has no owner. It has count, domain"),
            ("domain.name.x=1", "domain.name is a text with nothing below it"),
            ("domain.ns.4=1", "domain.ns is a list of 2"),
            ("domain.ns.x.y=1", "domain.ns is a list of 2"),
        ] {
            let error = changed(edit).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn an_attribute_has_no_places_in_lists() {
        let edit: Edit = "a.0.b[1]=1".parse().unwrap();
        assert_eq!(
            (edit.path().as_str(), edit.attribute().as_str()),
            ("a.0.b.1", "a.b")
        );
    }
}
