//! What is said instead of doing something: the help, and what is wrong with an argument. The words of parsers are for programmers, those
//! here say what to write.

use std::process::ExitCode;

use clap::error::ErrorKind;

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
const IDENTIFIER: &str = "write an identifier such as 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";

/// Says it as clap does, what is wrong on standard error; how the program ends with it.
pub(crate) fn tell(error: &clap::Error) -> ExitCode {
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
    use crate::args::Cli;
    use clap::Parser as _;

    #[test]
    fn what_cannot_be_read_is_told_in_words() {
        for (line, said) in [
            ("notifications list --all --limit x", "write a whole number"),
            ("notifications list --all --limit 0", "0 is not from 1 to 200"),
            ("explain", ""),
            ("dead-letters list --subscription x", IDENTIFIER),
            ("listen --forward-to localhost", "write a whole URL"),
            ("listen --count 0", "0 is less than 1"),
        ] {
            let line = format!("postrider {line}");
            let error = Cli::try_parse_from(line.split(' ')).expect_err("a refusal");
            let text = reworded(&error.render().to_string());
            assert!(text.contains(said), "{line}: {text}");
        }
    }
}
