//! Whether the provider is away, judged by every answer of it, or by none: that keys open the console instead is not for one that was late.

use chrono::{DateTime, TimeDelta, Utc};

/// For how long a provider has to fail until it counts as away.
const AWAY: TimeDelta = TimeDelta::seconds(60);
/// After how long an answer that failed says nothing of the time since.
const FORGOTTEN: TimeDelta = TimeDelta::minutes(5);
/// How many answers in a row end an outage: one that answers now and then is of no use for signing in.
const ENOUGH: u8 = 2;

/// How a provider stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It answers, or was not asked yet.
    Answers,
    /// It fails, and counts as away when it goes on for as long as this.
    Fails(TimeDelta),
    /// It has failed for a minute, and did not answer twice since.
    Away,
}

/// What is asked of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    Discovery,
    Keys,
    Token,
}

/// What came of each kind of question.
#[derive(Debug, Default)]
pub(crate) struct Health([Option<Outage>; 3]);

#[derive(Debug, Clone, Copy)]
struct Outage {
    since: DateTime<Utc>,
    /// When a question was last asked in vain.
    last: DateTime<Utc>,
    answers: u8,
}

impl Health {
    /// A question of `now` was answered, if only with a refusal.
    pub(crate) fn answered(&mut self, question: Question) {
        let outage = &mut self.0[question as usize];
        *outage = outage.and_then(|mut outage| {
            outage.answers += 1;
            (outage.answers < ENOUGH).then_some(outage)
        });
    }

    /// A question of `now` was asked in vain.
    pub(crate) fn failed(&mut self, question: Question, now: DateTime<Utc>) {
        let outage = &mut self.0[question as usize];
        let goes_on = outage.filter(|outage| now - outage.last < FORGOTTEN);
        *outage = Some(Outage {
            since: goes_on.map_or(now, |outage| outage.since),
            last: now,
            answers: 0,
        });
    }

    /// Whether a question of this kind has failed, and not yet been answered often enough.
    pub(crate) fn doubts(&self, question: Question) -> bool {
        self.0[question as usize].is_some()
    }

    /// How the provider stands, by what fails longest: none of the three can be done without.
    pub(crate) fn standing(&self, now: DateTime<Utc>) -> Standing {
        let lately = self.0.iter().flatten();
        let lately = lately.filter(|outage| now - outage.last < FORGOTTEN);
        // From one failure to another: what lies behind the last one is not known.
        let lasts = |outage: &Outage| outage.last - outage.since;
        match lately.max_by_key(|outage| lasts(outage)) {
            Some(outage) if lasts(outage) >= AWAY => Standing::Away,
            Some(outage) if outage.answers == 0 => Standing::Fails(AWAY - lasts(outage)),
            Some(_) | None => Standing::Answers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn fails_at(question: Question, times: &[i64]) -> Health {
        let mut health = Health::default();
        for time in times {
            health.failed(question, at(*time));
        }
        health
    }

    #[test]
    fn one_failure_is_no_outage_however_long_ago_it_was() {
        let health = fails_at(Question::Discovery, &[0]);
        for seconds in [0, 59, 60, 200] {
            let standing = health.standing(at(seconds));
            assert_eq!(standing, Standing::Fails(AWAY), "{seconds}");
        }
        assert_eq!(health.standing(at(300)), Standing::Answers);
    }

    #[test]
    fn failures_over_a_minute_are_one_whatever_was_asked() {
        for question in [Question::Discovery, Question::Keys, Question::Token] {
            let health = fails_at(question, &[0, 30, 59]);
            assert_eq!(health.standing(at(60)), Standing::Fails(TimeDelta::seconds(1)));
            let health = fails_at(question, &[0, 30, 60]);
            assert_eq!(health.standing(at(60)), Standing::Away, "{question:?}");
        }
    }

    #[test]
    fn failures_that_lie_far_apart_are_not_one() {
        let health = fails_at(Question::Discovery, &[0, 300]);
        assert_eq!(health.standing(at(300)), Standing::Fails(AWAY));
    }

    #[test]
    fn two_answers_in_a_row_end_it_and_one_does_not() {
        let mut health = fails_at(Question::Discovery, &[0, 60]);
        health.answered(Question::Discovery);
        assert_eq!(health.standing(at(61)), Standing::Away);
        health.failed(Question::Discovery, at(65));
        health.answered(Question::Discovery);
        assert_eq!(health.standing(at(66)), Standing::Away, "it comes and goes");
        health.answered(Question::Discovery);
        assert_eq!(health.standing(at(67)), Standing::Answers);
    }

    #[test]
    fn an_answer_says_nothing_of_other_questions() {
        let mut health = fails_at(Question::Token, &[0, 60]);
        for _ in 0..5 {
            health.answered(Question::Discovery);
        }
        assert_eq!(health.standing(at(70)), Standing::Away);
    }

    #[test]
    fn one_answer_after_a_short_failure_is_believed() {
        let mut health = fails_at(Question::Keys, &[0, 10]);
        health.answered(Question::Keys);
        assert_eq!(health.standing(at(11)), Standing::Answers);
        assert!(health.doubts(Question::Keys));
    }
}
