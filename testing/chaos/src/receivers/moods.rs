//! Moods that come and go and may overlap, and the rules of the simulators that follow from them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::plan::Mood;

/// Those in force.
#[derive(Debug, Default)]
pub(super) struct Moods(Mutex<(u64, BTreeMap<u64, Mood>)>);

impl Moods {
    fn open(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Mood>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what to end it by.
    pub(super) fn begin(&self, mood: Mood) -> u64 {
        let mut moods = self.open();
        moods.0 += 1;
        let number = moods.0;
        moods.1.insert(number, mood);
        number
    }

    pub(super) fn end(&self, number: u64) {
        self.open().1.remove(&number);
    }

    pub(super) fn clear(&self) {
        self.open().1.clear();
    }

    /// The latest one.
    pub(super) fn present(&self) -> Option<Mood> {
        self.open().1.values().next_back().copied()
    }
}

/// What Swrve does: some users are refused, whatever its mood is otherwise, unless it answers no request.
pub(super) fn swrve_rules(mood: Option<Mood>) -> Vec<simulators::swrve::Rule> {
    let refused = simulators::swrve::Rule {
        matching: simulators::swrve::Match {
            user: Some(simulators::swrve::Pattern::Prefix {
                prefix: "refused-".to_owned(),
            }),
            ..simulators::swrve::Match::default()
        },
        status: Some(400),
        ..simulators::swrve::Rule::default()
    };
    let mut rule = simulators::swrve::Rule::default();
    match mood {
        None => return vec![refused],
        Some(Mood::Answers(status)) => rule.status = Some(status),
        Some(Mood::Hangs) => rule.hang = true,
        Some(Mood::HangsUp) => rule.drop = true,
        Some(Mood::IsSlow(millis)) => {
            rule.delay_millis = Some(millis);
            return vec![refused, rule];
        }
    }
    vec![rule]
}

/// What endpoints do: what is in their character, unless they share a mood.
pub(super) fn endpoint_rules(
    mood: Option<Mood>,
    characters: &[simulators::receiver::Rule],
) -> Vec<simulators::receiver::Rule> {
    let mut rule = simulators::receiver::Rule::default();
    match mood {
        None => return characters.to_vec(),
        Some(Mood::Answers(status)) => rule.status = Some(status),
        Some(Mood::Hangs) => rule.hang = true,
        Some(Mood::HangsUp) => rule.drop = true,
        Some(Mood::IsSlow(millis)) => {
            rule.delay_millis = Some(millis);
            return [characters, &[rule]].concat();
        }
    }
    vec![rule]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_mood_that_has_not_ended_is_in_force() {
        let moods = Moods::default();
        let first = moods.begin(Mood::Hangs);
        let second = moods.begin(Mood::HangsUp);
        assert_eq!(moods.present(), Some(Mood::HangsUp));
        moods.end(second);
        assert_eq!(moods.present(), Some(Mood::Hangs));
        moods.end(first);
        assert_eq!(moods.present(), None);
    }
}
