//! The options that say how the receiver behaves, as rules of its script.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context as _;
use clap::Args;
use simulators::receiver::{Match, Pattern, Rule, parse_script};

/// What is answered to the notifications that `--fail-first` is about.
const FAILURE: u16 = 503;

#[derive(Debug, Args)]
#[command(next_help_heading = "Behaviour (verification challenges are answered whatever it is)")]
pub(super) struct BehaviourArgs {
    /// What to answer: statuses for one request after the other, of which the last stays. With a type (or domain.*) before
    /// it, for events of that type alone. May be repeated.
    #[arg(long = "answer", value_name = "[TYPE=]STATUS[,STATUS…]")]
    answers: Vec<Answers>,
    /// Answers 503 to the first N attempts of each notification.
    #[arg(long, value_name = "N")]
    fail_first: Option<u32>,
    /// Never answers.
    #[arg(long, conflicts_with_all = ["answers", "close", "redirect", "headers", "body_bytes"])]
    hang: bool,
    /// Closes the connection instead of answering.
    #[arg(long, conflicts_with_all = ["answers", "redirect", "headers", "body_bytes"])]
    close: bool,
    /// Redirects to this URL.
    #[arg(long, value_name = "URL", conflicts_with = "answers")]
    redirect: Option<String>,
    /// A header of each answer, such as 'Retry-After: 30'; may be repeated.
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// Waits so long before each answer.
    #[arg(long, value_name = "N")]
    delay_millis: Option<u64>,
    /// Answers with a body of so many bytes, or one without an end.
    #[arg(long, value_name = "N|endless", value_parser = body_size)]
    body_bytes: Option<BodySize>,
    /// Sends that body one byte at a time, with so long before each.
    #[arg(long, value_name = "N", requires = "body_bytes")]
    byte_millis: Option<u64>,
    /// JSON file with rules that come before these options.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
}

/// Statuses for one notification after the other, of a type or of all.
#[derive(Debug, Clone)]
pub(crate) struct Answers {
    pub(crate) event_type: Option<Pattern>,
    pub(crate) statuses: Vec<u16>,
}

#[derive(Debug, Clone, Copy)]
enum BodySize {
    Bytes(u64),
    Endless,
}

impl BehaviourArgs {
    /// The rules that these options stand for.
    pub(super) fn rules(&self) -> anyhow::Result<Vec<Rule>> {
        let mut rules = self.scripted()?;
        rules.extend(self.fail_first.map(|first| Rule {
            delay_millis: self.delay_millis,
            ..Rule::answering(FAILURE).first(first)
        }));
        let (some, all): (Vec<_>, Vec<_>) = self
            .answers
            .iter()
            .partition(|answers| answers.event_type.is_some());
        rules.extend(
            some.into_iter()
                .chain(all)
                .flat_map(|answers| self.sequence(answers)),
        );
        rules.push(Rule {
            hang: self.hang,
            drop: self.close,
            status: self.redirect.as_ref().map(|_| 302),
            ..self.answer()
        });
        Ok(rules)
    }

    fn scripted(&self) -> anyhow::Result<Vec<Rule>> {
        let Some(file) = &self.script else {
            return Ok(Vec::new());
        };
        let script =
            std::fs::read(file).with_context(|| format!("failed to read the script {}", file.display()))?;
        parse_script(&script).with_context(|| format!("the script {} is not usable", file.display()))
    }

    /// What all answers have in common.
    fn answer(&self) -> Rule {
        let mut headers: BTreeMap<_, _> = self.headers.iter().cloned().collect();
        headers.extend(
            self.redirect
                .iter()
                .map(|url| ("Location".to_owned(), url.clone())),
        );
        let (body_bytes, endless) = match self.body_bytes {
            None => (None, false),
            Some(BodySize::Bytes(bytes)) => (Some(bytes), false),
            Some(BodySize::Endless) => (None, true),
        };
        Rule {
            headers,
            delay_millis: self.delay_millis,
            body_bytes,
            endless,
            byte_millis: self.byte_millis,
            ..Rule::default()
        }
    }

    fn sequence<'a>(&'a self, answers: &'a Answers) -> impl Iterator<Item = Rule> + 'a {
        let last = answers.statuses.len() - 1;
        answers
            .statuses
            .iter()
            .enumerate()
            .map(move |(place, status)| Rule {
                matching: Match {
                    event_type: answers.event_type.clone(),
                    ..Match::default()
                },
                status: Some(*status),
                times: (place < last).then_some(1),
                ..self.answer()
            })
    }
}

impl FromStr for Answers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (event_type, statuses) = match text.split_once('=') {
            Some((event_type, statuses)) => (Some(pattern(event_type)), statuses),
            None => (None, text),
        };
        let statuses = statuses.split(',').map(status).collect::<Result<_, _>>()?;
        Ok(Self { event_type, statuses })
    }
}

fn status(text: &str) -> Result<u16, String> {
    let status = text
        .trim()
        .parse()
        .ok()
        .filter(|status| (200..600).contains(status));
    status.ok_or_else(|| format!("{text:?} is no status between 200 and 599"))
}

fn pattern(text: &str) -> Pattern {
    match text.strip_suffix('*') {
        Some(prefix) => Pattern::Prefix {
            prefix: prefix.to_owned(),
        },
        None => Pattern::Exact(text.to_owned()),
    }
}

fn header(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once(':').ok_or("write NAME: VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn body_size(text: &str) -> Result<BodySize, &'static str> {
    match text {
        "endless" => Ok(BodySize::Endless),
        bytes => bytes
            .parse()
            .map(BodySize::Bytes)
            .map_err(|_| "write a number of bytes, or endless"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        behaviour: BehaviourArgs,
    }

    fn rules(arguments: &[&str]) -> Vec<Rule> {
        let line = Line::try_parse_from([&["receive"], arguments].concat()).unwrap();
        line.behaviour.rules().unwrap()
    }

    #[test]
    fn without_options_everything_is_accepted() {
        assert_eq!(rules(&[]), [Rule::default()]);
    }

    #[test]
    fn answers_are_a_sequence_of_which_the_last_stays() {
        let once = |status| Rule {
            times: Some(1),
            ..Rule::answering(status)
        };
        let wanted = [once(503), once(429), Rule::answering(200), Rule::default()];
        assert_eq!(rules(&["--answer", "503,429,200"]), wanted);
    }

    #[test]
    fn rules_about_a_type_come_before_those_about_all() {
        let found = rules(&["--answer", "500", "--answer", "domain.*=410", "--fail-first", "2"]);
        assert_eq!(found[0], Rule::answering(503).first(2));
        let prefix = "domain.".to_owned();
        assert_eq!(found[1].matching.event_type, Some(Pattern::Prefix { prefix }));
        assert_eq!((found[1].status, found[2].status), (Some(410), Some(500)));
    }

    #[test]
    fn a_redirect_is_a_status_with_a_location() {
        let found = rules(&["--redirect", "http://else/", "--header", "Retry-After: 3"]);
        assert_eq!(found[0].status, Some(302));
        assert_eq!(
            (
                found[0].headers["Location"].as_str(),
                found[0].headers["Retry-After"].as_str()
            ),
            ("http://else/", "3")
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for arguments in [
            &["--answer", "abc"][..],
            &["--answer", "domain.created=42"],
            &["--hang", "--close"],
            &["--hang", "--answer", "500"],
            &["--byte-millis", "5"],
            &["--body-bytes", "many"],
            &["--header", "no colon"],
        ] {
            let parsed = Line::try_parse_from([&["receive"], arguments].concat());
            assert!(parsed.is_err(), "{arguments:?}");
        }
    }
}
