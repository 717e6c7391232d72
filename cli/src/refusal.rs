//! What is said instead of doing something: the help, and what is wrong with an argument. The words of parsers are for programmers, those
//! here say what to write.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::Cli;
use crate::{help, output};

/// What parsers say, and what is said instead.
const SAID: [(&str, &str); 6] = [
    ("invalid digit found in string", "write a whole number"),
    ("cannot parse integer from empty string", "write a whole number"),
    (
        "number too large to fit in target type",
        "the number is too large",
    ),
    (
        "number too small to fit in target type",
        "the number is too small",
    ),
    (
        "relative URL without a base",
        "write a whole URL, such as http://127.0.0.1:8000/hooks",
    ),
    (
        "empty host",
        "write a whole URL, such as http://127.0.0.1:8000/hooks",
    ),
];
/// How the parser of identifiers begins what it says, which goes on to the end of the line.
const OF_IDENTIFIERS: [&str; 3] = ["invalid character: ", "invalid length: ", "invalid group "];
pub(crate) const IDENTIFIER: &str = "write an identifier such as 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";

/// Says it as clap does, what is wrong on standard error; how the program ends with it.
pub(crate) fn tell(mut error: clap::Error) -> ExitCode {
    correct_usage(&mut error);
    hint(&mut error);
    let said = || error.render().ansi().to_string();
    match error.kind() {
        ErrorKind::ValueValidation => anstream::eprint!("{}", reworded(&said())),
        ErrorKind::DisplayHelp => {
            // As clap: where the help cannot be written, nothing else can be said.
            let _ = output::result(help::usage(&said(), output::help_width()).trim_end());
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            anstream::eprint!("{}", help::usage(&said(), output::help_width()));
        }
        _ => error.exit(),
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(u8::MAX))
}

/// Shows the usage as the help has it. That of clap lists what was given as well, as if all of it were required.
fn correct_usage(error: &mut clap::Error) {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else {
        return;
    };
    let usage = usage.to_string();
    let mut command = Cli::command();
    command.build();
    let mut found = &command;
    // What stands behind `Usage: postrider`.
    for word in usage.split_whitespace().skip(2) {
        match found.find_subcommand(word) {
            Some(below) => found = below,
            None => break,
        }
    }
    let usage = found.clone().render_usage();
    error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
}

/// Adds what was probably meant, where a word or an option is refused that other commands take.
fn hint(error: &mut clap::Error) {
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    // What stands behind `Usage: postrider`; nothing of a value that is refused.
    let words: Vec<&str> = usage.split_whitespace().skip(2).collect();
    let given = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => word.as_str(),
        _ => "",
    };
    let said = match (error.kind(), words.as_slice()) {
        (ErrorKind::InvalidSubcommand, words) => {
            let is_like_another = error.get(ContextKind::SuggestedSubcommand).is_some();
            of_word(given(ContextKind::InvalidSubcommand), words, is_like_another)
        }
        (ErrorKind::UnknownArgument, ["resend", ..]) if !given(ContextKind::InvalidArg).starts_with('-') => {
            Some(
                "several of one subscription: `postrider notifications resend SUBSCRIPTION --id ID,ID`"
                    .to_owned(),
            )
        }
        (ErrorKind::ArgumentConflict, ["notifications", "list", ..]) => {
            let both = [ContextKind::InvalidArg, ContextKind::PriorArg].map(given);
            let is_given = |name: &str| both.iter().any(|option| option.starts_with(name));
            (is_given("--all") && is_given("--reseller"))
                .then(|| "leave --all out: --reseller alone lists all of that reseller".to_owned())
        }
        // What was delivered is called so, which no likeness of the names leads to.
        (ErrorKind::InvalidValue, _)
            if given(ContextKind::InvalidValue).eq_ignore_ascii_case("DELIVERED") =>
        {
            match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(known)) if known.iter().any(|name| name == "SENT") => {
                    Some("did you mean SENT?".to_owned())
                }
                _ => None,
            }
        }
        _ => None,
    };
    if let Some(said) = said {
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![said.into()]),
        );
    }
}

/// What is meant by a word that is no command below that of these words.
fn of_word(word: &str, below: &[&str], is_like_another: bool) -> Option<String> {
    match below {
        // The name of a lane stands for what is paused.
        [command @ ("pause" | "resume"), ..] if word == "push" => {
            Some(format!("write `postrider {command} lane push`"))
        }
        ["push", ..] if !is_like_another => Some(
            "`postrider push` itself hands in a push: `postrider push --platform IOS --prototype Hello --push-key KEY --message TEXT`"
                .to_owned(),
        ),
        _ => None,
    }
}

fn reworded(text: &str) -> String {
    let mut text = text.to_owned();
    for (parser, said) in SAID {
        text = text.replace(parser, said);
    }
    let lines = text.split_inclusive('\n').map(|line| {
        let (said, end) = line.strip_suffix('\n').map_or((line, ""), |said| (said, "\n"));
        let begin = OF_IDENTIFIERS.iter().find_map(|it| said.find(it));
        match begin {
            Some(begin) => format!("{}{IDENTIFIER}{end}", &said[..begin]),
            None => format!("{}{end}", range(said)),
        }
    });
    lines.collect()
}

/// A range of numbers in words: `0 is not in 1..=200`.
fn range(line: &str) -> String {
    let Some((before, (least, most))) = line
        .split_once(" is not in ")
        .and_then(|(before, range)| Some((before, range.split_once("..")?)))
    else {
        return line.to_owned();
    };
    match most.strip_prefix('=') {
        Some(most) if most.len() < 15 => format!("{before} is not from {least} to {most}"),
        _ => format!("{before} is less than {least}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[test]
    fn what_cannot_be_read_is_told_in_words() {
        for (line, said) in [
            ("notifications list --all --limit x", "write a whole number"),
            ("notifications list --all --limit 0", "0 is less than 1"),
            ("history push --minutes 0", "0 is not from 1 to 60"),
            ("notifications list --all --code 600", "from 100 to 599"),
            ("notifications list --all --code 6xx", "or a class, such as 5xx"),
            ("explain", "<ID|--device <PUSH_KEY>>"),
            ("dead-letters list --subscription x", IDENTIFIER),
            ("keys revoke shop", "`postrider keys list --name NAME` has those"),
            ("listen --forward-to localhost", "write a whole URL"),
            ("listen --count 0", "0 is less than 1"),
        ] {
            let line = format!("postrider {line}");
            let error = Cli::try_parse_from(line.split(' ')).expect_err("a refusal");
            let text = reworded(&error.render().to_string());
            assert!(text.contains(said), "{line}: {text}");
        }
    }

    #[test]
    fn what_an_identifier_is_taken_for_is_also_named_by_where_it_is_looked_up() {
        let id = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
        for line in [
            format!("push show /push/{id}"),
            format!("cancel push /push/{id} --note mistake"),
            format!("cancel notification /notifications/{id} --note mistake"),
            format!("retry-now push /push/{id} {id}"),
            format!("notifications show /notifications/{id}"),
        ] {
            let line = format!("postrider {line}");
            let read = Cli::try_parse_from(line.split(' '));
            assert!(read.is_ok(), "{line}");
        }
    }

    #[test]
    fn what_pauses_a_lane_is_named_to_those_who_name_only_the_lane() {
        for command in ["pause", "resume"] {
            let line = ["postrider", command, "push"];
            let mut error = Cli::try_parse_from(line).expect_err("a refusal");
            correct_usage(&mut error);
            hint(&mut error);
            let text = error.render().to_string();
            let tip = format!("tip: write `postrider {command} lane push`");
            assert!(text.contains(&tip), "{text}");
        }
    }

    #[test]
    fn what_other_commands_take_is_named_where_it_is_refused() {
        let id = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
        let refused = |line: &str| {
            let line = format!("postrider {line}");
            let mut error = Cli::try_parse_from(line.split(' ')).expect_err("a refusal");
            correct_usage(&mut error);
            hint(&mut error);
            error.render().to_string()
        };
        let (two, option) = (format!("resend {id} {id}"), format!("resend {id} --bogus"));
        let several = "tip: several of one subscription: `postrider notifications resend SUBSCRIPTION --id";
        for (line, tip) in [
            ("push send", "tip: `postrider push` itself hands in a push"),
            (
                "push send --platform IOS",
                "tip: `postrider push` itself hands in a push",
            ),
            (&*two, several),
            ("notifications list --all --reseller demo", "tip: leave --all out"),
            ("notifications list --reseller demo --all", "tip: leave --all out"),
        ] {
            let text = refused(line);
            assert!(text.contains(tip), "{line}: {text}");
        }
        for line in ["push shwo", &*option, "notifications list --all --event-id x"] {
            let text = refused(line);
            assert!(
                !text.contains("itself hands in") && !text.contains(several) && !text.contains("leave --all"),
                "{line}: {text}"
            );
        }
    }

    #[test]
    fn what_was_delivered_is_called_sent() {
        for (status, is_hinted) in [("DELIVERED", true), ("delivered", true), ("NONE", false)] {
            let line = ["postrider", "notifications", "list", "--status", status];
            let mut error = Cli::try_parse_from(line).expect_err("a refusal");
            hint(&mut error);
            let text = error.render().to_string();
            assert_eq!(text.contains("tip: did you mean SENT?"), is_hinted, "{text}");
        }
    }

    #[test]
    fn a_usage_shows_nothing_as_required_that_is_not() {
        for (line, usage) in [
            (
                "notifications list --code 500 --bogus",
                "notifications list [OPTIONS] [SUBSCRIPTION]\n",
            ),
            (
                "trigger domain.created --age 10m",
                "trigger [OPTIONS] --to <URL> <EVENT_TYPE>\n",
            ),
            ("bogus", "[OPTIONS] <COMMAND>\n"),
        ] {
            let line = format!("postrider {line}");
            let mut error = Cli::try_parse_from(line.split(' ')).expect_err("a refusal");
            correct_usage(&mut error);
            let text = error.render().to_string();
            assert!(
                text.contains(&format!("Usage: postrider {usage}")),
                "{line}: {text}"
            );
        }
    }
}
