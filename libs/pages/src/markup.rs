//! Pieces of HTML that templates put in as they are: times, states, numbers.

use std::fmt;

use askama::filters::HtmlSafe;

/// HTML. What is not ours in it was escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Markup(
    /// As it is put in.
    pub String,
);

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl HtmlSafe for Markup {}

/// The icons, once on a page, which then shows each by its name.
pub fn icons() -> Markup {
    Markup(include_str!("../assets/icons.svg").to_owned())
}

/// Text as it may stand in an element or a quoted attribute.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#x27;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A state: an icon, a word, and a colour, with the name as it is stored for those who look for it.
pub fn state(name: &str) -> Markup {
    let (tone, word) = words(name);
    Markup(format!(
        r##"<span class="status {tone}" title="{name}"><svg class="icon" aria-hidden="true"><use href="#i-{tone}"/></svg>{word}</span>"##,
        name = escape(name),
        word = escape(&word)
    ))
}

/// What a state is called where there is no room for its icon, as in a choice.
pub fn word(name: &str) -> String {
    words(name).1
}

/// Counts as bars beside each other, with what they say in words.
pub fn bars(counts: &[u64], label: &str) -> Markup {
    Markup(format!(
        r#"<svg class="spark" viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{label}"><path class="fill-bad" d="{path}"/><rect class="fill-track" x="0" y="47" width="{width}" height="1"/></svg>"#,
        width = counts.len() * STEP,
        label = escape(label),
        path = path_of(counts),
    ))
}

/// The same in a row of a table, in the colour of a state.
pub fn small_bars(counts: &[u64], tone: &str, label: &str) -> Markup {
    Markup(format!(
        r#"<svg class="spark small" viewBox="0 0 {width} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{label}"><path class="fill-{tone}" d="{path}"/></svg>"#,
        width = counts.len() * STEP,
        label = escape(label),
        path = path_of(counts),
    ))
}

/// How a part of a bar is filled that stands on or beside parts of other states: what failed has a hatch and what is tried again dots, since colour alone does not tell
/// everyone what it is.
pub fn fill(tone: &str) -> String {
    match tone {
        "bad" => r#"fill="url(#hatch)""#.to_owned(),
        "warn" => r#"fill="url(#dots)""#.to_owned(),
        other => format!(r#"class="fill-{}""#, escape(other)),
    }
}

/// How high bars are, and how far from the beginning of one to that of the next.
const HEIGHT: u64 = 48;
const STEP: usize = 10;

/// One path for all bars: a page of many rows has thousands of them.
fn path_of(counts: &[u64]) -> String {
    let most = counts.iter().copied().max().unwrap_or_default().max(1);
    let bars = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let bars = bars.map(|(place, count)| {
        // One that is there is seen, however small beside the others.
        let height = (count.saturating_mul(HEIGHT) / most).max(2);
        format!("M{} {HEIGHT}v-{height}h8v{height}", place * STEP)
    });
    bars.collect()
}

/// The tone of a state, which is also the name of its icon, and its word.
fn words(name: &str) -> (&'static str, String) {
    let tone = match name {
        "OK" | "DELIVERED" | "SENT" | "ACTIVE" | "COMPLETED" | "APPROVED" | "REPLAYED" | "CONNECTED" => "ok",
        "PENDING" | "QUEUED" | "SCHEDULED" | "IN_PROCESS" | "SENDING" | "RUNNING" | "REQUESTED"
        | "PUBLISHED" => "wait",
        "RETRY" | "DEGRADED" | "VERIFYING" => "warn",
        "FAILED" | "FAILED_AGAIN" | "GIVEN_UP" | "ERROR" | "DEACTIVATED" | "OPEN" | "REJECTED"
        | "MALFORMED" | "DENIED" => "bad",
        _ => "hold",
    };
    let lower = name.replace(['_', '-'], " ").to_lowercase();
    let mut letters = lower.chars();
    let word = letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    });
    (tone, word)
}

/// Text of strangers for an element, never for the value of a field or what is copied: what is not seen is shown as a symbol, but line breaks and tabs.
pub fn visible(text: &str) -> String {
    let shown = text.chars().map(|character| match character {
        '\n' | '\t' => character,
        // The pictures of the control characters stand in their order.
        control @ '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(control)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        // Marks that turn the direction of what follows could make text read as other text.
        '\u{80}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            '\u{fffd}'
        }
        other => other,
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_reads_as_a_word_and_keeps_its_name() {
        let given_up = state("GIVEN_UP").0;
        assert!(given_up.contains("Given up") && given_up.contains(r#"title="GIVEN_UP""#));
        assert!(given_up.contains("status bad"));
        assert_eq!(word("IN_MEMORY"), "In memory");
    }

    #[test]
    fn what_failed_is_told_from_the_rest_by_more_than_its_colour() {
        assert_eq!(fill("ok"), r#"class="fill-ok""#);
        assert_eq!(fill("bad"), r#"fill="url(#hatch)""#);
        assert_eq!(fill("warn"), r#"fill="url(#dots)""#);
        for pattern in [r#"<pattern id="hatch""#, r#"<pattern id="dots""#] {
            assert!(icons().0.contains(pattern));
        }
    }

    #[test]
    fn bars_are_as_high_as_their_counts_and_none_is_too_small_to_see() {
        assert_eq!(
            path_of(&[0, 48, 1, 24]),
            "M10 48v-48h8v48M20 48v-2h8v2M30 48v-24h8v24"
        );
        assert_eq!(path_of(&[0, 0]), "");
    }

    #[test]
    fn what_strangers_wrote_is_no_markup_and_no_mark() {
        assert!(!state("<script>").0.contains("<script>"));
        assert_eq!(visible("a\0b\u{202e}c\n"), "a\u{2400}b\u{fffd}c\n");
        assert_eq!(
            escape(r#"<a b='c'>"&""#),
            "&lt;a b=&#x27;c&#x27;&gt;&quot;&amp;&quot;"
        );
    }
}
