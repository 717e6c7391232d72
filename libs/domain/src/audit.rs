//! The actions that the audit log knows, and which of them a name means.
//!
//! It deliberately decides nothing about what is recorded: an act names its action where it is done.

use crate::nearest;

/// Kinds of things, with what is done to them.
const ACTIONS: [(&str, &[&str]); 21] = [
    ("api-key", &["create", "rotate", "revoke"]),
    ("broker", &["rebuild", "rebuilt"]),
    ("dead-letter", &["replay", "discard"]),
    ("dead-letter-group", &["note"]),
    (
        "dead-letter-job",
        &["create", "pause", "resume", "cancel", "pace", "complete"],
    ),
    ("endpoint", &["check"]),
    ("event-type", &["put", "retire"]),
    ("lane", &["pause", "resume", "retry-now"]),
    ("mails", &["retry"]),
    ("notification", &["cancel", "cancel-many", "resend", "retry-now"]),
    ("portal-link", &["create", "revoke"]),
    ("portal-visit", &["begin", "end"]),
    ("push", &["cancel", "cancel-many", "retry-now"]),
    ("quota-request", &["create", "withdraw", "approve", "deny"]),
    ("recover", &["start", "end"]),
    ("replay", &["create", "cancel"]),
    ("rescue", &["start", "end"]),
    ("reseller", &["pause", "resume"]),
    ("secret", &["create", "view", "revoke"]),
    (
        "subscription",
        &[
            "create",
            "change",
            "activate",
            "deactivate",
            "verify",
            "pause",
            "resume",
            "delete",
            "test",
            "resend",
            "retry-now",
            "limits",
            "ask-address",
            "confirm-address",
        ],
    ),
    ("visit", &["begin", "break-glass", "end", "revoke"]),
];

/// The kinds of things of whose acts a reseller is told.
const OF_RESELLERS: [&str; 9] = [
    "endpoint",
    "notification",
    "portal-link",
    "portal-visit",
    "quota-request",
    "replay",
    "reseller",
    "secret",
    "subscription",
];

/// Words by which an action is found beside its own.
const FURTHER_WORDS: [(&str, &str); 1] = [("subscription.limits", "quota")];
/// How much of a name that means nothing is repeated.
const REPEATED_MAX: usize = 60;

/// Every action, such as `dead-letter.replay`.
pub fn actions() -> impl Iterator<Item = String> {
    let of_kind = |(kind, verbs): (&'static str, &'static [&'static str])| {
        verbs.iter().map(move |verb| format!("{kind}.{verb}"))
    };
    ACTIONS.into_iter().flat_map(of_kind)
}

/// The actions that a name means: those of this name or of this kind of things, such as `dead-letter`; where there are none, all that have a
/// word that begins with it, such as `quota`. None when it means nothing.
pub fn meant(name: &str) -> Vec<String> {
    let name = name.to_lowercase();
    if name.is_empty() {
        return Vec::new();
    }
    let is_named = |action: &String| {
        let rest = action.strip_prefix(&name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let named: Vec<String> = actions().filter(is_named).collect();
    if !named.is_empty() {
        return named;
    }
    actions().filter(|action| begins_a_word(action, &name)).collect()
}

fn begins_a_word(action: &str, name: &str) -> bool {
    let further = FURTHER_WORDS.into_iter().filter(|(of, _)| *of == action);
    let mut words = action.split('.').chain(further.map(|(_, word)| word));
    action.starts_with(name) || words.any(|word| word.starts_with(name))
}

/// What is said of a name that means no action: those that may have been meant, and the kinds of things that there are.
pub fn unknown(name: &str) -> String {
    unknown_among(name, &ACTIONS.map(|(kind, _)| kind))
}

/// The same for a reseller, in whose list there are acts on few kinds of things alone.
pub fn unknown_to_reseller(name: &str) -> String {
    unknown_among(name, &OF_RESELLERS)
}

fn unknown_among(name: &str, kinds: &[&'static str]) -> String {
    let name: String = name
        .chars()
        .filter(|char| !char.is_control())
        .take(REPEATED_MAX)
        .collect();
    let is_of_these =
        |action: &String| matches!(action.split_once('.'), Some((kind, _)) if kinds.contains(&kind));
    let known: Vec<String> = actions().filter(is_of_these).collect();
    let word = name.to_lowercase();
    let with_it: Vec<&str> = known
        .iter()
        .map(String::as_str)
        .filter(|action| !word.is_empty() && action.contains(&word))
        .collect();
    let hint = if with_it.is_empty() {
        nearest::question(
            &name,
            known.iter().map(String::as_str).chain(kinds.iter().copied()),
        )
    } else {
        format!("; did you mean {}?", with_it.join(", "))
    };
    let end = if hint.is_empty() { "." } else { "" };
    format!(
        "must name actions, and there is none called {name:?}{hint}{end} There are actions on {}",
        kinds.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_an_action_a_kind_of_things_or_what_has_a_word_that_begins_with_it() {
        assert_eq!(meant("lane.pause"), ["lane.pause"]);
        assert_eq!(
            meant("dead-letter"),
            ["dead-letter.replay", "dead-letter.discard"]
        );
        assert_eq!(
            meant("Quota"),
            [
                "quota-request.create",
                "quota-request.withdraw",
                "quota-request.approve",
                "quota-request.deny",
                "subscription.limits"
            ]
        );
        assert_eq!(
            meant("pause"),
            [
                "dead-letter-job.pause",
                "lane.pause",
                "reseller.pause",
                "subscription.pause"
            ]
        );
        assert_eq!(meant("event-type.re"), ["event-type.retire"]);
        for nothing in ["", "lane.puase", "letter", "."] {
            assert_eq!(meant(nothing), [] as [&str; 0], "{nothing}");
        }
    }

    #[test]
    fn a_name_that_means_nothing_leads_to_the_nearest_and_to_all_kinds() {
        let said = unknown("lane.puase");
        assert!(said.contains("\"lane.puase\"; did you mean lane.pause"), "{said}");
        assert!(unknown("group").contains("; did you mean dead-letter-group.note?"));
        let said = unknown("xyz\0");
        assert!(
            said.contains("\"xyz\". There are actions on api-key, broker"),
            "{said}"
        );
        assert!(said.ends_with("subscription, visit"), "{said}");
    }

    #[test]
    fn a_reseller_is_led_to_what_its_list_can_have_alone() {
        assert!(
            OF_RESELLERS
                .iter()
                .all(|kind| ACTIONS.iter().any(|(known, _)| known == kind))
        );
        let said = unknown_to_reseller("subscription.puase");
        assert!(said.contains("; did you mean subscription.pause"), "{said}");
        let said = unknown_to_reseller("group");
        assert!(
            said.ends_with(
                "none called \"group\". There are actions on endpoint, notification, portal-link, \
                            portal-visit, quota-request, replay, reseller, secret, subscription"
            ),
            "{said}"
        );
    }
}
