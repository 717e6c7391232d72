//! `docs/webpush.md` names the tests of every rule: each of them is there.

use std::fs;
use std::path::Path;

/// A source, with where it is.
struct Source {
    path: String,
    text: String,
}

#[test]
fn every_rule_has_tests_and_each_of_them_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = Vec::new();
    for folder in ["cli", "libs", "services", "testing"] {
        read_into(&mut sources, &root.join(folder));
    }
    let page = fs::read_to_string(root.join("docs/webpush.md")).unwrap();
    let (_, rules) = page.split_once("## Rules and their tests").unwrap();
    let (rules, _) = rules.split_once("## The model").unwrap();
    let mut count = 0;
    let mut lines = rules.lines().peekable();
    while let Some(line) = lines.next() {
        let is_head = lines.peek().is_some_and(|next| next.starts_with("|---"));
        if is_head || !line.starts_with("| ") {
            continue;
        }
        count += 1;
        let tests = line.rsplit('|').nth(1).unwrap_or_default();
        let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test: {line}");
        for name in named {
            assert!(is_there(&sources, name), "{name} is not there: {line}");
        }
    }
    assert!(count > 80, "{count} rules");
}

fn read_into(sources: &mut Vec<Source>, folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with("node_modules") {
                read_into(sources, &path);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(Source {
                text: fs::read_to_string(&path).unwrap(),
                path: path.to_str().unwrap().to_owned(),
            });
        }
    }
}

/// A test is named alone or after its module, a module as `module::*` or `it/module`, a model by its name.
fn is_there(sources: &[Source], named: &str) -> bool {
    let named = named.trim_start_matches('…');
    let (place, test) = match named.rsplit_once("::").or_else(|| named.rsplit_once(": ")) {
        Some((place, test)) => (place.rsplit(": ").next(), test),
        None if named.starts_with("it/") => (Some(named), "*"),
        None => (None, named),
    };
    let wanted = match test {
        "*" => "test]\n".to_owned(),
        model if model.contains(' ') => format!("\"{model}\""),
        test => format!("fn {test}("),
    };
    let is_in_place = |source: &&Source| {
        place.is_none_or(|place| {
            source.path.ends_with(&format!("/{place}.rs")) || source.path.contains(&format!("/{place}/"))
        })
    };
    let mut in_place = sources.iter().filter(is_in_place);
    in_place.any(|source| source.text.contains(&wanted))
}
