//! Bodies as they are read: JSON with what is inside of its objects and lists folded away, and other text as it stands. Nothing of a value is
//! changed: what is shown are its bytes, and not what a parser made of them. It works without scripts.

use std::iter::Peekable;

use serde::de::IgnoredAny;

use crate::markup::{Markup, escape, visible};

/// Of how many parts JSON is folded at most: four to a field, so about a thousand fields. What has more is indented.
const PARTS_MAX: usize = 4_000;
/// What has no more parts than this is open as a whole.
const OPEN_PARTS: usize = 200;
/// To which depth the rest is open.
const OPEN_DEPTH: usize = 2;
/// What is deeper stands in one line: on a narrow screen there is no room further to the right.
const DEPTH_MAX: usize = 8;
/// How far lines are indented at most, in steps.
const INDENT_MAX: usize = 16;

/// A body in a region of its own, with this identifier and name.
pub fn folded(text: &str, id: &str, label: &str) -> Markup {
    let (id, label) = (escape(id), escape(label));
    let about = format!(r#"tabindex="0" role="region" aria-label="{label}" id="{id}""#);
    if !is_json(text) {
        return Markup(format!("<pre class=\"wrap\" {about}>{}</pre>", shown(text)));
    }
    let parts = Parts(text).take(PARTS_MAX + 1).count();
    let has_inner = parts > 2 && text.trim_start().starts_with(['{', '[']);
    if parts > PARTS_MAX || !has_inner {
        return Markup(format!("<pre {about}>{}</pre>", shown(&indented(text))));
    }
    let mut lines = Lines {
        parts: Parts(text).peekable(),
        id: &id,
        folds: 0,
        is_small: parts <= OPEN_PARTS,
    };
    let inner = lines.value("", 0);
    Markup(format!("<div class=\"folded mono\" {about}>{inner}</div>"))
}

/// Whether it is JSON, whatever its numbers and its depth.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn shown(text: &str) -> String {
    escape(&visible(text))
}

/// JSON with each value on a line of its own.
fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut parts = Parts(json).peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth.min(INDENT_MAX)));
    };
    while let Some(part) = parts.next() {
        match part {
            "{" | "[" => {
                out.push_str(part);
                if let Some(end) = parts.next_if(|next| matches!(*next, "}" | "]")) {
                    out.push_str(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            "}" | "]" => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push_str(part);
            }
            "," => {
                out.push_str(part);
                line(&mut out, depth);
            }
            ":" => out.push_str(": "),
            value => out.push_str(value),
        }
    }
    out
}

/// The parts of JSON as they stand: brackets, commas, colons and values. The blanks between them are left out.
struct Parts<'t>(&'t str);

impl<'t> Iterator for Parts<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        const BLANK: [char; 4] = [' ', '\t', '\n', '\r'];
        let ends = |next: char| BLANK.contains(&next) || "{}[],:\"".contains(next);
        let text = self.0.trim_start_matches(BLANK);
        let length = match text.bytes().next()? {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            b'"' => quoted(text),
            _ => text.find(ends).unwrap_or(text.len()),
        };
        let (part, rest) = text.split_at(length);
        self.0 = rest;
        Some(part)
    }
}

/// How long the text is, with its quotation marks, that stands at the beginning.
fn quoted(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !is_escaped => return at + 1,
            b'\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len()
}

/// Writes the lines of what is folded.
struct Lines<'t> {
    parts: Peekable<Parts<'t>>,
    /// With which the identifiers of the folds begin: a live page finds by them which are open.
    id: &'t str,
    folds: usize,
    is_small: bool,
}

impl Lines<'_> {
    /// The next value, after its name where it has one: in a line, or as a fold.
    fn value(&mut self, name: &str, depth: usize) -> String {
        let Some(begin) = self.parts.next() else {
            return String::new();
        };
        let (end, one, many) = match begin {
            "{" => ("}", "field", "fields"),
            "[" => ("]", "item", "items"),
            value => return self.line(name, value),
        };
        if self.parts.next_if(|next| *next == end).is_some() {
            return self.line(name, &format!("{begin}{end}"));
        }
        if depth == DEPTH_MAX {
            let whole = self.whole(begin);
            return self.line(name, &whole);
        }
        let fold = self.folds;
        self.folds += 1;
        let (mut inner, mut count) = (String::new(), 0_usize);
        while self.parts.next_if(|next| *next == end).is_none() && self.parts.peek().is_some() {
            let name = if end == "}" { self.name() } else { String::new() };
            inner.push_str(&self.value(&name, depth + 1));
            count += 1;
        }
        let comma = self.comma();
        let open = if self.is_small || depth < OPEN_DEPTH {
            " open"
        } else {
            ""
        };
        let of = if count == 1 { one } else { many };
        let id = self.id;
        format!(
            "<details id=\"{id}-{fold}\"{open}><summary data-end=\"{end}{comma}\">{name}{begin} <span class=\"muted\">{count} {of}</span></summary>{inner}<div>{end}{comma}</div></details>"
        )
    }

    fn name(&mut self) -> String {
        let name = self.parts.next().unwrap_or_default();
        let _colon = self.parts.next();
        format!("<b>{}</b>: ", shown(name))
    }

    fn comma(&mut self) -> &'static str {
        self.parts.next_if(|next| *next == ",").map_or("", |_| ",")
    }

    fn line(&mut self, name: &str, value: &str) -> String {
        format!("<div>{name}{}{}</div>", shown(value), self.comma())
    }

    /// A value that has begun, to its end.
    fn whole(&mut self, begin: &str) -> String {
        let (mut text, mut depth) = (begin.to_owned(), 1_usize);
        for part in self.parts.by_ref() {
            text.push_str(part);
            match part {
                "{" | "[" => depth += 1,
                "}" | "]" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        folded(text, "body", "Body").0
    }

    /// What is read of it: its text without the elements.
    fn read(html: &str) -> String {
        let mut text = String::new();
        for part in html.split('<').skip(1) {
            let (tag, rest) = part.split_once('>').expect("a whole element");
            if !tag.starts_with("span") {
                text.push_str(rest);
            }
        }
        let text = text.replace("&quot;", "\"").replace("&#x27;", "'");
        text.replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&")
    }

    #[test]
    fn objects_and_lists_are_folds_that_say_how_much_is_in_them() {
        let html = of(r#"{"id":"a","data":{"names":["x","y"],"none":{}}}"#);
        let begin = "<div class=\"folded mono\" tabindex=\"0\" role=\"region\" aria-label=\"Body\" id=\"body\">\
                     <details id=\"body-0\" open><summary data-end=\"}\">{ <span class=\"muted\">2 fields</span></summary>";
        assert!(html.starts_with(begin), "{html}");
        for part in [
            "<div><b>&quot;id&quot;</b>: &quot;a&quot;,</div>",
            "<summary data-end=\"],\"><b>&quot;names&quot;</b>: [ <span class=\"muted\">2 items</span></summary>",
            "<div><b>&quot;none&quot;</b>: {}</div>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert_eq!(
            html.matches("<details").count(),
            html.matches("</details>").count()
        );
    }

    #[test]
    fn no_byte_of_a_value_changes() {
        let json = r#" {"a": [1e400, 123456789012345678901234567890, -0.10], "a": {"c": "x, \"y\": {z}\\"}, "d": {}, "e": [ ], "f": null} "#;
        let (bytes, spaced) = (json.replace(' ', ""), read(&of(json)));
        assert_eq!(spaced.replace(' ', ""), bytes, "{spaced}");
        assert!(spaced.contains(r#""c": "x, \"y\": {z}\\""#), "{spaced}");
        assert!(indented(json).contains("\n    123456789012345678901234567890,\n"));
    }

    #[test]
    fn text_of_strangers_is_no_markup() {
        for text in [
            r#"{"<script>alert(1)</script>": ["\"<img src=x>", 1]}"#,
            "<script>alert(1)</script>",
            "\"<script>\"",
        ] {
            let html = of(text);
            assert!(!html.contains("<script>") && !html.contains("<img"), "{html}");
        }
        assert!(of("{\"a\": \"x\u{202e}y\"}").contains("x\u{fffd}y"));
        assert!(!folded("{}", "\"><b>", "<b>").0.contains("<b>"));
    }

    #[test]
    fn what_is_large_is_closed_below_its_second_level() {
        let items = [r#"{"a":[1,2]}"#; 50].join(",");
        let html = of(&format!(r#"{{"items":[{items}]}}"#));
        assert_eq!(html.matches(" open>").count(), 2, "{html}");
        assert_eq!(html.matches("<details").count(), 102, "{html}");
    }

    #[test]
    fn what_is_no_json_or_has_too_many_parts_is_text() {
        let many = format!("[{}1]", "1,".repeat(PARTS_MAX));
        for (text, begin) in [
            ("", "<pre class=\"wrap\" "),
            ("not found", "<pre class=\"wrap\" "),
            (r#"{"cut": "#, "<pre class=\"wrap\" "),
            ("{}", "<pre tabindex"),
            ("\"text\"", "<pre tabindex"),
            (many.as_str(), "<pre tabindex"),
        ] {
            let html = of(text);
            assert!(html.starts_with(begin) && html.ends_with("</pre>"), "{html}");
            assert!(!html.contains("<details"), "{html}");
        }
        assert!(of(&many).contains(">[\n  1,\n  1,"));
    }

    #[test]
    fn what_is_deep_ends_in_a_line() {
        let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
        assert!(of(&deep).starts_with("<pre"), "it has too many parts");
        let deep = format!("{}1{}", "[".repeat(12), "]".repeat(12));
        let html = of(&deep);
        assert_eq!(html.matches("<details").count(), DEPTH_MAX, "{html}");
        assert!(html.contains("<div>[[[[1]]]]</div>"), "{html}");
        assert_eq!(read(&html).replace(' ', ""), deep);
    }
}
