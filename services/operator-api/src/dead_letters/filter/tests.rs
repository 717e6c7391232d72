//! Every word that means nothing, and the one that is not said.

use super::*;

#[test]
fn a_word_that_means_nothing_is_named_with_what_is_possible() {
    let none = FilterText::default;
    let long = "x".repeat(TEXT_MAX_BYTES + 1);
    for (words, name, detail) in [
        (
            FilterText {
                lane: Some("fast"),
                ..none()
            },
            "lane",
            "push, reseller",
        ),
        (
            FilterText {
                state: Some("open"),
                ..none()
            },
            "state",
            "OPEN, REPLAYED, DISCARDED, or ALL",
        ),
        (
            FilterText {
                reason: Some(""),
                ..none()
            },
            "reason",
            "FAILED, GIVEN_UP, REJECTED, MALFORMED",
        ),
        (
            FilterText {
                subscription: Some("acme"),
                ..none()
            },
            "subscription",
            "identifier",
        ),
        (
            FilterText {
                event_type: Some("Domain"),
                ..none()
            },
            "eventType",
            "domain.created",
        ),
        (
            FilterText {
                prototype: Some(&long),
                ..none()
            },
            "prototype",
            "1000 bytes",
        ),
        (
            FilterText {
                prototype: Some(&long[..=PROTOTYPE_MAX]),
                ..none()
            },
            "prototype",
            "200 characters",
        ),
        (
            FilterText {
                target: Some("a\0"),
                ..none()
            },
            "target",
            "U+0000",
        ),
        (
            FilterText {
                target: Some(""),
                ..none()
            },
            "target",
            "empty",
        ),
        (
            FilterText {
                fingerprint: Some("*"),
                ..none()
            },
            "fingerprint",
            "before *",
        ),
        (
            FilterText {
                job: Some("the last one"),
                ..none()
            },
            "job",
            "identifier of a job",
        ),
        (
            FilterText {
                until: "-9999-01-01T00:00:00Z".parse().ok(),
                ..none()
            },
            "until",
            "1970",
        ),
        (
            FilterText {
                since: Some(DateTime::UNIX_EPOCH),
                until: Some(DateTime::UNIX_EPOCH),
                ..none()
            },
            "until",
            "later than since",
        ),
    ] {
        let (_, wrong) = words.read();
        assert_eq!((wrong.len(), &*wrong[0].field), (1, name));
        assert!(wrong[0].detail.contains(detail), "{}", wrong[0].detail);
        assert_ne!(wrong[0].code, FieldCode::Refused, "{name}");
    }
}

#[test]
fn what_is_open_is_meant_unless_something_else_is_said() {
    let state = |state| {
        FilterText {
            state,
            ..FilterText::default()
        }
        .read()
        .0
        .state
    };
    assert_eq!(state(None), Some(DeadLetterState::Open));
    assert_eq!(state(Some("ALL")), None);
    assert_eq!(state(Some("DISCARDED")), Some(DeadLetterState::Discarded));
    let of_job = FilterText {
        job: Some("019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d"),
        ..FilterText::default()
    };
    let filter = of_job.checked().unwrap();
    assert_eq!(
        (filter.state, filter.job.is_some()),
        (None, true),
        "what a job has resolved is not open"
    );
}
