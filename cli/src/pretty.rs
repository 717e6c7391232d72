//! JSON in lines for people, with members in the order in which they came and numbers as they were written.

/// Blanks of each level.
const INDENT: usize = 2;

/// The same document in lines; what is no JSON comes back as it is. Nothing of it moves a terminal's cursor.
pub(crate) fn json(text: &str) -> String {
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let lines = if is_json { lines_of(text) } else { text.to_owned() };
    let harmless: Vec<String> = lines.lines().map(crate::output::harmless).collect();
    harmless.join("\n")
}

/// The caller has made sure that it is JSON.
fn lines_of(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if in_text {
            out.push(character);
            in_text = escaped || character != '"';
            escaped = !escaped && character == '\\';
            continue;
        }
        match character {
            '{' | '[' => {
                out.push(character);
                while characters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                match characters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(close) => out.push(close),
                    None => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            blank if blank.is_ascii_whitespace() => {}
            other => {
                in_text = other == '"';
                out.push(other);
            }
        }
    }
    out
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', depth * INDENT));
}

/// Each line further to the right.
pub(crate) fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_numbers_stay_as_they_came() {
        assert_eq!(
            json(r#"{"z":1.10, "a":[1,{"b":"x,{\"\\"}],"none":{ },"empty":[]}"#),
            "{\n  \"z\": 1.10,\n  \"a\": [\n    1,\n    {\n      \"b\": \"x,{\\\"\\\\\"\n    }\n  ],\n  \"none\": {},\n  \
             \"empty\": []\n}"
        );
    }

    #[test]
    fn what_is_no_json_stays_as_it_is_but_for_what_a_terminal_obeys() {
        assert_eq!(json("{\"a\":"), "{\"a\":");
        assert_eq!(json("a\u{1b}[2J\nb"), "a\u{fffd}[2J\nb");
        assert_eq!(indented("a\n  b"), "    a\n      b");
    }
}
