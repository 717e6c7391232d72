//! The help: the list of commands, by who needs them, since a reseller's developer has no use for migrations; and lines that fit the
//! screen.

use std::fmt::Write as _;

use clap::Command;
use unicode_width::UnicodeWidthStr as _;

use crate::output;

/// Columns that what stands behind an example needs to stay there; with less it goes above.
const BESIDE: usize = 20;

/// Headings and the commands below them, in the order in which they are shown.
const GROUPS: [(&str, &[&str]); 7] = [
    (
        "For resellers' developers, without any server",
        &["listen", "trigger", "sign", "verify", "events"],
    ),
    (
        "For resellers, over the portal (PORTAL_URL, RESELLER_KEY)",
        &[
            "overview",
            "subscriptions",
            "notifications",
            "attempts",
            "resend",
            "replay",
            "replays",
            "quota",
            "secrets",
            "portal-links",
            "activity",
            "limits",
            "tail",
        ],
    ),
    (
        "Pushes and events, over the ingest API (INGEST_URL, INGEST_KEY)",
        &["push", "event"],
    ),
    (
        "On call, over the operator API (OPERATOR_URL, OPERATOR_KEY)",
        &[
            "status",
            "waiting",
            "explain",
            "find",
            "history",
            "dead-letters",
            "jobs",
            "resellers",
            "user-agents",
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
    (
        "On the database",
        &["migrate", "keys", "event-types", "quotas", "recover"],
    ),
    ("Services", &["up", "serve", "config", "healthcheck"]),
    (
        "To try things, and the rest",
        &["demo", "receive", "sim", "completions", "version", "help"],
    ),
];

/// The commands that read the configuration.
const CONFIGURED: [&str; 9] = [
    "migrate",
    "keys",
    "event-types",
    "quotas",
    "recover",
    "up",
    "serve",
    "config",
    "sim",
];

/// Commands below these that read it not.
const UNCONFIGURED: [(&str, &str); 2] = [("sim", "smtp"), ("sim", "report")];

/// The same command line with a help that lists its commands in groups, no line of it wider than `width` as far as words can be parted,
/// and `--config` in the help of those alone that read it.
pub(crate) fn grouped(command: Command, width: usize) -> Command {
    let command = fitted(command, width);
    let list = list(&command, width);
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
    let command = UNCONFIGURED.iter().fold(command, |command, (above, name)| {
        command.mut_subcommand(above, |command| {
            command.mut_subcommand(name, |below| below.args(hidden.clone()))
        })
    });
    command.term_width(width).help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
    ))
}

/// The examples of a command and of those below it, within the width. What else there is to say clap breaks by itself.
fn fitted(command: Command, width: usize) -> Command {
    let help = command.get_after_help().map(ToString::to_string);
    let command = match help {
        Some(help) => {
            let lines: Vec<String> = help.lines().map(|line| example(line, width)).collect();
            command.after_help(lines.join("\n"))
        }
        None => command,
    };
    command.mut_subcommands(|below| fitted(below, width))
}

/// A line of examples: what stands behind the command goes on below itself, or above it for want of room; a command that is too wide goes on
/// in the next line as shells have it, so that it can be pasted.
fn example(line: &str, width: usize) -> String {
    let indent = line.len() - line.trim_start().len();
    if line.width() <= width {
        return line.to_owned();
    }
    if indent == 0 {
        return output::hung("", line, 0, width);
    }
    let (command, beside) = line[indent..].split_once("  ").unwrap_or((&line[indent..], ""));
    let (command, beside) = (format!("{}{command}", " ".repeat(indent)), beside.trim_start());
    let column = line.width() - beside.width();
    if beside.is_empty() {
        return continued(&command, " \\\n      ", width - 2);
    }
    if column + BESIDE <= width {
        let begin = &line[..line.len() - beside.len()];
        return output::hung(begin, beside, column, width);
    }
    let above = output::hung("  # ", beside, 4, width).replace("\n    ", "\n  # ");
    format!("{above}\n{}", continued(&command, " \\\n      ", width - 2))
}

/// A usage in lines within the width.
pub(crate) fn usage(help: &str, width: usize) -> String {
    let lines = help.split_inclusive('\n').map(|line| {
        let plain = anstream::adapter::strip_str(line).to_string();
        if plain.starts_with("Usage: ") {
            continued(line, "\n         ", width)
        } else {
            line.to_owned()
        }
    });
    lines.collect()
}

/// A command line that goes on after `then` where it would be too wide. It is parted before options, and neither between an option and
/// its value nor inside quotes.
fn continued(line: &str, then: &str, width: usize) -> String {
    let shown = |text: &str| anstream::adapter::strip_str(text).to_string();
    let (mut parts, mut quote): (Vec<String>, Option<char>) = (Vec::new(), None);
    let indent = line.len() - line.trim_start().len();
    for word in line[indent..].split(' ') {
        let plain = shown(word);
        let is_option = |part: &String| shown(part).starts_with('-') || shown(part).starts_with("<-");
        let is_value = parts.last().is_some_and(is_option);
        let begins = quote.is_none()
            && (plain.starts_with(['-', '|']) || plain.starts_with(['<', '[', '"', '\'']) && !is_value);
        match parts.last_mut() {
            Some(last) if !begins => {
                last.push(' ');
                last.push_str(word);
            }
            _ => parts.push(word.to_owned()),
        }
        for c in plain.chars().filter(|c| matches!(c, '"' | '\'')) {
            quote = match quote {
                None => Some(c),
                Some(open) if open == c => None,
                open => open,
            };
        }
    }
    // What continues a line begins with the blanks of `then`.
    let blanks = then.rsplit('\n').next().map_or(0, str::len);
    let mut lines: Vec<String> = Vec::new();
    for part in &parts {
        let before = if lines.len() > 1 { blanks } else { 0 };
        let room = |line: &str| before + shown(line).width() + 1 + shown(part).trim_end().width() <= width;
        match lines.last_mut() {
            Some(line) if room(line) => {
                line.push(' ');
                line.push_str(part);
            }
            Some(_) => lines.push(part.to_owned()),
            None => lines.push(format!("{}{part}", " ".repeat(indent))),
        }
    }
    lines.join(then)
}

fn list(command: &Command, width: usize) -> String {
    let widest = command
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
            let begin = format!("  {name:widest$}  ");
            let _ = writeln!(list, "{}", output::hung(&begin, &about, widest + 4, width));
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
        let mut command = grouped(Cli::command(), 80);
        command.build();
        for (name, offered) in [
            ("migrate", true),
            ("status", false),
            ("jobs", false),
            ("sim swrve", true),
            ("sim smtp", false),
        ] {
            let below = name.split(' ').fold(&mut command, |above, name| {
                above.find_subcommand_mut(name).expect("a command")
            });
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
        let matches = grouped(Cli::command(), 80)
            .try_get_matches_from(line)
            .expect("a command line");
        assert_eq!(
            matches
                .get_one::<std::path::PathBuf>("config")
                .expect("a file")
                .to_str(),
            Some("x.yaml")
        );
        grouped(Cli::command(), 80).debug_assert();
    }

    /// The help of a command and of those below it, as `--help` shows it.
    fn helps(command: &mut Command, shown: &mut Vec<String>) {
        shown.push(usage(&command.render_long_help().to_string(), 80));
        for below in command.get_subcommands_mut() {
            helps(below, shown);
        }
    }

    #[test]
    fn no_line_of_a_help_is_wider_than_80_columns() {
        let mut command = grouped(Cli::command(), 80);
        command.build();
        let mut shown = Vec::new();
        helps(&mut command, &mut shown);
        assert!(shown.len() > 100, "{}", shown.len());
        // An address or a secret cannot be parted.
        let wide = |line: &&str| line.width() > 80 && line.trim().split(' ').count() > 2;
        let wide: Vec<&str> = shown.iter().flat_map(|help| help.lines()).filter(wide).collect();
        assert_eq!(wide, [] as [&str; 0]);
    }

    #[test]
    fn examples_that_are_too_wide_stay_what_can_be_pasted() {
        for (line, fitted) in [
            ("  postrider up      run it", "  postrider up      run it"),
            (
                "  postrider find x     what is this identifier of, in all lanes?",
                "  postrider find x     what is this\n                       identifier of, in all\n                       lanes?",
            ),
            (
                "  postrider find 019aa2f0-5b1c-7c3e-9d41   what is this?",
                "  # what is this?\n  postrider find 019aa2f0-5b1c-7c3e-9d41",
            ),
            (
                "  postrider push --message 'so much, and -- more' --cron x",
                "  postrider push \\\n      --message 'so much, and -- more' \\\n      --cron x",
            ),
        ] {
            assert_eq!(example(line, 45), fitted);
        }
        assert_eq!(
            usage(
                "Usage: postrider push --key <KEY> --message <TEXT>\n\nOptions:\n",
                40
            ),
            "Usage: postrider push --key <KEY>\n         --message <TEXT>\n\nOptions:\n"
        );
    }

    #[test]
    fn the_help_shows_the_groups_and_the_options() {
        let help = grouped(Cli::command(), 80).render_help().to_string();
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
