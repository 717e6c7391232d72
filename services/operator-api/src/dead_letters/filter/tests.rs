//! Every word that means nothing, and the one that is not said.

use super::*;

#[test]
fn a_word_that_means_nothing_is_named_with_what_is_possible() {
    let none = FilterWords::default;
    let long = "x".repeat(TEXT_MAX_BYTES + 1);
    for (words, name, detail) in [
        (
            FilterWords {
                lane: Some("fast"),
                ..none()
            },
            "lane",
            "push, reseller",
        ),
        (
            FilterWords {
                state: Some("open"),
                ..none()
            },
            "state",
            "OPEN, REPLAYED, DISCARDED, or ALL",
        ),
        (
            FilterWords {
                reason: Some(""),
                ..none()
            },
            "reason",
            "FAILED, GIVEN_UP, REJECTED, MALFORMED",
        ),
        (
            FilterWords {
                subscription: Some("acme"),
                ..none()
            },
            "subscription",
            "identifier",
        ),
        (
            FilterWords {
                event_type: Some("Domain"),
                ..none()
            },
            "eventType",
            "domain.created",
        ),
        (
            FilterWords {
                prototype: Some(&long),
                ..none()
            },
            "prototype",
            "1000 bytes",
        ),
        (
            FilterWords {
                prototype: Some(&long[..=PROTOTYPE_MAX]),
                ..none()
            },
            "prototype",
            "200 characters",
        ),
        (
            FilterWords {
                target: Some("a\0"),
                ..none()
            },
            "target",
            "U+0000",
        ),
        (
            FilterWords {
                target: Some(""),
                ..none()
            },
            "target",
            "empty",
        ),
        (
            FilterWords {
                fingerprint: Some("*"),
                ..none()
            },
            "fingerprint",
            "before *",
        ),
        (
            FilterWords {
                until: "-9999-01-01T00:00:00Z".parse().ok(),
                ..none()
            },
            "until",
            "1970",
        ),
        (
            FilterWords {
                since: Some(DateTime::UNIX_EPOCH),
                until: Some(DateTime::UNIX_EPOCH),
                ..none()
            },
            "until",
            "later than since",
        ),
    ] {
        let wrong = words.read().unwrap_err();
        assert_eq!(wrong.name, name);
        assert!(wrong.detail.contains(detail), "{}", wrong.detail);
    }
}

#[test]
fn what_is_open_is_meant_unless_something_else_is_said() {
    let state = |state| {
        FilterWords {
            state,
            ..FilterWords::default()
        }
        .read()
        .unwrap()
        .state
    };
    assert_eq!(state(None), Some(DeadLetterState::Open));
    assert_eq!(state(Some("ALL")), None);
    assert_eq!(state(Some("DISCARDED")), Some(DeadLetterState::Discarded));
}
