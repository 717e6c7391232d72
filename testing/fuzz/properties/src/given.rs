//! What properties have in common: the time at which they happen, and how they look at an answer.

use chrono::{DateTime, Utc};
use http_api::{Problem, ProblemKind};

/// The time at which everything happens: 2026-11-21T12:00:00.5Z.
pub(crate) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp_millis(1_795_262_400_500).expect("invariant: it is a time")
}

/// A refusal says what to mend: in words that are not empty and not endless, and for a field that is wrong by its name.
pub(crate) fn is_explained(problem: &Problem) {
    let shown = problem.example();
    let detail = shown["detail"].as_str().expect("a problem has a detail");
    assert!(!detail.trim().is_empty());
    let errors = shown["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert!(errors.len() <= 400, "{} errors", errors.len());
    for error in errors {
        let detail = error["detail"].as_str().expect("an error has a detail");
        assert!(!detail.trim().is_empty(), "{error}");
    }
    let told_by_field = problem.kind() == ProblemKind::MALFORMED_BODY;
    assert!(
        !told_by_field || errors.iter().all(|error| error["line"].is_u64()),
        "{shown}"
    );
    assert_ne!(problem.kind(), ProblemKind::INTERNAL, "{shown}");
}

/// Whether PostgreSQL has a place for a time, and RFC 3339 a way to write it.
pub(crate) fn can_be_stored(at: DateTime<Utc>) -> bool {
    let first = DateTime::parse_from_rfc3339("0000-01-01T00:00:00Z").expect("a time");
    let last = DateTime::parse_from_rfc3339("9999-12-31T23:59:59.999999999Z").expect("a time");
    (first..=last).contains(&at.fixed_offset())
}
