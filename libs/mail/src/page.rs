//! A mail's content once, and its two forms: text and HTML say the same because they are made of the same.

use std::fmt::Write as _;

use domain::foreign_text::{harmless, harmless_char};
use minijinja::value::{Serde, Value};
use serde::Serialize;

use crate::templates;

/// What every subject begins with, so that no mail of ours passes for one of another sender.
const SENDER: &str = "[Postrider]";
/// Longest line of the text form; a word that is longer, such as a URL, stays whole.
const WIDTH: usize = 76;

/// A mail as its reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// One line.
    pub subject: String,
    /// For readers of plain text.
    pub text: String,
    /// The same as HTML.
    pub html: String,
}

/// What a mail consists of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Page {
    subject: String,
    /// What happened, in one sentence.
    headline: String,
    blocks: Vec<Block>,
    /// Names and values about the subscription.
    facts: Vec<(String, String)>,
    signature: &'static str,
}

/// A paragraph, or the title of a list and what stands in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Block {
    text: String,
    steps: Vec<String>,
}

const SIGNATURE: &str = "This mail was sent automatically to the address registered with the subscription; answers are \
                         not read. Change the address, or the subscription, through the API of your notifications.";

impl Page {
    /// Reads what a template made: subject, headline, what follows, and the facts, with empty lines between them. Nothing that it
    /// inserts has a line break.
    pub(crate) fn read(text: &str) -> Self {
        let (told, facts) = text
            .trim_end_matches('\n')
            .rsplit_once("\n\n")
            .unwrap_or((text, ""));
        let mut parts = told.split("\n\n").filter(|part| !part.trim().is_empty());
        let mut next = || parts.next().map(one_line).unwrap_or_default();
        let (subject, headline) = (next(), next());
        Self {
            subject: format!("{SENDER} {}", subject.trim_start_matches("Subject: ")),
            headline,
            blocks: parts.map(Block::read).collect(),
            facts: facts
                .lines()
                .filter_map(|fact| fact.split_once(": "))
                .map(|(name, value)| (name.to_owned(), one_line(value)))
                .collect(),
            signature: SIGNATURE,
        }
    }

    pub(crate) fn render(self) -> Result<Rendered, minijinja::Error> {
        let text = self.text();
        let subject = self.subject.clone();
        let html = templates::html(Value::from(Serde(self)))?;
        Ok(Rendered { subject, text, html })
    }

    fn text(&self) -> String {
        let mut text = wrapped(&self.headline, "", "");
        for block in &self.blocks {
            text.push('\n');
            text.push_str(&wrapped(&block.text, "", ""));
            for step in &block.steps {
                text.push_str(&wrapped(step, "  * ", "    "));
            }
        }
        text.push('\n');
        let width = self.facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in &self.facts {
            let label = format!("{name}:");
            let _ = writeln!(text, "{label:<column$}{value}", column = width + 2);
        }
        text.push_str("\n-- \n");
        text.push_str(&wrapped(self.signature, "", ""));
        text
    }
}

impl Block {
    fn read(text: &str) -> Self {
        let mut parts = text.split("\n* ").map(one_line);
        Self {
            text: parts.next().unwrap_or_default(),
            steps: parts.collect(),
        }
    }
}

/// Text of strangers on one line: a line break in a description must not look like a part of ours.
pub(crate) fn one_line(text: &str) -> String {
    words(text).collect::<Vec<_>>().join(" ")
}

/// The words of a text, without what would break or turn round the line that they stand in.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .map(harmless)
}

/// Text broken into lines between words.
fn wrapped(text: &str, first: &str, rest: &str) -> String {
    let (mut lines, mut line) = (String::new(), first.to_owned());
    let mut is_empty = true;
    for word in words(text) {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(&line);
            lines.push('\n');
            line = rest.to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(&word);
        is_empty = false;
    }
    lines.push_str(&line);
    lines.push('\n');
    lines
}

/// Text that means nothing to a browser, inside and outside of attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(harmless_char(c)),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_long_words_stay_whole() {
        let url = format!("https://example.org/{}", "x".repeat(90));
        let text = wrapped(&format!("{} {url} end", "word ".repeat(20)), "  * ", "    ");
        assert!(
            text.lines()
                .all(|line| line.chars().count() <= WIDTH || line.contains(&url))
        );
        assert!(text.lines().skip(1).all(|line| line.starts_with("    ")));
        assert!(text.contains(&url));
    }

    #[test]
    fn nothing_of_a_stranger_becomes_markup() {
        assert_eq!(
            escaped(r#"<a href="x" title='y'>&amp;"#),
            "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;amp;"
        );
        assert_eq!(
            one_line("a\r\nBcc: b@example.org\u{0}\t c"),
            "a Bcc: b@example.org c"
        );
        assert_eq!(one_line("a\u{202e}b \u{2066}c"), "a\u{fffd}b \u{fffd}c");
        assert_eq!(escaped("a\u{202e}b"), "a\u{fffd}b");
    }
}
