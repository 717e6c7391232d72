//! Reads a migration as a list of statements: without comments, in lower case, single spaces between words. What is quoted
//! stays as it is, and the body of a function is left out: what is in there runs later.

/// The statements of a script.
pub(super) fn statements(script: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut statement = String::new();
    let mut rest = script;
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("--") {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
            statement.push(' ');
        } else if first == '\'' {
            let length = quoted_length(rest);
            statement.push_str(&rest[..length]);
            rest = &rest[length..];
        } else if let Some(tag) = dollar_tag(rest) {
            let body = &rest[tag.len()..];
            let end = body.find(tag).expect("a quoted body ends");
            statement.push_str("$$");
            rest = &body[end + tag.len()..];
        } else {
            rest = &rest[first.len_utf8()..];
            if first == ';' {
                all.push(std::mem::take(&mut statement));
            } else {
                statement.extend(first.to_lowercase());
            }
        }
    }
    all.push(statement);
    let words = |statement: String| statement.split_whitespace().collect::<Vec<_>>().join(" ");
    all.into_iter()
        .map(words)
        .filter(|statement| !statement.is_empty())
        .collect()
}

/// With both quotation marks; a doubled one in between is none.
fn quoted_length(text: &str) -> usize {
    let mut marks = text.match_indices('\'').map(|(at, _)| at).skip(1).peekable();
    while let Some(at) = marks.next() {
        if marks.peek() != Some(&(at + 1)) {
            return at + 1;
        }
        marks.next();
    }
    panic!("a text does not end: {text}")
}

/// `$$` or `$name$` at the beginning.
fn dollar_tag(text: &str) -> Option<&str> {
    let after = text.strip_prefix('$')?;
    let name = after.find('$')?;
    let is_name = after[..name]
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| &text[..name + 2])
}

#[test]
fn a_script_is_read_as_its_statements() {
    let script = "-- A comment; with a semicolon.\nSET LOCAL lock_timeout = '5s';\n\
                  CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $body$ BEGIN DROP TABLE t; END $body$;\n\
                  COMMENT ON TABLE t IS 'It''s; kept';\nALTER  TABLE t\n  ADD COLUMN a int -- why\n";
    assert_eq!(
        statements(script),
        [
            "set local lock_timeout = '5s'",
            "create function f() returns void language plpgsql as $$",
            "comment on table t is 'It''s; kept'",
            "alter table t add column a int",
        ]
    );
}
