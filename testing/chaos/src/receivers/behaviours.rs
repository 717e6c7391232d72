//! Behaviours that come and go and may overlap, and the rules of the simulators that follow from them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::plan::Behaviour;

/// Those in force.
#[derive(Debug, Default)]
pub(super) struct Behaviours(Mutex<(u64, BTreeMap<u64, Behaviour>)>);

impl Behaviours {
    fn open(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Behaviour>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what to end it by.
    pub(super) fn begin(&self, behaviour: Behaviour) -> u64 {
        let mut behaviours = self.open();
        behaviours.0 += 1;
        let number = behaviours.0;
        behaviours.1.insert(number, behaviour);
        number
    }

    pub(super) fn end(&self, number: u64) {
        self.open().1.remove(&number);
    }

    pub(super) fn clear(&self) {
        self.open().1.clear();
    }

    /// The latest one.
    pub(super) fn present(&self) -> Option<Behaviour> {
        self.open().1.values().next_back().copied()
    }
}

/// What Swrve does: some users are refused, whatever its behaviour is otherwise, unless it answers no request.
pub(super) fn swrve_rules(behaviour: Option<Behaviour>) -> Vec<simulators::swrve::Rule> {
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
    match behaviour {
        None => return vec![refused],
        Some(Behaviour::Answers(status)) => rule.status = Some(status),
        Some(Behaviour::Hangs) => rule.hang = true,
        Some(Behaviour::HangsUp) => rule.drop = true,
        Some(Behaviour::IsSlow(millis)) => {
            rule.delay_millis = Some(millis);
            return vec![refused, rule];
        }
    }
    vec![rule]
}

/// What endpoints do: what is in their character, unless they share a behaviour.
pub(super) fn endpoint_rules(
    behaviour: Option<Behaviour>,
    characters: &[simulators::receiver::Rule],
) -> Vec<simulators::receiver::Rule> {
    let mut rule = simulators::receiver::Rule::default();
    match behaviour {
        None => return characters.to_vec(),
        Some(Behaviour::Answers(status)) => rule.status = Some(status),
        Some(Behaviour::Hangs) => rule.hang = true,
        Some(Behaviour::HangsUp) => rule.drop = true,
        Some(Behaviour::IsSlow(millis)) => {
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
    fn the_latest_behaviour_that_has_not_ended_is_in_force() {
        let behaviours = Behaviours::default();
        let first = behaviours.begin(Behaviour::Hangs);
        let second = behaviours.begin(Behaviour::HangsUp);
        assert_eq!(behaviours.present(), Some(Behaviour::HangsUp));
        behaviours.end(second);
        assert_eq!(behaviours.present(), Some(Behaviour::Hangs));
        behaviours.end(first);
        assert_eq!(behaviours.present(), None);
    }
}
