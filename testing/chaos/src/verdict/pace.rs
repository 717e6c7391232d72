//! The pace of pushes over all dispatchers: starts are never closer together than the gap, and only one term sends at a time.
//!
//! What is guaranteed for a sender that is frozen: it looks at its term right before the bytes of a send are written. Frozen after
//! that look, and woken up when another leads, it can send the one push that it has in its hands, and no more. So the last
//! look of an old term lies before the first start of the next, except once for each time that something was frozen; the start
//! itself never does, since it lies before that look.

use std::time::Duration;

use super::Violation;
use crate::ledger::Start;

/// Violations of one kind that are told; further ones are only counted.
const TOLD: usize = 5;

/// What the starts are judged by.
#[derive(Debug, Clone)]
pub struct Pace {
    /// The least time between two.
    pub gap: Duration,
    /// How often a sender was frozen.
    pub freezes: usize,
    /// How many requests came to Swrve.
    pub arrivals: u64,
}

/// What the starts were like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PaceTally {
    /// How many.
    pub starts: usize,
    /// How many terms there were with starts.
    pub terms: usize,
    /// The shortest time between two.
    pub smallest_gap: Option<Duration>,
    /// Sends that an old term had in its hands when the next had begun to send.
    pub late: usize,
}

impl Pace {
    pub(super) fn judge(&self, starts: &[Start], violations: &mut Vec<Violation>) -> PaceTally {
        let mut starts = starts.to_vec();
        starts.sort_by_key(|start| start.started);
        let mut tally = PaceTally {
            starts: starts.len(),
            ..PaceTally::default()
        };
        let mut too_close = Vec::new();
        for pair in starts.windows(2) {
            let gap = Duration::from_nanos(pair[1].started - pair[0].started);
            tally.smallest_gap = Some(tally.smallest_gap.map_or(gap, |smallest| smallest.min(gap)));
            if gap < self.gap {
                too_close.push(Violation::new(
                    "pace",
                    pair[1].push.to_string(),
                    format!(
                        "started {:.6} ms after {} (terms {} and {})",
                        gap.as_secs_f64() * 1_000.0,
                        pair[0].push,
                        pair[0].epoch,
                        pair[1].epoch
                    ),
                ));
            }
        }
        tell(too_close, violations);
        tell(judge_terms(&starts, &mut tally), violations);
        tally.late = late(&starts);
        if tally.late > self.freezes {
            let text = format!(
                "{} sends under an old term, and {} freezes explain as many",
                tally.late, self.freezes
            );
            violations.push(Violation::new("pace", "terms", text));
        }
        if (starts.len() as u64) < self.arrivals {
            let text = format!(
                "{} requests came, and {} starts were told",
                self.arrivals,
                starts.len()
            );
            violations.push(Violation::new("pace", "starts", text));
        }
        tally
    }
}

/// Terms follow each other: once a later one has started something, no earlier one starts anything.
fn judge_terms(starts: &[Start], tally: &mut PaceTally) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut newest: Option<i64> = None;
    for start in starts {
        match newest {
            Some(epoch) if start.epoch < epoch => {
                let text = format!("started in term {} when {epoch} had begun to send", start.epoch);
                violations.push(Violation::new("pace", start.push.to_string(), text));
            }
            Some(epoch) if start.epoch == epoch => {}
            _ => {
                tally.terms += 1;
                newest = Some(start.epoch);
            }
        }
    }
    violations
}

/// How many were handed over after a later term had started something.
fn late(starts: &[Start]) -> usize {
    // From the end: the first start of any later term.
    let mut firsts: Vec<(i64, u64)> = Vec::new();
    for start in starts {
        if firsts.last().is_none_or(|(epoch, _)| start.epoch > *epoch) {
            firsts.push((start.epoch, start.started));
        }
    }
    let is_late = |start: &&Start| {
        let next = firsts.partition_point(|(epoch, _)| *epoch <= start.epoch);
        firsts
            .get(next)
            .is_some_and(|(_, first)| start.handed_over > *first)
    };
    starts.iter().filter(is_late).count()
}

fn tell(found: Vec<Violation>, violations: &mut Vec<Violation>) {
    let further = found.len().saturating_sub(TOLD);
    violations.extend(found.into_iter().take(TOLD));
    if further > 0 {
        violations.push(Violation::new("pace", "further", format!("and {further} more")));
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const MILLI: u64 = 1_000_000;

    fn start(epoch: i64, started: u64) -> Start {
        Start {
            epoch,
            started,
            handed_over: started + 1_000,
            push: Uuid::from_u128(started.into()),
        }
    }

    fn judge(starts: &[Start], freezes: usize) -> (PaceTally, Vec<Violation>) {
        let pace = Pace {
            gap: Duration::from_millis(4),
            freezes,
            arrivals: starts.len() as u64,
        };
        let mut violations = Vec::new();
        (pace.judge(starts, &mut violations), violations)
    }

    #[test]
    fn four_milliseconds_pass_and_a_nanosecond_less_does_not() {
        let (tally, violations) = judge(&[start(1, 0), start(1, 4 * MILLI), start(2, 8 * MILLI)], 0);
        assert_eq!(violations, []);
        assert_eq!(
            (tally.smallest_gap, tally.terms),
            (Some(Duration::from_millis(4)), 2)
        );

        let (_, violations) = judge(&[start(1, 0), start(1, 4 * MILLI - 1)], 0);
        assert_eq!(violations.len(), 1);
        assert!(violations[0].text.contains("3.999999 ms"), "{}", violations[0]);
    }

    #[test]
    fn a_gap_between_two_replicas_counts_as_any_other_in_whatever_order_they_tell() {
        let (_, violations) = judge(&[start(2, 10 * MILLI), start(1, 10 * MILLI - 3_900_000)], 0);
        assert_eq!(violations.len(), 1);
    }

    #[test]
    fn an_old_term_that_starts_again_is_found() {
        let (_, violations) = judge(&[start(1, 0), start(2, 10 * MILLI), start(1, 20 * MILLI)], 5);
        assert!(
            violations
                .iter()
                .any(|found| found.text.contains("in term 1 when 2"))
        );
    }

    #[test]
    fn a_send_in_the_hands_of_an_old_term_is_excused_by_a_freeze_and_by_nothing_else() {
        let mut held = start(1, 0);
        held.handed_over = 30 * MILLI;
        let starts = [held, start(2, 10 * MILLI)];
        assert_eq!(judge(&starts, 1).1, []);
        assert_eq!(judge(&starts, 0).1.len(), 1);
    }

    #[test]
    fn a_request_without_a_start_is_found() {
        let pace = Pace {
            gap: Duration::from_millis(4),
            freezes: 0,
            arrivals: 2,
        };
        let mut violations = Vec::new();
        pace.judge(&[start(1, 0)], &mut violations);
        assert_eq!(violations.len(), 1);
    }
}
