//! What the documents say of the keys is what the code does.

use config::DEFAULT_YAML;

const GUIDE: &str = include_str!("../../../../docs/configuration.md");

/// The rows of the reference: key, default, what it accepts.
fn rows() -> Vec<[String; 3]> {
    config::reference()
        .lines()
        .skip(2)
        .map(|row| {
            let mut cells = row
                .trim_matches(['|', ' '])
                .split(" | ")
                .map(|cell| cell.trim().trim_matches('`').to_owned());
            std::array::from_fn(|_| cells.next().unwrap_or_default())
        })
        .collect()
}

/// The comment directly above each key of default.yaml, one entry per line that holds a value.
fn comments() -> Vec<(String, String)> {
    let mut path: Vec<(usize, String)> = Vec::new();
    let mut comment = String::new();
    let mut found = Vec::new();
    for line in DEFAULT_YAML.lines() {
        let text = line.trim();
        let depth = line.len() - line.trim_start().len();
        if let Some(words) = text.strip_prefix('#') {
            comment.push_str(words);
        } else if let Some((name, value)) = text.split_once(':') {
            path.retain(|(other, _)| *other < depth);
            path.push((depth, name.to_owned()));
            let key: Vec<_> = path.iter().map(|(_, name)| name.as_str()).collect();
            if !value.is_empty() {
                found.push((key.join("."), std::mem::take(&mut comment)));
            }
            comment.clear();
        } else {
            comment.clear();
        }
    }
    found
}

#[test]
fn every_key_of_the_defaults_is_read() {
    for [key, _, accepted] in rows() {
        assert!(
            !accepted.is_empty(),
            "{key} is in default.yaml, but nothing reads it"
        );
    }
}

#[test]
fn every_key_of_the_defaults_explains_what_it_accepts() {
    let comments = comments();
    assert_eq!(comments.len(), rows().len());
    for ([key, _, accepted], (commented, comment)) in rows().into_iter().zip(comments) {
        assert_eq!(key, commented);
        assert!(
            comment.to_lowercase().contains(&accepted.to_lowercase()),
            "{key}: the comment does not say {accepted:?}, but: {comment}"
        );
        assert!(
            comment.len() > accepted.len() + 10,
            "{key}: the comment says nothing but the range"
        );
    }
}

#[test]
fn guide_holds_the_reference_of_all_keys() {
    let reference = config::reference();
    assert!(
        GUIDE.contains(&reference),
        "docs/configuration.md must hold this table:\n{reference}"
    );
}
