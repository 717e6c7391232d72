//! What must not be left when everything has come to its end.

use super::Violation;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Messages by queue.
    pub queues: Vec<(String, u64)>,
    /// Counts that must be zero, by what they count.
    pub counts: Vec<(&'static str, i64)>,
    /// Dead letters of a kind: how many there are and how many the tallies say.
    pub tallies: Vec<(String, i64, i64)>,
    /// Processes that have ended although the run had not asked them to.
    pub deaths: Vec<String>,
}

impl Leftovers {
    pub(super) fn judge(&self, violations: &mut Vec<Violation>) {
        for (queue, messages) in self.queues.iter().filter(|(_, messages)| *messages > 0) {
            violations.push(Violation::new(
                "queues",
                queue,
                format!("{messages} messages are left for nothing"),
            ));
        }
        for (what, count) in self.counts.iter().filter(|(_, count)| *count != 0) {
            violations.push(Violation::new("leftovers", *what, format!("there are {count}")));
        }
        for (kind, letters, tally) in self.tallies.iter().filter(|(_, letters, tally)| letters != tally) {
            violations.push(Violation::new(
                "tallies",
                kind,
                format!("{letters} dead letters are counted as {tally}"),
            ));
        }
        for death in &self.deaths {
            violations.push(Violation::new("deaths", "process", death));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_left_is_no_violation_and_anything_left_is_one() {
        let mut violations = Vec::new();
        let mut leftovers = Leftovers {
            queues: vec![("push.ready".to_owned(), 0)],
            counts: vec![("pauses", 0)],
            tallies: vec![("OPEN push FAILED".to_owned(), 3, 3)],
            deaths: Vec::new(),
        };
        leftovers.judge(&mut violations);
        assert_eq!(violations, []);

        leftovers.queues[0].1 = 1;
        leftovers.counts[0].1 = 1;
        leftovers.tallies[0].2 = 2;
        leftovers.deaths.push("dispatcher-0 ended with 101".to_owned());
        leftovers.judge(&mut violations);
        let checks: Vec<&str> = violations.iter().map(|found| found.check).collect();
        assert_eq!(checks, ["queues", "leftovers", "tallies", "deaths"]);
    }
}
