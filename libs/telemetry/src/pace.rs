//! The sends of the push lane by the second, for two minutes: how many, the smallest gap between two starts, how many were in flight, and what
//! was answered.
//!
//! Metrics are added up over time, and tell of no single second. This is kept by the process that sends, and handed out with what it reports of
//! itself, so that nothing has to collect metrics to see the pace.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How many seconds are kept.
pub const SECONDS: i64 = 120;

/// What Swrve answered to a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// 2xx.
    Taken,
    /// A status from 400 to 499.
    Refused,
    /// Another status.
    Failed,
    /// Nothing: it could not be reached, or not in time.
    Missing,
}

impl Answer {
    /// The class of a status.
    pub fn of(status: u16) -> Self {
        match status {
            200..=299 => Self::Taken,
            400..=499 => Self::Refused,
            _ => Self::Failed,
        }
    }
}

/// How many answers came of each class, in the order of [`Answer`].
pub type Answers = [u32; 4];

/// A second in which something was sent, or answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Second {
    /// Its beginning, in seconds since 1970, by the clock of the host.
    pub at: i64,
    /// How many sends were started in it.
    pub sends: u32,
    /// The smallest gap between the start of one of them and the start before.
    pub smallest_gap: Option<Duration>,
    /// Most sends that were in flight when one was started.
    pub in_flight: u32,
    /// What was answered in it, whenever that was sent.
    pub answers: Answers,
}

static PACE: Mutex<VecDeque<Second>> = Mutex::new(VecDeque::new());

/// Notes a send that was started at `at`, a time in seconds since 1970.
pub fn note(at: i64, gap: Option<Duration>, in_flight: u32) {
    let mut kept = PACE.lock().unwrap_or_else(PoisonError::into_inner);
    add(&mut kept, at, gap, in_flight);
}

/// Notes an answer that came at `at`.
pub fn note_answer(at: i64, answer: Answer) {
    let mut kept = PACE.lock().unwrap_or_else(PoisonError::into_inner);
    add_answer(&mut kept, at, answer);
}

/// The seconds of the last two minutes before `now` in which something was sent or answered, the oldest first.
pub fn of_late(now: i64) -> Vec<Second> {
    let kept = PACE.lock().unwrap_or_else(PoisonError::into_inner);
    let of_late = kept.iter().filter(|second| second.at > now - SECONDS);
    of_late.copied().collect()
}

/// The second of `at`, which is the last one.
fn last(kept: &mut VecDeque<Second>, at: i64) -> Option<&mut Second> {
    while kept.front().is_some_and(|second| second.at <= at - SECONDS) {
        kept.pop_front();
    }
    // A clock that is turned back would otherwise keep seconds twice: what is counted meanwhile counts for the last one.
    if kept.back().is_none_or(|second| second.at < at) {
        kept.push_back(Second {
            at,
            sends: 0,
            smallest_gap: None,
            in_flight: 0,
            answers: Answers::default(),
        });
    }
    kept.back_mut()
}

fn add(kept: &mut VecDeque<Second>, at: i64, gap: Option<Duration>, in_flight: u32) {
    if let Some(second) = last(kept, at) {
        second.sends = second.sends.saturating_add(1);
        second.smallest_gap = second.smallest_gap.into_iter().chain(gap).min();
        second.in_flight = second.in_flight.max(in_flight);
    }
}

fn add_answer(kept: &mut VecDeque<Second>, at: i64, answer: Answer) {
    if let Some(second) = last(kept, at) {
        let count = &mut second.answers[answer as usize];
        *count = count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_are_counted_by_the_second_for_two_minutes() {
        let mut kept = VecDeque::new();
        let millis = Duration::from_millis;
        add(&mut kept, 1_000, None, 0);
        add(&mut kept, 1_000, Some(millis(5)), 3);
        add(&mut kept, 1_000, Some(millis(4)), 2);
        let first = Second {
            at: 1_000,
            sends: 3,
            smallest_gap: Some(millis(4)),
            in_flight: 3,
            answers: Answers::default(),
        };
        assert_eq!(kept, [first]);
        // Turned back.
        add(&mut kept, 999, Some(millis(6)), 1);
        assert_eq!((kept.len(), kept[0].sends), (1, 4));
        add(&mut kept, 1_000 + SECONDS - 1, Some(millis(4)), 1);
        assert_eq!(kept.len(), 2);
        add(&mut kept, 1_000 + SECONDS, Some(millis(4)), 1);
        assert_eq!(kept.len(), 2, "the first one is two minutes old");
    }
    #[test]
    fn answers_are_counted_in_the_second_in_which_they_come() {
        let mut kept = VecDeque::new();
        add(&mut kept, 1_000, None, 1);
        for status in [200, 202, 404, 503, 302] {
            add_answer(&mut kept, 1_001, Answer::of(status));
        }
        add_answer(&mut kept, 1_001, Answer::Missing);
        assert_eq!(kept[0].answers, Answers::default());
        assert_eq!((kept[1].sends, kept[1].answers), (0, [2, 1, 2, 1]));
    }
}
