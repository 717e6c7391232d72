//! JSON that keeps what a parser forgets: the order of members and how numbers are written. It is written again in the ways
//! in which serialisers differ.

mod parser;

use std::fmt::Write as _;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Object(Vec<(String, Json)>),
    Array(Vec<Json>),
    Text(String),
    /// A number, `true`, `false` or `null` as it was written.
    Plain(String),
}

/// What stands between values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Nothing.
    Compact,
    /// A blank after each comma and colon.
    Spaced,
    /// A line for each, indented by so many blanks.
    Lines(usize),
}

/// Which characters are escaped that need not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    /// None.
    None,
    /// All that are not ASCII, with digits in lower case.
    Ascii,
    /// The same with digits in upper case, and the characters of HTML as well.
    AsciiAndHtml,
    /// The characters of HTML.
    Html,
    /// Slashes.
    Slashes,
}

/// How a document is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) layout: Layout,
    /// Of the member `data`, which the caller that reports an event writes.
    pub(super) data: Layout,
    pub(super) escapes: Escapes,
}

impl Json {
    /// The document that these bytes are; `None` when they are none, or too deep a one.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        parser::parse(bytes)
    }

    /// The same with the members of each object by their names.
    pub(super) fn sorted(&self) -> Self {
        match self {
            Self::Object(members) => {
                let mut members: Vec<_> = members
                    .iter()
                    .map(|(name, value)| (name.clone(), value.sorted()))
                    .collect();
                members.sort_by(|(a, _), (b, _)| a.cmp(b));
                Self::Object(members)
            }
            Self::Array(items) => Self::Array(items.iter().map(Self::sorted).collect()),
            other => other.clone(),
        }
    }

    /// The same with these members of the outermost object first.
    pub(super) fn led_by(&self, names: &[&str]) -> Self {
        let Self::Object(members) = self else {
            return self.clone();
        };
        let mut members = members.clone();
        members.sort_by_key(|(name, _)| {
            names
                .iter()
                .position(|first| first == name)
                .unwrap_or(names.len())
        });
        Self::Object(members)
    }

    /// As text.
    pub(super) fn write(&self, style: Style) -> String {
        let mut text = String::new();
        self.write_to(&mut text, style, style.layout, 0);
        text
    }

    fn write_to(&self, text: &mut String, style: Style, layout: Layout, depth: usize) {
        match self {
            Self::Plain(plain) => text.push_str(plain),
            Self::Text(content) => style.escapes.write(content, text),
            Self::Array(items) => {
                let write = |text: &mut String, item: &Self| item.write_to(text, style, layout, depth + 1);
                list(text, ('[', ']'), layout, depth, items, write);
            }
            Self::Object(members) => {
                let write = |text: &mut String, (name, value): &(String, Self)| {
                    style.escapes.write(name, text);
                    text.push_str(if layout == Layout::Compact { ":" } else { ": " });
                    let inner = if depth == 0 && name == "data" {
                        style.data
                    } else {
                        layout
                    };
                    value.write_to(text, style, inner, depth + 1);
                };
                list(text, ('{', '}'), layout, depth, members, write);
            }
        }
    }
}

/// What an array and an object have in common.
fn list<T>(
    text: &mut String,
    (open, close): (char, char),
    layout: Layout,
    depth: usize,
    items: &[T],
    mut write: impl FnMut(&mut String, &T),
) {
    text.push(open);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push_str(if layout == Layout::Spaced { ", " } else { "," });
        }
        line(text, layout, depth + 1);
        write(text, item);
    }
    if !items.is_empty() {
        line(text, layout, depth);
    }
    text.push(close);
}

fn line(text: &mut String, layout: Layout, depth: usize) {
    if let Layout::Lines(indent) = layout {
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', indent * depth));
    }
}

impl Escapes {
    fn write(self, content: &str, text: &mut String) {
        text.push('"');
        for character in content.chars() {
            match character {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                '\u{8}' => text.push_str("\\b"),
                '\u{c}' => text.push_str("\\f"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '/' if self == Self::Slashes => text.push_str("\\/"),
                other if other.is_control() && other.is_ascii() || self.covers(other) => {
                    self.escape(other, text);
                }
                other => text.push(other),
            }
        }
        text.push('"');
    }

    fn covers(self, character: char) -> bool {
        let html = matches!(character, '<' | '>' | '&' | '\'' | '+' | '`');
        match self {
            Self::None | Self::Slashes => false,
            Self::Ascii => !character.is_ascii(),
            Self::AsciiAndHtml => !character.is_ascii() || html,
            // Not the quotation mark and the plus sign: so does Go.
            Self::Html => matches!(character, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'),
        }
    }

    fn escape(self, character: char, text: &mut String) {
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a String does not fail.
            let _ = match self {
                Self::AsciiAndHtml => write!(text, "\\u{unit:04X}"),
                _ => write!(text, "\\u{unit:04x}"),
            };
        }
    }
}

#[cfg(test)]
mod tests;
