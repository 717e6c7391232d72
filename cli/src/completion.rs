//! The values that a shell offers for an argument: event types, subscriptions, jobs, kinds of failure and resellers, as the APIs know them.
//!
//! A shell asks in the middle of typing: what does not answer at once, or not as it should, offers nothing and says nothing.

use std::time::Duration;

use clap::{Arg, Args, Command, FromArgMatches};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use serde_json::Value;

use crate::api::Api;
use crate::catalogue::Catalogue;
use crate::operator::OperatorArgs;
use crate::output::harmless;
use crate::portal::{PAGE_MAX, Portal, PortalArgs};
use crate::shown::{cell, items};
use crate::web;

/// The variable by which a script asks, see `postrider completions`.
pub(crate) const VARIABLE: &str = "POSTRIDER_COMPLETE";
/// As long as a person waits for a key that was pressed.
const LIMIT: Duration = Duration::from_secs(1);
/// Commands for operators that take a subscription.
const OPERATORS: [&str; 6] = ["cancel", "dead-letters", "mails", "pause", "quotas", "resume"];

/// What the values of an argument are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    EventTypes,
    Fingerprints,
    Jobs,
    Resellers,
    /// Of a reseller, or of all for operators.
    Subscriptions {
        of_all: bool,
    },
}

/// The command line with the values of its arguments.
pub(crate) fn with_values(command: Command) -> Command {
    beneath(command, &[])
}

fn beneath(command: Command, above: &[String]) -> Command {
    let command = command.mut_args(|argument| match values(above, &argument) {
        Some(values) => argument.add(ArgValueCandidates::new(move || candidates(values))),
        None => argument,
    });
    command.mut_subcommands(|below| {
        let path = [above, &[below.get_name().to_owned()]].concat();
        beneath(below, &path)
    })
}

/// What the values of an argument of the command at this path are.
fn values(path: &[String], argument: &Arg) -> Option<Values> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let subscriptions = Values::Subscriptions {
        of_all: path.first().is_some_and(|first| OPERATORS.contains(first)),
    };
    match argument.get_long() {
        Some("event-type" | "event-types" | "type") => return Some(Values::EventTypes),
        Some("fingerprint") => return Some(Values::Fingerprints),
        Some("job") => return Some(Values::Jobs),
        Some("reseller") => return Some(Values::Resellers),
        Some("subscription") => return Some(subscriptions),
        Some(_) => return None,
        None => {}
    }
    match (path.as_slice(), argument.get_id().as_str()) {
        (_, "event_type") | (["event-types", "show" | "retire"], "name") => Some(Values::EventTypes),
        (_, "subscription" | "subscriptions")
        | (["subscriptions", ..] | ["pause" | "resume", "subscription"], "id") => Some(subscriptions),
        (["jobs", ..], "id") => Some(Values::Jobs),
        (["pause" | "resume", "reseller"], _) => Some(Values::Resellers),
        _ => None,
    }
}

fn candidates(values: Values) -> Vec<CompletionCandidate> {
    lifecycle::crypto::install_default_provider();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let found = runtime.ok().and_then(|runtime| {
        let found = runtime.block_on(async { tokio::time::timeout(LIMIT, find(values)).await });
        // What has not answered is not waited for, the look-up of a name neither.
        runtime.shutdown_background();
        found.ok()?.ok()
    });
    let found = found.unwrap_or_else(|| match values {
        // Also known without any server.
        Values::EventTypes => built_in(),
        _ => Vec::new(),
    });
    let safe = found.into_iter().filter(|(value, _)| is_safe(value));
    safe.map(|(value, about)| CompletionCandidate::new(value).help(Some(harmless(&about).into())))
        .collect()
}

/// Whether a shell takes a value for nothing but itself: some of them come from strangers, and a shell inserts them as they are.
fn is_safe(value: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./@+,%".contains(&byte);
    value.starts_with(|c: char| c.is_ascii_alphanumeric()) && value.bytes().all(is_plain)
}

fn built_in() -> Vec<(String, String)> {
    let types = Catalogue::built_in().map(|catalogue| catalogue.types);
    let types = types.unwrap_or_default().into_iter();
    types.map(|of| (of.name, of.description)).collect()
}

/// Values with what is said of each.
async fn find(values: Values) -> anyhow::Result<Vec<(String, String)>> {
    let some = [("limit", "50")];
    Ok(match values {
        Values::EventTypes => {
            let types = portal()?.catalogue().await?.types.into_iter();
            types.map(|of| (of.name, of.description)).collect()
        }
        Values::Fingerprints => {
            let groups: Value = operator()?.get("/dead-letters/groups", &some).await?;
            told(&groups, "/fingerprint", &["/count", "/target"])
        }
        Values::Jobs => {
            let jobs: Value = operator()?.get("/dead-letters/jobs", &some).await?;
            told(&jobs, "/id", &["/action", "/status", "/createdAt"])
        }
        Values::Resellers => {
            let resellers: Value = operator()?.get("/resellers", &[("limit", PAGE_MAX)]).await?;
            told(&resellers, "/id", &[])
        }
        Values::Subscriptions { of_all } => match portal() {
            Ok(portal) if !of_all => {
                let list: Value = portal.get("/subscriptions", &()).await?;
                told(&list, "/id", &["/description", "/url", "/state"])
            }
            _ => {
                let list: Value = operator()?.get("/subscriptions", &[("limit", PAGE_MAX)]).await?;
                told(&list, "/id", &["/resellerId", "/url", "/state"])
            }
        },
    })
}

fn told(document: &Value, value: &str, about: &[&str]) -> Vec<(String, String)> {
    let about = |item: &Value| {
        let cells = about.iter().map(|pointer| cell(item, pointer));
        let cells: Vec<String> = cells.filter(|cell| !cell.is_empty()).collect();
        cells.join(" ")
    };
    items(&document["items"])
        .iter()
        .map(|item| (cell(item, value), about(item)))
        .collect()
}

fn operator() -> anyhow::Result<Api> {
    from_environment::<OperatorArgs>()?.connect()
}

fn portal() -> anyhow::Result<Portal> {
    Portal::connect(&from_environment::<PortalArgs>()?)
}

/// Addresses and keys as every command has them; what stands on the line that is being typed is not looked at.
fn from_environment<T: Args + FromArgMatches>() -> anyhow::Result<T> {
    web::say_nothing_of_what_is_in_the_clear();
    let matches = T::augment_args(Command::new("postrider")).try_get_matches_from(["postrider"])?;
    Ok(T::from_arg_matches(&matches)?)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    fn of(line: &str, argument: &str) -> Option<Values> {
        let path: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let command = Cli::command();
        let command = path.iter().fold(&command, |above, name| {
            above.find_subcommand(name).expect("a command")
        });
        let found = command.get_arguments().find(|it| it.get_id() == argument);
        values(&path, found.unwrap_or_else(|| panic!("{line} has no {argument}")))
    }

    #[test]
    fn each_argument_is_offered_what_it_takes() {
        let subscriptions = |of_all| Some(Values::Subscriptions { of_all });
        for (line, argument, offered) in [
            ("trigger", "event_type", Some(Values::EventTypes)),
            ("events show", "event_type", Some(Values::EventTypes)),
            ("event-types show", "name", Some(Values::EventTypes)),
            ("subscriptions create", "event_types", Some(Values::EventTypes)),
            ("event send", "event_type", Some(Values::EventTypes)),
            ("subscriptions show", "id", subscriptions(false)),
            ("replay", "subscription", subscriptions(false)),
            ("tail", "subscriptions", subscriptions(false)),
            ("pause subscription", "id", subscriptions(true)),
            ("dead-letters list", "subscription", subscriptions(true)),
            ("dead-letters replay", "fingerprint", Some(Values::Fingerprints)),
            ("jobs show", "id", Some(Values::Jobs)),
            ("dead-letters list", "job", Some(Values::Jobs)),
            ("event list", "reseller", Some(Values::Resellers)),
            ("notifications show", "id", None),
            ("keys create", "name", None),
        ] {
            assert_eq!(of(line, argument), offered, "{line}: {argument}");
        }
    }

    #[test]
    fn a_shell_is_offered_nothing_that_it_would_obey() {
        for (value, safe) in [
            ("delivery/http/503/html", true),
            ("domain.created", true),
            ("01a1fd84-191a-7187-8c92-644d9a28fa8b", true),
            ("swrve/$(reboot)", false),
            ("a b", false),
            ("x;y", false),
            ("-rf", false),
            ("", false),
        ] {
            assert_eq!(is_safe(value), safe, "{value}");
        }
    }
}
