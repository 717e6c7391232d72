//! Where the time of a push or a notification went: the sum of it by what took it. What is known of the past are its attempts; what it waits for
//! now, its describer knows.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::words::{length, of};

/// What is over sooner has no delay to tell of.
const LEAST: TimeDelta = TimeDelta::seconds(10);

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
    /// `BEFORE_FIRST_ATTEMPT`, `ATTEMPTS`, `BETWEEN_ATTEMPTS`, `BEFORE_SENT_AGAIN` (from its end until it was to be sent again), `WAITING` (since its
    /// last attempt, or since it was accepted or to be sent again).
    #[schema(value_type = String, example = "BETWEEN_ATTEMPTS")]
    pub cause: &'static str,
    /// How long, in milliseconds.
    #[schema(example = 1_200_000)]
    pub millis: u64,
}

/// An attempt, as far as it took time.
pub(crate) struct Attempted {
    pub(crate) number: u32,
    pub(crate) started_at: DateTime<Utc>,
    /// None of one that goes on, or whose outcome was lost.
    pub(crate) millis: Option<i64>,
}

/// What the time is told of.
pub(crate) struct Course<'a> {
    pub(crate) accepted_at: DateTime<Utc>,
    /// None of what has not ended.
    pub(crate) finished_at: Option<DateTime<Utc>>,
    pub(crate) now: DateTime<Utc>,
    /// Whether its last attempt goes on.
    pub(crate) claimed: bool,
    /// How many attempts there were when it was to be sent again; 0 when it never was.
    pub(crate) again_after: u32,
    /// When that was, as far as it is known.
    pub(crate) again_at: Option<DateTime<Utc>>,
    /// What it waits for, after "waiting".
    pub(crate) waits: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Before,
    Attempts,
    Between,
    Again,
    Waiting,
}

impl Cause {
    const ALL: [Self; 5] = [
        Self::Before,
        Self::Attempts,
        Self::Between,
        Self::Again,
        Self::Waiting,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Before => "BEFORE_FIRST_ATTEMPT",
            Self::Attempts => "ATTEMPTS",
            Self::Between => "BETWEEN_ATTEMPTS",
            Self::Again => "BEFORE_SENT_AGAIN",
            Self::Waiting => "WAITING",
        }
    }
}

/// The sum for what took so long that one may ask; `attempts` has the first one first.
pub(crate) fn delay(course: &Course<'_>, attempts: impl IntoIterator<Item = Attempted>) -> Option<Delay> {
    let end = course.finished_at.unwrap_or(course.now);
    if end - course.accepted_at < LEAST {
        return None;
    }
    let attempts: Vec<Attempted> = attempts.into_iter().collect();
    let mut spent = Cause::ALL.map(|cause| (cause, TimeDelta::zero()));
    let mut done = course.accepted_at;
    // Clocks differ, so nothing begins before what was before it has ended.
    let mut until = |at: DateTime<Utc>, cause: Cause| {
        let took = (at.min(end) - done).max(TimeDelta::zero());
        for (of, sum) in &mut spent {
            if *of == cause {
                *sum += took;
            }
        }
        done += took;
    };
    for (place, attempt) in attempts.iter().enumerate() {
        let is_again = course.again_after > 0 && attempt.number == course.again_after + 1;
        let before = match attempt.number {
            _ if is_again => Cause::Again,
            1 => Cause::Before,
            // The earliest of many attempts are not told.
            _ => Cause::Between,
        };
        until(attempt.started_at, before);
        let goes_on = course.claimed && place + 1 == attempts.len();
        let ended = match attempt.millis {
            Some(millis) => {
                attempt.started_at + TimeDelta::milliseconds(millis.clamp(0, i64::from(u32::MAX)))
            }
            None if goes_on => end,
            None => attempt.started_at,
        };
        until(ended, Cause::Attempts);
    }
    let last = attempts.last().map_or(0, |attempt| attempt.number);
    if let Some(again) = course.again_at.filter(|_| last == course.again_after) {
        until(again, Cause::Again);
    }
    until(end, Cause::Waiting);
    spent.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    let said: Vec<String> = spent
        .iter()
        .filter(|(_, sum)| *sum >= TimeDelta::seconds(1))
        .map(|(cause, sum)| said(*cause, *sum, course, attempts.len()))
        .collect();
    let how = if course.finished_at.is_some() {
        "until it ended"
    } else {
        "since it was accepted"
    };
    let all = words_for(end - course.accepted_at);
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

fn words_for(time: TimeDelta) -> String {
    length(time.to_std().unwrap_or_default())
}

fn said(cause: Cause, sum: TimeDelta, course: &Course<'_>, attempts: usize) -> String {
    let took = words_for(sum);
    match cause {
        Cause::Before => format!("{took} before the first attempt"),
        Cause::Attempts => format!("{took} in {}", of(attempts as u64, "attempt", "attempts")),
        Cause::Between => format!("{took} between attempts"),
        Cause::Again => format!("{took} before it was to be sent again"),
        Cause::Waiting if course.finished_at.is_some() && attempts > 0 => {
            format!("{took} after the last attempt")
        }
        Cause::Waiting if course.finished_at.is_some() => format!("{took} waiting"),
        Cause::Waiting => format!("{took} waiting {}", course.waits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn attempt(number: u32, second: i64, millis: Option<i64>) -> Attempted {
        Attempted {
            number,
            started_at: at(second),
            millis,
        }
    }

    fn course(finished: Option<i64>, now: i64) -> Course<'static> {
        Course {
            accepted_at: at(0),
            finished_at: finished.map(at),
            now: at(now),
            claimed: false,
            again_after: 0,
            again_at: None,
            waits: "for the daily quota",
        }
    }

    fn text(course: &Course<'_>, attempts: Vec<Attempted>) -> String {
        delay(course, attempts).expect("a delay").text
    }

    #[test]
    fn what_waits_says_for_what_and_what_was_quick_has_no_delay() {
        assert_eq!(
            text(&course(None, 4 * 3_600), Vec::new()),
            "4 h since it was accepted: 4 h waiting for the daily quota."
        );
        assert_eq!(delay(&course(None, 9), Vec::new()), None);
        assert_eq!(delay(&course(Some(2), 3_600), Vec::new()), None);
    }

    #[test]
    fn the_longest_part_comes_first_and_the_parts_are_the_whole() {
        let attempts = vec![attempt(1, 3, Some(1_000)), attempt(2, 1_204, Some(500))];
        let told = delay(&course(Some(1_206), 9_999), attempts).expect("a delay");
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
        let going_on = Course {
            claimed: true,
            ..course(None, 30)
        };
        assert_eq!(
            text(&going_on, vec![attempt(1, 0, None)]),
            "30 s since it was accepted: 30 s in 1 attempt."
        );
        let lost = vec![attempt(1, 5, None)];
        assert_eq!(
            text(&course(None, 30), lost),
            "30 s since it was accepted: 25 s waiting for the daily quota, 5 s before the first attempt."
        );
    }

    #[test]
    fn what_was_sent_again_does_not_count_the_time_at_its_end_as_a_retry() {
        let again = Course {
            again_after: 1,
            ..course(Some(7_201), 9_999)
        };
        let attempts = vec![attempt(1, 1, Some(0)), attempt(2, 7_201, Some(0))];
        assert_eq!(
            text(&again, attempts),
            "2 h until it ended: 2 h before it was to be sent again, 1 s before the first attempt."
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
            text(&again, vec![attempt(1, 0, Some(0))]),
            "2 h 1 min since it was accepted: 2 h before it was to be sent again, 1 min waiting for the daily quota."
        );
    }

    #[test]
    fn clocks_that_differ_make_no_negative_part() {
        let attempts = vec![attempt(1, -40, Some(1_000)), attempt(2, 90, Some(1_000))];
        assert_eq!(
            text(&course(Some(60), 60), attempts),
            "1 min until it ended: 1 min between attempts."
        );
    }
}
