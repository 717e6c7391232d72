//! What there is to say when a filter matches nothing: the targets that there are, since one is easily written in another way.

use serde_json::Value;

use super::filter::{FilterArgs, has_path};
use crate::api::Api;
use crate::output;
use crate::shown::items;
use domain::nearest;

/// How many groups are looked at for targets.
const GROUPS: &str = "200";

/// How many targets are named where none is like the one that was given.
const NAMED: usize = 5;

/// What can be given as a target.
const MEANING: &str = "a target is a code of Swrve, the URL of an endpoint, or its scheme, host and port";

/// What may have been meant, to be added to a sentence; nothing when no target was given.
pub(super) async fn hint(api: &Api, filter: &FilterArgs) -> anyhow::Result<String> {
    let Some(target) = filter.target() else {
        return Ok(String::new());
    };
    let groups: Value = api.get("/dead-letters/groups", &[("limit", GROUPS)]).await?;
    let known = items(&groups["items"])
        .iter()
        .filter_map(|group| group["target"].as_str());
    Ok(output::harmless(&about(target, known)))
}

fn about<'a>(target: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.filter(|known| !known.is_empty()).collect();
    known.sort_unstable();
    known.dedup();
    // There are dead letters of it, which something else of the filter leaves out.
    if known.contains(&target) {
        return String::new();
    }
    // A target is scheme, host and port alone; of an endpoint people know its URL, or its host.
    let host = |known: &str| {
        known
            .split_once("://")
            .map_or(String::new(), |(_, host)| host.to_owned())
    };
    let looked_for = if has_path(target) {
        format!("; no subscription has the endpoint {target}")
    } else {
        String::new()
    };
    let is_part = |known: &&&str| {
        let begins = |known: &str| !known.is_empty() && target.starts_with(known);
        begins(known) || begins(&host(known)) || known.contains(target)
    };
    if let Some(same) = known.iter().find(is_part) {
        return format!(
            "{looked_for}; {MEANING}, such as {same}; --subscription names one endpoint of several on a host"
        );
    }
    let there_are = listed(&known);
    // Another port or address is another endpoint, however near it looks.
    let letters = |text: &str| text.chars().filter(|it| !it.is_ascii_digit()).collect::<String>();
    known.retain(|known| letters(known) != letters(target));
    match nearest::question(target, known) {
        nothing if nothing.is_empty() => format!("{looked_for}; {MEANING}{there_are}"),
        question => format!("{looked_for}{question}"),
    }
}

/// The targets that there are, the first few of many.
fn listed(known: &[&str]) -> String {
    let (named, others) = known.split_at(known.len().min(NAMED));
    match (named.join(", "), others.len()) {
        (named, _) if named.is_empty() => "; no open dead letter has a target".to_owned(),
        (named, 0) => format!("; open dead letters are of {named}"),
        (named, others) => {
            format!(
                "; open dead letters are of {named}, and {others} more, which `postrider dead-letters groups` lists"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MEANING, about, listed};

    const KNOWN: [&str; 3] = ["https://hooks.acme.example", "401", ""];

    #[test]
    fn a_url_leads_to_its_target_and_a_slip_to_the_nearest() {
        let said = |target| about(target, KNOWN.into_iter());
        for target in [
            "https://hooks.acme.example/postrider",
            "hooks.acme.example/postrider",
            "hooks.acme.example",
        ] {
            assert!(
                said(target).contains("such as https://hooks.acme.example;"),
                "{target}"
            );
        }
        assert_eq!(
            said("https://hooks.acme.exampel"),
            "; did you mean https://hooks.acme.example?"
        );
        assert_eq!(
            said("https://hooks.acme.example"),
            "",
            "left out by something else"
        );
        let meaning = format!("; {MEANING}; open dead letters are of 401, https://hooks.acme.example");
        assert_eq!(said("https://elsewhere.test:9999"), meaning);
        let known = ["http://127.0.0.1:18333"].into_iter();
        assert_eq!(
            about("http://127.0.0.1:29802", known),
            format!("; {MEANING}; open dead letters are of http://127.0.0.1:18333"),
            "another endpoint"
        );
        assert_eq!(
            said("https://elsewhere.test/hook"),
            format!("; no subscription has the endpoint https://elsewhere.test/hook{meaning}")
        );
    }

    #[test]
    fn of_many_targets_the_first_few_are_named() {
        assert_eq!(
            listed(&["1", "2", "3", "4", "5", "6", "7"]),
            "; open dead letters are of 1, 2, 3, 4, 5, and 2 more, which `postrider dead-letters groups` lists"
        );
        assert_eq!(listed(&[]), "; no open dead letter has a target");
    }
}
