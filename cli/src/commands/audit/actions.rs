//! The actions that the audit log knows, and which of them may have been meant.

use domain::nearest;

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
    ("portal-link", &["create"]),
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

/// Every action, such as `dead-letter.replay`.
pub(crate) fn all() -> impl Iterator<Item = String> {
    let of_kind = |(kind, verbs): (&'static str, &'static [&'static str])| {
        verbs.iter().map(move |verb| format!("{kind}.{verb}"))
    };
    ACTIONS.into_iter().flat_map(of_kind)
}

/// Which actions may have been meant, to be added to a sentence; nothing when there are such actions.
pub(super) fn hint(asked: &str) -> String {
    let known: Vec<String> = all().collect();
    let word = asked.to_lowercase();
    let is_asked = |action: &String| {
        let rest = action.strip_prefix(asked);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if known.iter().any(is_asked) {
        return String::new();
    }
    let with_it: Vec<&str> = known
        .iter()
        .map(String::as_str)
        .filter(|action| action.contains(&word))
        .collect();
    if !word.is_empty() && !with_it.is_empty() {
        return format!("; actions with {word} in their names: {}", with_it.join(", "));
    }
    let kinds = ACTIONS.into_iter().map(|(kind, _)| kind);
    match nearest::question(asked, known.iter().map(String::as_str).chain(kinds)) {
        nothing if nothing.is_empty() => {
            "; no action has this name: `postrider audit --newer-than 1d` shows some".to_owned()
        }
        question => question,
    }
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn a_part_of_a_name_leads_to_the_actions_that_have_it_and_a_slip_to_the_nearest() {
        assert_eq!(
            hint("retire"),
            "; actions with retire in their names: event-type.retire"
        );
        assert_eq!(
            hint("Pause"),
            "; actions with pause in their names: dead-letter-job.pause, lane.pause, reseller.pause, subscription.pause"
        );
        assert!(hint("lane.puase").starts_with("; did you mean lane.pause"));
        assert!(hint("xyz").contains("no action has this name"));
        for known in ["lane.pause", "lane", "dead-letter"] {
            assert_eq!(hint(known), "", "{known}");
        }
    }
}
