//! The list of commands, by who needs them: a reseller's developer has no use for migrations.

use std::fmt::Write as _;

use clap::Command;

/// Headings and the commands below them, in the order in which they are shown.
const GROUPS: [(&str, &[&str]); 7] = [
    (
        "For resellers' developers, without any server",
        &["listen", "trigger", "sign", "verify", "events"],
    ),
    (
        "For resellers, over the portal (PORTAL_URL, RESELLER_KEY)",
        &[
            "subscriptions",
            "notifications",
            "attempts",
            "resend",
            "replay",
            "quota",
            "secrets",
            "tail",
        ],
    ),
    ("Pushes and events, over the ingest API", &["push", "event"]),
    (
        "On call, over the operator API",
        &[
            "status",
            "explain",
            "dead-letters",
            "jobs",
            "pause",
            "resume",
            "pauses",
            "cancel",
            "rescue",
            "broker",
            "audit",
        ],
    ),
    ("On the database", &["migrate", "keys", "event-types", "quotas"]),
    ("Services", &["up", "serve", "config", "healthcheck"]),
    (
        "To try things, and the rest",
        &["demo", "receive", "sim", "completions", "version", "help"],
    ),
];

/// The same command line with a help that lists its commands in groups.
pub(crate) fn grouped(command: Command) -> Command {
    let list = list(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
    ))
}

fn list(command: &Command) -> String {
    let width = command
        .get_subcommands()
        .map(|known| known.get_name().len())
        .max()
        .unwrap_or_default();
    let mut list = String::new();
    for (heading, names) in GROUPS {
        // Writing to a String does not fail.
        let _ = writeln!(list, "{heading}:");
        for name in names {
            let about = match command.find_subcommand(name).and_then(Command::get_about) {
                Some(about) => about.to_string(),
                // It is added only when the command line is put together.
                None => "Print this message or the help of the given command".to_owned(),
            };
            let _ = writeln!(list, "  {name:width$}  {about}");
        }
        list.push('\n');
    }
    list
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_command_is_in_one_group_and_every_name_is_a_command() {
        let command = Cli::command();
        let mut known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        known.push("help");
        known.sort_unstable();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        grouped.sort_unstable();
        assert_eq!(grouped, known);
    }

    #[test]
    fn the_help_shows_the_groups_and_the_options() {
        let help = grouped(Cli::command()).render_help().to_string();
        for part in [
            "For resellers' developers",
            "  trigger        Sends a signed sample",
            "Options:\n",
            "--config",
            "Exit codes:",
        ] {
            assert!(help.contains(part), "{part}: {help}");
        }
    }
}
