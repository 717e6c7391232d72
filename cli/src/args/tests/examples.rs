//! Whether the commands that the documents and the help show are ones that the command line takes.

use std::path::Path;
use std::sync::LazyLock;

use clap::error::ErrorKind;

use super::{Cli, leaves};
use crate::help;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Folders whose pages show commands.
const FOLDERS: [&str; 6] = [".", "docs", "docs/site", "sdks/python", "sdks/go", "sdks/csharp"];
/// What a variable that a page leaves to its reader stands for; of any other it is an identifier.
const VARIABLES: [(&str, &str); 4] = [
    ("PORT", "8000"),
    ("SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
    ("SINCE", "2026-11-21T12:00:00Z"),
    ("URL", "https://reseller.example/hooks"),
];
const IDENTIFIER: &str = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";

#[test]
fn what_the_documents_show_is_taken() {
    let mut shown = Shown::default();
    for folder in FOLDERS {
        let pages = std::fs::read_dir(Path::new(ROOT).join(folder)).expect("a folder of the checkout");
        for page in pages.map(|page| page.expect("an entry").path()) {
            // What changed once may have had other options.
            let is_history = page.file_name().is_some_and(|name| name == "CHANGELOG.md");
            if page.extension().is_none_or(|extension| extension != "md") || is_history {
                continue;
            }
            let text = std::fs::read_to_string(&page).expect("a page");
            for (line, block) in shell_blocks(&text) {
                shown.script(&block, &format!("{}:{line}", page.display()));
            }
            for (line, span) in spans(&text) {
                shown.span(span, &format!("{}:{line}", page.display()));
            }
        }
    }
    shown.assert_taken(100);
}

#[test]
fn what_the_help_shows_is_taken() {
    let mut shown = Shown::default();
    for (path, help) in leaves() {
        for line in help.lines().filter_map(|line| line.strip_prefix("  ")) {
            // What an example is for stands behind two blanks.
            let example = line.split("  ").next().unwrap_or(line);
            shown.script(example, &format!("{path} --help"));
        }
    }
    shown.assert_taken(50);
}

#[test]
fn what_mails_show_is_taken() {
    let mut shown = Shown::default();
    let templates = Path::new(ROOT).join("libs/mail/templates");
    for template in std::fs::read_dir(templates).expect("the templates of mails") {
        let template = template.expect("an entry").path();
        let text = std::fs::read_to_string(&template).expect("a template");
        let text = text
            .replace("{{ subscription }}", IDENTIFIER)
            .replace("{{ code }}", "5F0C81A94D")
            .replace("{{ listed }}", "RETRY,GIVEN_UP")
            .replace("{{ since | instant }}", "2026-11-21T12:00:00Z");
        for (line, text) in (1..).zip(text.lines()) {
            let command = ["Command: ", "Send again: "]
                .into_iter()
                .find_map(|name| text.strip_prefix(name));
            if let Some(command) = command {
                // With all that is there in some cases alone.
                let command = without(command, ("{%", "%}"), "");
                shown.script(&command, &format!("{}:{line}", template.display()));
            }
        }
    }
    shown.assert_taken(11);
}

#[test]
fn what_pages_show_is_taken() {
    let mut shown = Shown::default();
    for folder in [
        "services/operator-api/templates",
        "services/reseller-portal/templates",
    ] {
        for template in std::fs::read_dir(Path::new(ROOT).join(folder)).expect("the templates of pages") {
            let template = template.expect("an entry").path();
            let text = std::fs::read_to_string(&template).expect("a template");
            for shown_command in text.split("<code>").skip(1) {
                let command = shown_command.split("</code>").next().unwrap_or_default();
                let command = without(&without(command, ("{%", "%}"), ""), ("{{", "}}"), IDENTIFIER);
                shown.span(&command, &template.display().to_string());
            }
        }
    }
    shown.assert_taken(15);
}

/// A text with another one in place of what stands between these, both included.
fn without(text: &str, (from, to): (&str, &str), instead: &str) -> String {
    let mut parts = text.split(from);
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        rest.push_str(instead);
        rest.push_str(part.split_once(to).map_or("", |(_, after)| after));
    }
    rest
}

/// The commands that were found, and what clap says of those that it does not take.
#[derive(Default)]
struct Shown {
    commands: usize,
    refused: Vec<String>,
}

impl Shown {
    /// Runs no command of a script, and has clap read those of this program.
    fn script(&mut self, script: &str, place: &str) {
        for words in commands(script) {
            let Some(start) = words.iter().position(|word| word == "postrider") else {
                continue;
            };
            let before = &words[..start];
            let through_xargs = before.first().is_some_and(|word| word == "xargs");
            if !through_xargs && !before.iter().all(|word| word.contains('=')) {
                continue;
            }
            self.commands += 1;
            let mut words = words[start..].to_vec();
            if through_xargs {
                words.push(IDENTIFIER.to_owned());
            }
            self.refused
                .extend(refusal(&words).map(|error| format!("{place}: {}\n{error}", words.join(" "))));
        }
    }

    /// The same of what a sentence names: placeholders are no values, and not all that is required is there.
    fn span(&mut self, span: &str, place: &str) {
        // Within a table a bar is written so.
        for words in commands(&span.replace("\\|", "|")) {
            let is_placeholder = |word: &String| word.chars().all(|c| c.is_ascii_uppercase() || c == '…');
            if words.first().is_none_or(|word| word != "postrider")
                || words.iter().skip(1).any(is_placeholder)
            {
                continue;
            }
            self.commands += 1;
            let unknown = refusal(&words).filter(|error| {
                matches!(
                    error.kind(),
                    ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand
                )
            });
            self.refused
                .extend(unknown.map(|error| format!("{place}: {span}\n{error}")));
        }
    }

    #[track_caller]
    fn assert_taken(self, at_least: usize) {
        assert!(self.refused.is_empty(), "{}", self.refused.join("\n"));
        assert!(
            self.commands >= at_least,
            "only {} commands were found",
            self.commands
        );
    }
}

fn refusal(words: &[String]) -> Option<clap::Error> {
    // To put it together takes far longer than to read a line with it.
    static COMMAND: LazyLock<clap::Command> =
        LazyLock::new(|| help::grouped(<Cli as clap::CommandFactory>::command(), 80));
    let error = COMMAND.clone().try_get_matches_from(words).err()?;
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    (!is_help).then_some(error)
}

/// Blocks that a shell would run, or that name no language, each with the number of its first line.
fn shell_blocks(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut block: Option<(usize, bool, String)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut block, fence) {
            (None, Some(language)) => {
                let is_shell = matches!(language, "" | "sh" | "shell" | "bash" | "console");
                block = Some((number + 1, is_shell, String::new()));
            }
            (Some(_), Some(_)) => {
                let ended = block.take();
                found.extend(
                    ended
                        .filter(|(_, is_shell, _)| *is_shell)
                        .map(|(at, _, text)| (at, text)),
                );
            }
            (Some((_, _, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

/// What stands between backticks in a line of prose.
fn spans(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).flat_map(|(number, line)| {
        let spans = line.split('`').skip(1).step_by(2);
        spans
            .filter(|span| span.starts_with("postrider "))
            .map(move |span| (number, span))
    })
}

/// The simple commands of a script as lists of words, those within substitutions included. As much of a shell as examples need.
fn commands(script: &str) -> Vec<Vec<String>> {
    let script = script.replace("\\\n", " ");
    let mut reader = Reader {
        rest: script.chars().peekable(),
        found: Vec::new(),
    };
    reader.list(None);
    reader.found
}

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    found: Vec<Vec<String>>,
}

impl Reader<'_> {
    /// Reads commands until `end`.
    fn list(&mut self, end: Option<char>) {
        let mut words = Vec::new();
        let mut word: Option<String> = None;
        while let Some(next) = self.rest.next() {
            let is_end = Some(next) == end;
            if is_end || "|&;\n()<> \t".contains(next) || (next == '#' && word.is_none()) {
                // The number of a stream, as in 2>&1, is no word either.
                let stream = "<>".contains(next) && word.as_ref().is_some_and(|word| word.len() == 1);
                words.extend(word.take().filter(|_| !stream));
                match next {
                    '#' => while self.rest.next_if(|next| *next != '\n').is_some() {},
                    '<' | '>' if self.rest.next_if_eq(&'(').is_some() => {
                        self.list(Some(')'));
                        word = Some(IDENTIFIER.to_owned());
                    }
                    // Where output goes, or input comes from, is no word of the command.
                    '<' | '>' => {
                        while self.rest.next_if(|next| " &".contains(*next)).is_some() {}
                        while self.rest.next_if(|next| !" \n)|;".contains(*next)).is_some() {}
                    }
                    ' ' | '\t' => {}
                    _ => self.found.push(std::mem::take(&mut words)),
                }
                if is_end {
                    return;
                }
                continue;
            }
            self.part(next, word.get_or_insert_default());
        }
        words.extend(word);
        self.found.push(words);
    }

    /// A part of a word: a quotation, a variable, a substitution, or a character.
    fn part(&mut self, first: char, word: &mut String) {
        match first {
            '\'' => word.extend(self.rest.by_ref().take_while(|next| *next != '\'')),
            '"' => {
                while let Some(next) = self.rest.next() {
                    match next {
                        '"' => return,
                        '\\' => word.extend(self.rest.next()),
                        '$' => self.variable(word),
                        _ => word.push(next),
                    }
                }
            }
            '\\' => word.extend(self.rest.next()),
            '$' => self.variable(word),
            _ => word.push(first),
        }
    }

    fn variable(&mut self, word: &mut String) {
        if self.rest.next_if_eq(&'(').is_some() {
            self.list(Some(')'));
            return word.push_str(IDENTIFIER);
        }
        let braced = self.rest.next_if_eq(&'{').is_some();
        let mut name = String::new();
        while let Some(next) = self
            .rest
            .next_if(|next| next.is_ascii_alphanumeric() || *next == '_')
        {
            name.push(next);
        }
        if braced {
            self.rest.by_ref().find(|next| *next == '}');
        }
        let known = VARIABLES.iter().find(|(ending, _)| name.ends_with(ending));
        word.push_str(known.map_or(IDENTIFIER, |(_, value)| value));
    }
}

#[test]
fn a_script_is_read_as_a_shell_reads_it() {
    let script = "A=$(postrider push --message 'Hello # you' | tail -1)   # postrider no\npostrider tail \"$ID/x\" > file && \\\n  postrider up";
    let read: Vec<String> = commands(script)
        .into_iter()
        .filter(|words| !words.is_empty())
        .map(|words| words.join("|"))
        .collect();
    let wanted = [
        "postrider|push|--message|Hello # you".to_owned(),
        "tail|-1".to_owned(),
        format!("A={IDENTIFIER}"),
        format!("postrider|tail|{IDENTIFIER}/x"),
        "postrider|up".to_owned(),
    ];
    assert_eq!(read, wanted);
}
