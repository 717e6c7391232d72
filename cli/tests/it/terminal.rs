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
    let rows = listed.lines().filter(|line| line.starts_with('│'));
    assert!(rows.clone().count() > 2, "{listed}");
    for row in rows.skip(1) {
        let name = row.split(['│', '┆']).nth(1).unwrap_or_default();
        assert!(!name.trim().is_empty(), "{row}");
    }
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
