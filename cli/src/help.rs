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
            "replays",
            "quota",
            "secrets",
            "portal-links",
            "tail",
        ],
    ),
    ("Pushes and events, over the ingest API", &["push", "event"]),
    (
        "On call, over the operator API",
        &[
            "status",
            "explain",
            "find",
            "history",
            "dead-letters",
            "jobs",
            "resellers",
            "mails",
            "pause",
            "resume",
            "pauses",
            "cancel",
            "retry-now",
            "rescue",
            "broker",
            "audit",
            "visits",
        ],
    ),
    ("On the database", &["migrate", "keys", "event-types", "quotas"]),
    ("Services", &["up", "serve", "config", "healthcheck"]),
    (
        "To try things, and the rest",
        &["demo", "receive", "sim", "completions", "version", "help"],
    ),
];

/// The commands that read the configuration.
const CONFIGURED: [&str; 8] = [
    "migrate",
    "keys",
    "event-types",
    "quotas",
    "up",
    "serve",
    "config",
    "sim",
];

/// The same command line with a help that lists its commands in groups, and `--config` in the help of those alone that read it.
pub(crate) fn grouped(command: Command) -> Command {
    let list = list(&command);
    let config = command
        .get_arguments()
        .find(|argument| argument.get_id() == "config")
        .cloned();
    let others: Vec<String> = command
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .filter(|name| !CONFIGURED.contains(&name.as_str()))
        .collect();
    let hidden = config.map(|argument| argument.hide(true));
    let command = others.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |below| below.args(hidden.clone()))
    });
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
    fn only_commands_that_read_the_configuration_offer_it_and_all_take_it() {
        let mut command = grouped(Cli::command());
        command.build();
        for (name, offered) in [("migrate", true), ("status", false), ("jobs", false)] {
            let below = command.find_subcommand_mut(name).expect("a command");
            assert_eq!(
                below.render_long_help().to_string().contains("--config"),
                offered,
                "{name}"
            );
        }
        let jobs = command.find_subcommand_mut("jobs").expect("a command");
        let list = jobs.find_subcommand_mut("list").expect("a command");
        assert!(!list.render_long_help().to_string().contains("--config"));
        let line = ["postrider", "jobs", "list", "--config", "x.yaml"];
        let matches = grouped(Cli::command())
            .try_get_matches_from(line)
            .expect("a command line");
        assert_eq!(
            matches
                .get_one::<std::path::PathBuf>("config")
                .expect("a file")
                .to_str(),
            Some("x.yaml")
        );
        grouped(Cli::command()).debug_assert();
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
