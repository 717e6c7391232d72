//! Every small model holds, and `docs/model.md` says how large it is.

use std::path::Path;

use model::catalogue::{Size, entries, row};

#[test]
fn the_small_models_hold_and_their_counts_are_in_the_documentation() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/model.md");
    let page = std::fs::read_to_string(path).expect("docs/model.md is there");
    for entry in entries().into_iter().filter(|entry| entry.size == Size::Small) {
        let counts = entry
            .check()
            .unwrap_or_else(|failure| panic!("{}: {failure}", entry.name));
        let row = row(&entry, counts);
        assert!(
            page.lines().any(|line| line == row),
            "docs/model.md lacks the row\n{row}\n`cargo run -p model -- check` prints them all"
        );
    }
}

#[test]
fn the_large_models_are_in_the_documentation_with_their_bounds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/model.md");
    let page = std::fs::read_to_string(path).expect("docs/model.md is there");
    for entry in entries() {
        let begin = format!("| {} | {} |", entry.name, entry.bounds);
        assert!(
            page.lines().any(|line| line.starts_with(&begin)),
            "docs/model.md lacks {begin}"
        );
    }
}
