//! Where the time of a push or a notification went: the sum of it by what took it. What is known of the past are its attempts and what had stopped
//! them; what it waits for now, its describer knows.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use store::{DeadLetterReason, DeadLetterState, DeadLetterView};
use utoipa::ToSchema;

use crate::course::{Attempted, Course, Phase, Stop, walk};
use crate::words::{length, of};

/// What is over sooner has no delay to tell of.
pub(crate) const LEAST: TimeDelta = TimeDelta::seconds(10);

/// Where the time went since it was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StoryDelay)]
pub struct Delay {
    /// The sum in a sentence.
    #[schema(
        example = "20 min 4 s until it ended: 20 min between attempts, 3 s before the first attempt, 1 s in 2 attempts."
    )]
    pub text: String,
    /// What took how long, the longest first.
    pub parts: Vec<DelayPart>,
}

/// What took a part of the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StoryDelayPart)]
pub struct DelayPart {
    /// `BEFORE_FIRST_ATTEMPT`, `ATTEMPTS`, `BETWEEN_ATTEMPTS`, `GIVEN_UP` (its dead letter was open, until it was replayed), `BEFORE_SENT_AGAIN`
    /// (from its end until it was to be sent again), `WAITING` (since its last attempt, or since it was accepted or to be sent again); and of the
    /// time in which it could have been sent, `PAUSED` (by an operator), `HELD` (Swrve was out of order) and `QUOTA` (it waited for the daily quota,
    /// of one that its first attempt has delivered).
    #[schema(value_type = String, example = "BETWEEN_ATTEMPTS")]
    pub cause: &'static str,
    /// How long, in milliseconds.
    #[schema(example = 1_200_000)]
    pub millis: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Before,
    Attempts,
    Between,
    /// It had ended, and its dead letter was open.
    GivenUp,
    Again,
    Waiting,
    /// An operator had it paused.
    Paused,
    /// Swrve was out of order.
    Held,
    /// It waited for the daily quota, and does so no longer.
    Quota,
}

impl Cause {
    const ALL: [Self; 9] = [
        Self::Before,
        Self::Attempts,
        Self::Between,
        Self::GivenUp,
        Self::Again,
        Self::Waiting,
        Self::Paused,
        Self::Held,
        Self::Quota,
    ];

    fn of(phase: Phase) -> Self {
        match phase {
            Phase::Before => Self::Before,
            Phase::Attempt => Self::Attempts,
            Phase::Between => Self::Between,
            Phase::Again => Self::Again,
            Phase::Waiting => Self::Waiting,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Before => "BEFORE_FIRST_ATTEMPT",
            Self::Attempts => "ATTEMPTS",
            Self::Between => "BETWEEN_ATTEMPTS",
            Self::GivenUp => "GIVEN_UP",
            Self::Again => "BEFORE_SENT_AGAIN",
            Self::Waiting => "WAITING",
            Self::Paused => "PAUSED",
            Self::Held => "HELD",
            Self::Quota => "QUOTA",
        }
    }
}

/// The sum for what took so long that one may ask; `attempts` has the first one first, `stops` are what had kept it back, `letters` are its dead
/// letters, and `waits` is what it waits for, or has waited for until it ended without an attempt, after "waiting"; empty where that is not known.
pub(crate) fn delay(
    course: &Course,
    waits: &str,
    attempts: &[Attempted],
    stops: &[Stop<Cause>],
    letters: &[DeadLetterView],
) -> Option<Delay> {
    let time = course.end() - course.accepted_at;
    if time < LEAST {
        return None;
    }
    let mut spent = Cause::ALL.map(|cause| (cause, TimeDelta::zero()));
    let given_up = given_up(letters);
    let stretches = walk(course, attempts).into_iter();
    for (stretch, is_given_up) in stretches.flat_map(|stretch| stretch.apart(&given_up)) {
        for (stopped, took) in stretch.split(if is_given_up { &[] } else { stops }) {
            let cause = match stopped {
                _ if is_given_up => Cause::GivenUp,
                Some(stopped) => stopped,
                None => Cause::of(stretch.phase),
            };
            for (_, sum) in spent.iter_mut().filter(|(of, _)| *of == cause) {
                *sum += took;
            }
        }
    }
    spent.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    let replayed = replayed(letters);
    let said: Vec<String> = spent
        .iter()
        .filter(|(_, sum)| *sum >= TimeDelta::seconds(1))
        .map(|(cause, sum)| said(*cause, *sum, course, (attempts.len(), waits, replayed.as_str())))
        .collect();
    let how = match course.finished_at {
        Some(_) => "until it ended".to_owned(),
        None => format!("since it was {}", course.began_as),
    };
    let all = words_for(time);
    let parts = spent.iter().filter(|(_, sum)| *sum > TimeDelta::zero());
    Some(Delay {
        text: format!("{all} {how}: {}.", said.join(", ")),
        parts: parts
            .map(|(cause, sum)| DelayPart {
                cause: cause.as_str(),
                millis: sum.num_milliseconds().unsigned_abs(),
            })
            .collect(),
    })
}

fn those_replayed(letters: &[DeadLetterView]) -> impl Iterator<Item = &DeadLetterView> {
    letters
        .iter()
        .filter(|letter| letter.state == DeadLetterState::Replayed)
}

/// From when until when it had ended and its dead letter was open, the first time first.
pub(crate) fn given_up(letters: &[DeadLetterView]) -> Vec<(DateTime<Utc>, DateTime<Utc>)> {
    let mut times: Vec<_> = those_replayed(letters)
        .filter(|letter| {
            matches!(
                letter.reason,
                DeadLetterReason::Failed | DeadLetterReason::GivenUp
            )
        })
        .filter_map(|letter| Some((letter.created_at, letter.resolved_at?)))
        .filter(|(from, until)| from < until)
        .collect();
    times.sort_unstable();
    times
}

/// Whether what stopped a lane for a while concerned it, which it did not where it had been given up before and was replayed after.
pub(crate) fn concerned(
    given_up: &[(DateTime<Utc>, DateTime<Utc>)],
    (since, until): (DateTime<Utc>, DateTime<Utc>),
) -> bool {
    let mut given_up = given_up.iter();
    !given_up.any(|(from, to)| *from <= since && until <= *to)
}

/// How that ended, after "until".
fn replayed(letters: &[DeadLetterView]) -> String {
    let mut jobs = those_replayed(letters).map(|letter| letter.job);
    match (jobs.next(), jobs.next()) {
        (Some(Some(job)), None) => format!("the job {job} replayed it"),
        _ => "it was replayed".to_owned(),
    }
}

fn words_for(time: TimeDelta) -> String {
    length(time.to_std().unwrap_or_default())
}

fn said(
    cause: Cause,
    sum: TimeDelta,
    course: &Course,
    (attempts, waits, replayed): (usize, &str, &str),
) -> String {
    let took = words_for(sum);
    match cause {
        Cause::Before => format!("{took} before the first attempt"),
        Cause::Attempts => format!("{took} in {}", of(attempts as u64, "attempt", "attempts")),
        Cause::Between => format!("{took} between attempts"),
        Cause::GivenUp => format!("{took} given up, until {replayed}"),
        Cause::Again if course.was_delivered => format!("{took} delivered, until it was to be sent again"),
        Cause::Again => format!("{took} before it was to be sent again"),
        Cause::Waiting if course.finished_at.is_some() && attempts > 0 => {
            format!("{took} after the last attempt")
        }
        Cause::Waiting if waits.is_empty() => format!("{took} waiting"),
        Cause::Waiting => format!("{took} waiting {waits}"),
        Cause::Paused => format!("{took} paused by an operator"),
        Cause::Held => format!("{took} held while Swrve was out of order"),
        Cause::Quota => format!("{took} waiting for the daily quota"),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::course::Due;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn attempt(number: u32, second: i64, millis: Option<i64>) -> Attempted {
        Attempted {
            number,
            started_at: at(second),
            millis,
            goes_on: false,
            next: Due::At(at(second)),
        }
    }

    fn course(finished: Option<i64>, now: i64) -> Course {
        Course {
            accepted_at: at(0),
            began_as: "accepted",
            finished_at: finished.map(at),
            now: at(now),
            first: Due::At(at(0)),
            due_at: None,
            again_after: 0,
            again_at: None,
            was_delivered: false,
        }
    }

    fn told(course: &Course, attempts: &[Attempted]) -> Option<Delay> {
        delay(course, "for the daily quota", attempts, &[], &[])
    }

    fn text(course: &Course, attempts: &[Attempted]) -> String {
        told(course, attempts).expect("a delay").text
    }

    #[test]
    fn what_waits_says_for_what_and_what_was_quick_has_no_delay() {
        assert_eq!(
            text(&course(None, 4 * 3_600), &[]),
            "4 h since it was accepted: 4 h waiting for the daily quota."
        );
        assert_eq!(told(&course(None, 9), &[]), None);
        assert_eq!(told(&course(Some(2), 3_600), &[]), None);
    }

    #[test]
    fn the_longest_part_comes_first_and_the_parts_are_the_whole() {
        let attempts = [attempt(1, 3, Some(1_000)), attempt(2, 1_204, Some(500))];
        let told = told(&course(Some(1_206), 9_999), &attempts).expect("a delay");
        assert_eq!(
            told.text,
            "20 min 6 s until it ended: 20 min between attempts, 3 s before the first attempt, 1 s in 2 attempts, \
             1 s after the last attempt."
        );
        assert_eq!(told.parts[0].cause, "BETWEEN_ATTEMPTS");
        let sum: u64 = told.parts.iter().map(|part| part.millis).sum();
        assert_eq!(sum, 1_206_000);
    }

    #[test]
    fn an_attempt_that_goes_on_counts_as_such_and_one_that_was_lost_as_what_followed() {
        let going_on = Attempted {
            goes_on: true,
            ..attempt(1, 0, None)
        };
        assert_eq!(
            text(&course(None, 30), &[going_on]),
            "30 s since it was accepted: 30 s in 1 attempt."
        );
        let lost = [attempt(1, 5, None)];
        assert_eq!(
            text(&course(None, 30), &lost),
            "30 s since it was accepted: 25 s waiting for the daily quota, 5 s before the first attempt."
        );
    }

    #[test]
    fn what_was_sent_again_does_not_count_the_time_at_its_end_as_a_retry() {
        let again = Course {
            again_after: 1,
            ..course(Some(7_201), 9_999)
        };
        let attempts = [attempt(1, 1, Some(0)), attempt(2, 7_201, Some(0))];
        assert_eq!(
            text(&again, &attempts),
            "2 h until it ended: 2 h before it was to be sent again, 1 s before the first attempt."
        );
    }

    #[test]
    fn what_was_delivered_before_it_was_sent_again_was_so_meanwhile() {
        let again = Course {
            again_after: 1,
            was_delivered: true,
            ..course(Some(97), 9_999)
        };
        let attempts = [attempt(1, 3, Some(1_000)), attempt(2, 97, Some(0))];
        assert_eq!(
            text(&again, &attempts),
            "1 min 37 s until it ended: 1 min 33 s delivered, until it was to be sent again, 3 s before the first attempt, \
             1 s in 2 attempts."
        );
    }

    #[test]
    fn the_time_in_which_its_dead_letter_was_open_is_called_so() {
        let job = Uuid::from_u128(7);
        let letter = |from, until| {
            let mut letter = crate::tests::dead_letter(Some(Uuid::from_u128(1)), None);
            letter.state = DeadLetterState::Replayed;
            (letter.created_at, letter.resolved_at) = (at(from), Some(at(until)));
            letter.job = Some(job);
            letter
        };
        let again = Course {
            again_after: 2,
            ..course(Some(7_201), 9_999)
        };
        let attempts = [
            attempt(1, 0, Some(0)),
            attempt(2, 61, Some(0)),
            attempt(3, 7_201, Some(0)),
        ];
        let told = |letters: &[DeadLetterView]| delay(&again, "", &attempts, &[], letters).expect("a delay");
        let once = told(&[letter(61, 7_200)]);
        assert_eq!(
            once.text,
            format!(
                "2 h until it ended: 1 h 58 min given up, until the job {job} replayed it, 1 min 2 s between attempts."
            )
        );
        let causes: Vec<_> = once.parts.iter().map(|part| part.cause).collect();
        assert_eq!(causes, ["GIVEN_UP", "BETWEEN_ATTEMPTS"]);
        // The one before was replayed, too, and the attempt after that is none of a retry.
        let twice = told(&[letter(61, 7_200), letter(0, 61)]);
        assert_eq!(
            twice.text,
            "2 h until it ended: 2 h given up, until it was replayed, 1 s between attempts."
        );
    }

    #[test]
    fn what_is_to_be_sent_again_waits_since_then_and_not_since_its_end() {
        let again = Course {
            again_after: 1,
            again_at: Some(at(7_200)),
            ..course(None, 7_260)
        };
        assert_eq!(
            text(&again, &[attempt(1, 0, Some(0))]),
            "2 h 1 min since it was accepted: 2 h before it was to be sent again, 1 min waiting for the daily quota."
        );
    }

    #[test]
    fn clocks_that_differ_make_no_negative_part() {
        let attempts = [attempt(1, -40, Some(1_000)), attempt(2, 90, Some(1_000))];
        assert_eq!(
            text(&course(Some(60), 60), &attempts),
            "1 min until it ended: 1 min between attempts."
        );
    }

    #[test]
    fn what_was_stopped_says_by_what() {
        let stop = |cause, from, until| Stop {
            cause,
            from: at(from),
            until: Some(at(until)),
        };
        let stops = [stop(Cause::Paused, -60, 12), stop(Cause::Held, 5, 18)];
        let told =
            delay(&course(Some(21), 99), "", &[attempt(1, 21, Some(0))], &stops, &[]).expect("a delay");
        assert_eq!(
            told.text,
            "21 s until it ended: 12 s paused by an operator, 6 s held while Swrve was out of order, 3 s before the first attempt."
        );
        let causes: Vec<_> = told.parts.iter().map(|part| part.cause).collect();
        assert_eq!(causes, ["PAUSED", "HELD", "BEFORE_FIRST_ATTEMPT"]);
    }
}
