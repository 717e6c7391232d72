//! A mail's content once, and its two forms: text and HTML say the same because they are made of the same.

use std::fmt::Write as _;

use domain::foreign_text::{harmless, harmless_char};

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

/// What a mail consists of. All texts are plain; escaping is the business of the forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) subject: String,
    /// What happened, in one sentence.
    pub(crate) headline: String,
    pub(crate) blocks: Vec<Block>,
    /// Names and values about the subscription.
    pub(crate) facts: Vec<(&'static str, String)>,
}

/// A part of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Block {
    Paragraph(String),
    /// A title, and what can be done.
    Steps(&'static str, Vec<String>),
}

const SIGNATURE: &str = "This mail was sent automatically to the address registered with the subscription; answers are \
                         not read. Change the address, or the subscription, through the API of your notifications.";

impl Page {
    pub(crate) fn render(&self) -> Rendered {
        Rendered {
            subject: self.subject_line(),
            text: self.text(),
            html: self.html(),
        }
    }

    fn subject_line(&self) -> String {
        format!("{SENDER} {}", one_line(&self.subject))
    }

    fn text(&self) -> String {
        let mut text = wrapped(&self.headline, "", "");
        for block in &self.blocks {
            text.push('\n');
            match block {
                Block::Paragraph(paragraph) => text.push_str(&wrapped(paragraph, "", "")),
                Block::Steps(title, steps) => {
                    let _ = writeln!(text, "{title}");
                    for step in steps {
                        text.push_str(&wrapped(step, "  * ", "    "));
                    }
                }
            }
        }
        text.push('\n');
        let width = self.facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in &self.facts {
            let label = format!("{name}:");
            let _ = writeln!(text, "{label:<column$}{}", one_line(value), column = width + 2);
        }
        text.push_str("\n-- \n");
        text.push_str(&wrapped(SIGNATURE, "", ""));
        text
    }

    fn html(&self) -> String {
        let mut html = String::from(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">",
        );
        let _ = write!(html, "<title>{}</title></head>", escaped(&self.subject_line()));
        html.push_str(
            "<body style=\"margin:0;padding:24px;font:15px/1.5 system-ui,sans-serif;color:#1c2430;background:#fff\">\n\
             <div style=\"max-width:600px;margin:0 auto\">\n",
        );
        let _ = writeln!(
            html,
            "<h1 style=\"font-size:20px;line-height:1.3;margin:0 0 16px\">{}</h1>",
            escaped(&self.headline)
        );
        for block in &self.blocks {
            match block {
                Block::Paragraph(paragraph) => {
                    let _ = writeln!(html, "<p>{}</p>", escaped(paragraph));
                }
                Block::Steps(title, steps) => {
                    let _ = writeln!(
                        html,
                        "<p style=\"margin-bottom:4px\"><strong>{}</strong></p>\n<ul>",
                        escaped(title)
                    );
                    for step in steps {
                        let _ = writeln!(html, "<li>{}</li>", escaped(step));
                    }
                    html.push_str("</ul>\n");
                }
            }
        }
        html.push_str("<table style=\"border-collapse:collapse;margin:20px 0;font-size:14px\">\n");
        for (name, value) in &self.facts {
            let _ = writeln!(
                html,
                "<tr><th style=\"text-align:left;vertical-align:top;padding:3px 16px 3px 0;color:#5a6675;\
                 font-weight:normal\">{}</th><td style=\"padding:3px 0;word-break:break-word\">{}</td></tr>",
                escaped(name),
                escaped(&one_line(value))
            );
        }
        let _ = write!(
            html,
            "</table>\n<p style=\"font-size:12px;color:#5a6675;border-top:1px solid #dde3ea;padding-top:12px\">{}</p>\n\
             </div></body></html>\n",
            escaped(SIGNATURE)
        );
        html
    }
}

/// Text of strangers on one line: a line break in a description must not look like a part of ours.
fn one_line(text: &str) -> String {
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
fn escaped(text: &str) -> String {
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
