//! What is written where there is no terminal, and when colours are asked for all the same.

use crate::postrider::postrider;

const ESCAPE: char = '\u{1b}';

#[test]
fn a_pipe_gets_no_colours_and_a_row_on_one_line() {
    for arguments in [
        "events list",
        "events show domain.created",
        "push show nonsense",
        "--help",
    ] {
        let done = postrider(arguments).env("TERM", "xterm-256color").run();
        assert!(!done.stdout.contains(ESCAPE), "{arguments}: {}", done.stdout);
        assert!(!done.stderr.contains(ESCAPE), "{arguments}: {}", done.stderr);
    }
    let listed = postrider("events list").run().stdout;
    assert!(
        listed.lines().count() > 2 && !listed.contains(['│', '┆']),
        "{listed}"
    );
    for row in listed.lines() {
        assert!(!row.starts_with(' '), "{row}");
    }
}

#[test]
fn each_form_of_a_list_is_what_its_readers_take() {
    let listed = |form: &str| postrider(&format!("events list {form}")).run();
    let json: serde_json::Value = serde_json::from_str(&listed("-o json").stdout).expect("JSON");
    let types = json["items"].as_array().expect("items");
    let names: Vec<&str> = types.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(listed("--output name").stdout.lines().collect::<Vec<_>>(), names);
    let tsv = listed("-o tsv --color always").stdout;
    let mut lines = tsv.lines();
    assert_eq!(lines.next(), Some("event type\tdescription\tvariants"));
    for (line, name) in lines.zip(&names) {
        assert!(
            line.starts_with(&format!("{name}\t")) && line.split('\t').count() == 3,
            "{line}"
        );
    }
    let wide = postrider("events list -o wide").env("COLUMNS", "40").run().stdout;
    assert_eq!(wide.lines().count(), names.len() + 1, "{wide}");
    let none = listed("no-such-type -o tsv");
    assert_eq!((none.stdout.lines().count(), none.code), (1, Some(0)));
}

#[test]
fn a_form_without_a_meaning_is_a_usage_error() {
    for arguments in [
        "events show domain.created -o tsv",
        "status -o name",
        "config show -o json",
        "events list -o yaml",
    ] {
        let refused = postrider(arguments).run();
        assert_eq!(refused.code, Some(2), "{arguments}: {}", refused.stderr);
    }
    let refused = postrider("status -o name").run();
    assert!(
        refused.stderr.contains("[possible values: json]"),
        "{}",
        refused.stderr
    );
}

#[test]
fn colours_are_as_one_asks_for_them() {
    let coloured = |call: crate::postrider::Postrider| call.run().stdout.contains(ESCAPE);
    assert!(coloured(postrider("events list --color always")));
    assert!(!coloured(
        postrider("events list --color never").env("CLICOLOR_FORCE", "1")
    ));
    assert!(!coloured(postrider("events list").env("NO_COLOR", "1")));
    let json = postrider("events list --color always --json").run().stdout;
    assert!(!json.contains(ESCAPE), "{json}");
}

#[test]
fn columns_are_as_many_as_the_environment_says() {
    let listed = postrider("events list").env("COLUMNS", "60").run().stdout;
    assert!(listed.lines().all(|line| line.chars().count() <= 60), "{listed}");
}
