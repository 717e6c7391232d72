//! Which status is answered to which notification: sequences of which the last one stays.

use std::sync::{Mutex, PoisonError};

use simulators::receiver::Pattern;

pub(super) use crate::commands::receive::Answers;

/// The sequences, and how far each of them is.
#[derive(Debug)]
pub(super) struct Statuses {
    sequences: Vec<(Answers, Mutex<usize>)>,
}

impl Statuses {
    /// Those about a type come before those about all.
    pub(super) fn new(mut answers: Vec<Answers>) -> Self {
        answers.sort_by_key(|answers| answers.event_type.is_none());
        let sequences = answers.into_iter().map(|answers| (answers, Mutex::new(0)));
        Self {
            sequences: sequences.collect(),
        }
    }

    /// The status for a notification of this type, if any is chosen.
    pub(super) fn next(&self, event_type: &str) -> Option<u16> {
        let (answers, place) = self
            .sequences
            .iter()
            .find(|(answers, _)| applies(answers, event_type))?;
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        let status = answers.statuses.get(*place).or(answers.statuses.last()).copied();
        *place = place.saturating_add(1);
        status
    }
}

fn applies(answers: &Answers, event_type: &str) -> bool {
    match &answers.event_type {
        None => true,
        Some(Pattern::Exact(exact)) => event_type == exact,
        Some(Pattern::Prefix { prefix }) => event_type.starts_with(prefix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_status_of_a_sequence_stays_and_types_come_first() {
        let answers = ["500,500,200", "contact.*=410"].map(|text| text.parse().unwrap());
        let statuses = Statuses::new(answers.to_vec());
        let given = |event_type: &str| statuses.next(event_type);
        assert_eq!(
            [given("a"), given("contact.x"), given("a")],
            [Some(500), Some(410), Some(500)]
        );
        assert_eq!(
            [given("a"), given("a"), given("contact.y")],
            [Some(200), Some(200), Some(410)]
        );
        assert_eq!(Statuses::new(Vec::new()).next("a"), None);
    }
}
