//! Query strings of lists: cursors, limits, filters, times. What is read can be asked of the database, and a cursor leads
//! back to where it was made.

use http_api::paging;
use store::DeadLetterFilter;

use crate::given::{can_be_stored, is_explained, now};

/// Checks the property. The first byte chooses the list.
pub fn check(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    match choice % 4 {
        0 => cursors(text),
        1 => dead_letters(text),
        2 => audit(text),
        _ => notifications(text),
    }
}

fn cursors(text: &str) {
    match paging::read_at(Some(text)) {
        Ok(entry) => {
            let entry = entry.expect("a cursor was given");
            let again = paging::read_at(Some(&paging::write_at(entry)));
            assert_eq!(again.ok().flatten(), Some(entry));
        }
        Err(problem) => is_explained(&problem),
    }
    match paging::read_id(Some(text)) {
        Ok(id) => {
            let written = paging::write_id(id.expect("a cursor was given"));
            assert_eq!(paging::read_id(Some(&written)).ok(), Some(id));
        }
        Err(problem) => is_explained(&problem),
    }
}

fn dead_letters(query: &str) {
    match operator_api::fuzzing::dead_letters(query) {
        Some(Ok(part)) => {
            assert!((1..=200).contains(&part.limit));
            is_askable(&part.filter);
            assert!(
                part.after
                    .is_none_or(|(at, _)| at.timestamp() < 9_000_000_000_000)
            );
        }
        Some(Err(problem)) => is_explained(&problem),
        None => {}
    }
}

/// A filter that can be asked, and that restricts where it says something.
pub(crate) fn is_askable(filter: &DeadLetterFilter) {
    let texts = [
        &filter.fingerprint,
        &filter.target,
        &filter.reseller,
        &filter.event_type,
        &filter.prototype,
    ];
    for text in texts.into_iter().flatten() {
        assert!(
            !text.is_empty() && text.len() <= 1_000 && !text.contains('\0'),
            "{text:?}"
        );
    }
    assert_ne!(filter.fingerprint.as_deref(), Some("*"));
    let times = [filter.since, filter.until];
    assert!(times.into_iter().flatten().all(can_be_stored), "{times:?}");
    assert!(
        filter
            .since
            .zip(filter.until)
            .is_none_or(|(since, until)| since < until)
    );
    let written = filter.to_json();
    let said = written.as_object().map_or(0, serde_json::Map::len);
    let restricting = texts.iter().filter(|text| text.is_some()).count()
        + times.iter().filter(|time| time.is_some()).count()
        + [
            filter.lane.is_some(),
            filter.state.is_some(),
            filter.reason.is_some(),
            filter.subscription.is_some(),
        ]
        .into_iter()
        .filter(|there| *there)
        .count();
    assert_eq!(said, restricting, "{written}");
}

fn audit(query: &str) {
    match operator_api::fuzzing::audit(query) {
        Some(Ok(filter)) => {
            let texts = [&filter.actor, &filter.subject];
            assert!(texts.into_iter().flatten().all(|text| !text.contains('\0')));
            assert!(filter.actions.is_none_or(|actions| !actions.is_empty()));
            assert!(
                [filter.since, filter.until]
                    .into_iter()
                    .flatten()
                    .all(can_be_stored)
            );
        }
        Some(Err(problem)) => is_explained(&problem),
        None => {}
    }
}

fn notifications(query: &str) {
    match reseller_portal::fuzzing::notifications(query, now()) {
        Some(Ok(filter)) => {
            assert!((1..=200).contains(&filter.limit));
            assert!(
                filter
                    .event_types
                    .iter()
                    .all(|name| domain::subscription::is_event_type(name))
            );
            // Both become identifiers, which have a place for every time.
            assert!(filter.since >= now() - chrono::TimeDelta::days(7), "{filter:?}");
        }
        Some(Err(problem)) => is_explained(&problem),
        None => {}
    }
}
