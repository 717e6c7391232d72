//! Whether the guide and the command line say the same.

use clap::CommandFactory as _;

use super::*;

mod audit;
mod examples;

const GUIDE: &str = include_str!("../../../docs/cli.md");

/// The commands for the engineer on call: each shows in its help how it is used.
const ON_CALL: [&str; 14] = [
    "audit",
    "broker",
    "cancel",
    "dead-letters",
    "explain",
    "find",
    "history",
    "jobs",
    "pause",
    "pauses",
    "recover",
    "rescue",
    "resume",
    "status",
];

/// Every command that has none below it, as it is typed, with the help after its options and those above it.
fn leaves() -> Vec<(String, String)> {
    let mut found = Vec::new();
    walk(&Cli::command(), "", "", &mut found);
    found
}

fn walk(command: &clap::Command, above: &str, help: &str, found: &mut Vec<(String, String)>) {
    let path = format!("{above} {}", command.get_name()).trim_start().to_owned();
    let own = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let help = format!("{help}\n{own}");
    if command.get_subcommands().next().is_none() || !command.is_subcommand_required_set() {
        found.push((path.clone(), help.clone()));
    }
    for below in command.get_subcommands() {
        // What the program itself says helps no command below it.
        let inherited = if above.is_empty() { "" } else { &help };
        walk(below, &path, inherited, found);
    }
}

/// The guide's section about a command of the first level.
fn section(name: &str) -> Option<&'static str> {
    let heading = format!("\n## postrider {name}\n");
    let start = GUIDE.find(&heading)? + heading.len();
    let rest = &GUIDE[start..];
    Some(rest.split("\n## ").next().unwrap_or(rest))
}

#[test]
fn the_guide_has_a_section_for_every_command_and_speaks_of_those_below_it() {
    for (path, _) in leaves() {
        let Some(name) = path.split_whitespace().nth(1) else {
            continue;
        };
        let section =
            section(name).unwrap_or_else(|| panic!("docs/cli.md has no section \"## postrider {name}\""));
        assert!(section.contains("```\n"), "{name}: docs/cli.md shows no example");
        assert!(
            section.contains(&path),
            "{path}: docs/cli.md does not speak of it"
        );
    }
}

#[test]
fn the_guide_speaks_of_no_command_that_there_is_not() {
    let command = Cli::command();
    let known: Vec<_> = command.get_subcommands().map(clap::Command::get_name).collect();
    for heading in GUIDE
        .lines()
        .filter_map(|line| line.strip_prefix("## postrider "))
    {
        assert!(known.contains(&heading), "{heading}");
    }
}

#[test]
fn commands_for_the_engineer_on_call_show_how_they_are_used() {
    let leaves = leaves();
    for name in ON_CALL {
        assert!(
            leaves
                .iter()
                .any(|(path, _)| path.split_whitespace().nth(1) == Some(name)),
            "{name}"
        );
    }
    let on_call = |path: &str| {
        path.split_whitespace()
            .nth(1)
            .is_some_and(|name| ON_CALL.contains(&name))
    };
    let lacking: Vec<_> = leaves
        .into_iter()
        .filter(|(path, help)| on_call(path) && !help.contains(path.as_str()))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(lacking, [] as [&str; 0], "their --help shows no example");
}

#[test]
fn one_and_many_of_a_thing_name_the_same_command() {
    let id = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
    for line in [
        "pushes list".to_owned(),
        format!("pushes show {id}"),
        format!("attempt {id}"),
        format!("job show {id}"),
        "key ls".to_owned(),
        "changes --count 1".to_owned(),
        "dl groups".to_owned(),
    ] {
        let line = format!("postrider {line}");
        let read = Cli::try_parse_from(line.split(' '));
        assert!(read.is_ok(), "{line}");
    }
}

#[test]
fn a_file_with_a_secret_has_one_name_in_every_command() {
    let id = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
    for line in [
        "subscriptions check https://reseller.example/hooks".to_owned(),
        "subscriptions create --url https://reseller.example/hooks --event-types * --email ops@reseller.example".to_owned(),
        format!("secrets rotate {id}"),
        "listen".to_owned(),
        "trigger domain.created --to http://127.0.0.1:8000/hooks".to_owned(),
        "sign".to_owned(),
        "verify".to_owned(),
    ] {
        let line = format!("postrider {line} --secret-file secret");
        let read = Cli::try_parse_from(line.split(' '));
        assert!(read.is_ok(), "{line}");
    }
    let before = format!("postrider secrets rotate {id} --from-file secret");
    assert!(Cli::try_parse_from(before.split(' ')).is_ok());
}

#[test]
fn the_definition_of_the_command_line_is_sound() {
    Cli::command().debug_assert();
}

/// Save the end of a pause, which is to come.
#[test]
fn a_span_of_time_may_be_told_by_ages_wherever_one_is_taken() {
    let mut spans = 0;
    for (path, _) in leaves() {
        let mut command = &Cli::command();
        for word in path.split(' ').skip(1) {
            command = command.find_subcommand(word).expect("a command");
        }
        for option in command
            .get_arguments()
            .filter(|_| !path.starts_with("postrider pause "))
        {
            let name = option.get_long().unwrap_or_default();
            if name.ends_with("since") || name.ends_with("until") {
                let help = option.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("an age such as"), "{path} --{name}: {help}");
                spans += 1;
            }
        }
    }
    assert!(spans > 20, "{spans}");
    let replay = "replay 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
    for line in [
        "audit",
        "push list",
        "notifications list",
        "dead-letters list",
        "activity",
        replay,
    ] {
        let line = format!("postrider {line} --since 3d --until 2h");
        let read = Cli::try_parse_from(line.split(' '));
        assert!(
            read.is_ok(),
            "{line}: {:?}",
            read.err().map(|error| error.to_string())
        );
    }
}
