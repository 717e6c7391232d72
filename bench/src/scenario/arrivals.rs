//! What a list of arrivals at Swrve says about the sends. Pure: the list is given.

use std::collections::HashSet;

use simulators::swrve::Received;

/// The shortest distance that Swrve is to see, in microseconds.
const SHORT: f64 = 4_000.0;
/// How long after the kill a last request of the killed sender may still be read, in microseconds.
const STRAGGLER: f64 = 1_000_000.0;

/// What is to be told about a run in which the sender was killed.
#[derive(Debug, PartialEq)]
pub(crate) struct Findings {
    /// Arrivals, repeated ones included.
    pub(crate) sends: usize,
    /// Arrivals of a push that had arrived before.
    pub(crate) repeats: usize,
    /// Smallest distance between two arrivals, in microseconds.
    pub(crate) smallest_gap: f64,
    /// Distances below 4 ms.
    pub(crate) short_gaps: usize,
    /// From the kill to the first send of the successor, in microseconds.
    pub(crate) takeover: f64,
    /// From the last send of the killed one to the first of the successor, in microseconds.
    pub(crate) silence: f64,
    /// Sends per second while there was work, without that silence.
    pub(crate) rate: f64,
    /// Longest distance in the time that the rate is taken over, in microseconds.
    pub(crate) longest_gap: f64,
    /// Sends after that time, when only what the killed one had claimed was left, to be found again by its lease.
    pub(crate) late: usize,
}

/// Reads `arrivals`, which are in order. `killed` is when the sender was killed; `claimed` is how many pushes it had claimed
/// by then: as soon as only so many are left, there may be no work.
pub(crate) fn read(arrivals: &[Received], killed: f64, claimed: usize) -> Option<Findings> {
    let times: Vec<f64> = arrivals.iter().map(|arrival| arrival.arrival_micros).collect();
    let successor = first_of_successor(&times, killed)?;
    let mut users = HashSet::new();
    let first_times: Vec<bool> = arrivals
        .iter()
        .map(|arrival| users.insert(&arrival.user))
        .collect();
    let enough = users.len().saturating_sub(claimed);
    let end = first_times
        .iter()
        .enumerate()
        .filter(|(_, first)| **first)
        .nth(enough.checked_sub(1)?)
        .map(|(index, _)| index)
        .filter(|end| *end > successor)?;
    let busy = [&times[..successor], &times[successor..=end]];
    let gaps = busy
        .iter()
        .flat_map(|part| part.windows(2))
        .map(|two| two[1] - two[0]);
    let span: f64 = gaps.clone().sum();
    let all_gaps = times.windows(2).map(|two| two[1] - two[0]);
    Some(Findings {
        sends: times.len(),
        repeats: times.len() - users.len(),
        smallest_gap: all_gaps.clone().fold(f64::INFINITY, f64::min),
        short_gaps: all_gaps.filter(|gap| *gap < SHORT).count(),
        takeover: times[successor] - killed,
        silence: times[successor] - times[successor - 1],
        rate: gaps.clone().count() as f64 / span * 1e6,
        longest_gap: gaps.fold(0.0, f64::max),
        late: times.len() - 1 - end,
    })
}

/// The longest silence that begins around the kill ends with the successor's first send. A longer one may follow later,
/// when only what the killed sender had claimed is left.
fn first_of_successor(times: &[f64], killed: f64) -> Option<usize> {
    (1..times.len())
        .filter(|index| times[*index] > killed && times[index - 1] < killed + STRAGGLER)
        .max_by(|one, other| {
            let gap = |index: &usize| times[*index] - times[index - 1];
            gap(one).total_cmp(&gap(other))
        })
}

#[cfg(test)]
mod tests {
    use simulators::swrve::Outcome;

    use super::*;

    fn arrivals(list: &[(f64, &str)]) -> Vec<Received> {
        let received = |(number, (micros, user)): (usize, &(f64, &str))| Received {
            number: number as u64 + 1,
            arrival_micros: *micros,
            push_key: String::new(),
            user: (*user).to_owned(),
            message: String::new(),
            test: false,
            outcome: Outcome::Answered,
            status: Some(200),
        };
        list.iter().enumerate().map(received).collect()
    }

    #[test]
    fn the_silence_is_left_out_of_the_rate_and_late_sends_as_well() {
        let list = arrivals(&[
            (0.0, "a"),
            (4_000.0, "b"),
            (8_000.0, "c"),
            // Killed at 9,000; c was claimed, and so was d.
            (3_000_000.0, "e"),
            (3_005_000.0, "f"),
            (3_010_000.0, "g"),
            (40_000_000.0, "c"),
            (40_003_000.0, "d"),
        ]);
        let findings = read(&list, 9_000.0, 2).unwrap();
        assert_eq!((findings.sends, findings.repeats, findings.late), (8, 1, 3));
        assert_eq!(findings.takeover, 2_991_000.0);
        assert_eq!(findings.silence, 2_992_000.0);
        assert_eq!((findings.smallest_gap, findings.short_gaps), (3_000.0, 1));
        assert_eq!(findings.longest_gap, 5_000.0);
        // Three gaps: 4 + 4 + 5 ms.
        assert!((findings.rate - 3.0 / 0.013).abs() < 1e-6, "{findings:?}");
    }

    #[test]
    fn a_straggler_of_the_killed_one_is_not_its_successor() {
        let list = arrivals(&[(0.0, "a"), (4_000.0, "b"), (2_500_000.0, "c"), (2_504_000.0, "d")]);
        assert_eq!(read(&list, 3_900.0, 0).unwrap().takeover, 2_496_100.0);
    }

    #[test]
    fn without_a_successor_there_is_nothing_to_tell() {
        assert_eq!(read(&arrivals(&[(0.0, "a"), (4_000.0, "b")]), 5_000.0, 0), None);
        assert_eq!(read(&[], 0.0, 0), None);
    }
}
