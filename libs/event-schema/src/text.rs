//! JSON as it is written: read from its beginning to its end, each byte once, so that what stays of it keeps its digits and escapes.
//!
//! It deliberately checks nothing: the text is known to be JSON.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// A place in a text.
pub(crate) struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// Bytes that were looked at, however often.
    pub(crate) passed: usize,
}

impl<'t> Reader<'t> {
    /// At the beginning.
    pub(crate) fn of(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            passed: 0,
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn step(&mut self) {
        self.at += 1;
        self.passed += 1;
    }

    /// What the next token begins with.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.step();
        }
        self.byte()
    }

    /// Passes a token of one byte, if it is the next one.
    pub(crate) fn take(&mut self, token: u8) -> bool {
        let is_next = self.peek() == Some(token);
        if is_next {
            self.step();
        }
        is_next
    }

    /// Passes the end of a list or an object, or what separates its entries: whether there is another entry.
    pub(crate) fn goes_on(&mut self, end: u8) -> bool {
        self.take(b',');
        !self.take(end) && self.peek().is_some()
    }

    /// Passes the name of a member.
    pub(crate) fn name(&mut self) -> Result<String, serde_json::Error> {
        let name = serde_json::from_str(self.value());
        self.take(b':');
        name
    }

    /// Passes a value; returns it as it is written.
    pub(crate) fn value(&mut self) -> &'t str {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'"') => self.string(),
            Some(b'{' | b'[') => self.container(),
            _ => {
                while self
                    .byte()
                    .is_some_and(|byte| !matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r'))
                {
                    self.step();
                }
            }
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn string(&mut self) {
        self.step();
        while let Some(byte) = self.byte() {
            self.step();
            match byte {
                b'\\' => self.step(),
                b'"' => return,
                _ => {}
            }
        }
    }

    fn container(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.byte() {
            match byte {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.step();
            if depth == 0 {
                return;
            }
        }
    }

    /// Passes the next value if it is this one; returns it as it is written. Looks no further than to what differs, so that a text that
    /// is compared at each of its levels is not read over and over. An object that names something twice is none of ours.
    pub(crate) fn written_as(&mut self, value: &Value) -> Option<&'t str> {
        self.peek();
        let start = self.at;
        if self.is_at(value) {
            return self.text.get(start..self.at);
        }
        self.at = start;
        None
    }

    fn is_at(&mut self, value: &Value) -> bool {
        match (self.peek(), value) {
            (Some(b'{'), Value::Object(members)) => self.is_object(members),
            (Some(b'['), Value::Array(items)) => self.is_list(items),
            (Some(b'{' | b'['), _) | (_, Value::Object(_) | Value::Array(_)) => false,
            _ => serde_json::from_str(self.value()).is_ok_and(|found: Value| found == *value),
        }
    }

    fn is_object(&mut self, members: &Map<String, Value>) -> bool {
        let mut found = HashSet::new();
        self.take(b'{');
        while self.goes_on(b'}') {
            let Ok(name) = self.name() else { return false };
            let is_same = members.get(&name).is_some_and(|member| self.is_at(member));
            if !is_same || !found.insert(name) {
                return false;
            }
        }
        found.len() == members.len()
    }

    fn is_list(&mut self, items: &[Value]) -> bool {
        let mut items = items.iter();
        self.take(b'[');
        while self.goes_on(b']') {
            if !items.next().is_some_and(|item| self.is_at(item)) {
                return false;
            }
        }
        items.next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_passed_as_they_are_written() {
        let text = r#" { "a\"}" : [ 1.10 , "]\\" , { } ] , "b":true,"c" :[]} "#;
        let mut reader = Reader::of(text);
        assert!(reader.take(b'{'));
        let mut found = Vec::new();
        while reader.goes_on(b'}') {
            found.push((reader.name().unwrap(), reader.value()));
        }
        let expected = [("a\"}", r#"[ 1.10 , "]\\" , { } ]"#), ("b", "true"), ("c", "[]")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(reader.peek(), None);
    }

    #[test]
    fn a_value_is_known_again_however_it_is_written() {
        let value = json!({"a": [1, {"b": null}, "\u{e4}"], "c": {}});
        for same in [
            value.to_string(),
            r#" {"c":{ }, "a":[1 ,{"b":null},"\u00e4" ]}"#.to_owned(),
        ] {
            assert_eq!(Reader::of(&same).written_as(&value), Some(same.trim()));
        }
        for other in [
            r#"{"a":[1,{"b":null},"\u00e4"]}"#,
            r#"{"a":[1,{"b":null}],"c":{}}"#,
            r#"{"a":[1,{"b":null},"\u00e4",1],"c":{}}"#,
            r#"{"a":[1,{"b":0},"\u00e4"],"c":{}}"#,
            r#"{"a":[1,{"b":null},"\u00e4"],"c":{},"c":{}}"#,
            r#"{"a":[1,{"b":null},"\u00e4"],"c":{},"d":{}}"#,
            "[]",
            "1",
        ] {
            let mut reader = Reader::of(other);
            assert_eq!(reader.written_as(&value), None, "{other}");
            assert_eq!(reader.value(), other, "it is at its beginning again");
        }
    }
}
