//! Bodies of the operator API: jobs and notes. A job says whose dead letters it is about, and each is chosen once.

use std::collections::HashSet;

use store::DeadLetterSelection;

use crate::given::is_explained;
use crate::list_query::is_askable;

/// Checks the property.
pub fn check(body: &[u8]) {
    match operator_api::fuzzing::job(body) {
        Ok(job) => {
            assert!((1..=10_000).contains(&job.per_second));
            match &job.selection {
                DeadLetterSelection::DeadLetters(ids) => {
                    assert!((1..=10_000).contains(&ids.len()));
                    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
                }
                DeadLetterSelection::Matching(filter) => {
                    is_askable(filter);
                    assert_eq!(filter.state, Some(store::DeadLetterState::Open));
                }
            }
        }
        Err(problem) => is_explained(&problem),
    }
    let Ok(text) = std::str::from_utf8(body) else {
        return;
    };
    match operator_api::fuzzing::noted(Some(text)) {
        Ok(Some(note)) => assert!(!note.is_empty() && note.len() <= 2_000 && !note.contains('\0')),
        Ok(None) => assert!(text.trim().is_empty()),
        Err(problem) => is_explained(&problem),
    }
}
