//! Whatever property there is has its target, its corpus and its line in the documents.

use std::collections::BTreeSet;
use std::fs;

use properties::ALL;

use crate::inputs::folder;

/// Most bytes that are kept of one property: the corpus is read by people, too.
const KEPT_MAX: usize = 64 * 1024;

fn names() -> BTreeSet<String> {
    ALL.iter().map(|property| property.name.to_owned()).collect()
}

fn stems(directory: &str) -> BTreeSet<String> {
    let files = fs::read_dir(folder().join(directory)).expect("the folder is there");
    let stem = |file: std::io::Result<fs::DirEntry>| {
        let path = file.expect("a readable folder").path();
        path.file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    files.map(stem).collect()
}

#[test]
fn every_property_has_its_target_and_its_corpus() {
    assert_eq!(stems("fuzz_targets"), names());
    assert_eq!(stems("corpus"), names());
    assert!(stems("dictionaries").is_subset(&names()));
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).expect("the manifest of the targets");
    for name in names() {
        assert!(
            manifest.contains(&format!("name = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"")),
            "{name}"
        );
        let target = fs::read_to_string(folder().join(format!("fuzz_targets/{name}.rs"))).expect("a target");
        assert!(target.contains(&format!("properties::{name}::check")), "{name}");
    }
}

#[test]
fn every_property_is_in_the_document() {
    let document = fs::read_to_string(folder().join("../../docs/fuzzing.md")).expect("the document");
    for name in names() {
        assert!(document.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn what_is_kept_of_a_property_is_small() {
    for name in names() {
        let bytes: usize = crate::inputs::kept(&name)
            .iter()
            .map(|(_, input)| input.len())
            .sum();
        assert!(bytes <= KEPT_MAX, "{name}: {bytes} bytes");
    }
}
