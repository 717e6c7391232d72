//! The walk over the attempts of a push or a notification: what each stretch of its time was, and what had stopped it meanwhile. Pure.
//!
//! What the stretches are called and how they are summed up is for those who tell it.

use chrono::{DateTime, TimeDelta, Utc};

/// What waits for the end of a stop begins within that time, since promoters look every few seconds and a queue may follow. Where it is not known
/// when an attempt was due, one that began later is taken to have been due later.
const RESUMED: TimeDelta = TimeDelta::minutes(1);

/// When something could be sent at the earliest, if nothing stopped it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// At this time.
    At(DateTime<Utc>),
    /// At this time or later: that it was put off further is not recorded.
    NotBefore(DateTime<Utc>),
}

/// An attempt, as far as it took time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempted {
    pub(crate) number: u32,
    pub(crate) started_at: DateTime<Utc>,
    /// None of one that goes on, or whose outcome was lost.
    pub(crate) millis: Option<i64>,
    pub(crate) goes_on: bool,
    /// When another one could follow.
    pub(crate) next: Due,
}

impl Attempted {
    /// When an attempt ended that began then; one whose outcome was lost at once, since what followed is known better.
    pub(crate) fn end(started_at: DateTime<Utc>, millis: Option<i64>) -> DateTime<Utc> {
        let millis = millis.unwrap_or(0).clamp(0, i64::from(u32::MAX));
        started_at + TimeDelta::milliseconds(millis)
    }
}

/// What is walked through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course {
    pub(crate) accepted_at: DateTime<Utc>,
    /// What had happened to it then, as it follows "since it was".
    pub(crate) began_as: &'static str,
    /// None of what has not ended.
    pub(crate) finished_at: Option<DateTime<Utc>>,
    pub(crate) now: DateTime<Utc>,
    /// When its first attempt could begin.
    pub(crate) first: Due,
    /// When its next attempt can begin, where that is recorded.
    pub(crate) due_at: Option<DateTime<Utc>>,
    /// How many attempts there were when it was to be sent again; 0 when it never was.
    pub(crate) again_after: u32,
    /// When that was, as far as it is known.
    pub(crate) again_at: Option<DateTime<Utc>>,
    /// Whether it had been delivered before that.
    pub(crate) was_delivered: bool,
}

impl Course {
    /// When it ended, or the present time.
    pub(crate) fn end(&self) -> DateTime<Utc> {
        self.finished_at.unwrap_or(self.now)
    }
}

/// What a stretch of time was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Before its first attempt.
    Before,
    /// An attempt.
    Attempt,
    /// From one attempt to the next.
    Between,
    /// From its end until it was to be sent again.
    Again,
    /// After all that is known.
    Waiting,
}

/// A stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) phase: Phase,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
    /// Before that it waited for nothing but the time.
    due: Due,
}

/// What kept something from being sent, for a while.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop<C> {
    pub(crate) cause: C,
    pub(crate) from: DateTime<Utc>,
    /// None of one that goes on.
    pub(crate) until: Option<DateTime<Utc>>,
}

/// All stretches from its beginning to its end or the present time, without a gap; `attempts` has the first one first.
pub(crate) fn walk(course: &Course, attempts: &[Attempted]) -> Vec<Stretch> {
    let end = course.end();
    let mut stretches = Vec::new();
    let mut done = course.accepted_at;
    // Clocks differ, so nothing begins before what was before it has ended.
    let mut until = |at: DateTime<Utc>, phase: Phase, due: Due| {
        let at = at.min(end);
        if done < at {
            stretches.push(Stretch {
                phase,
                from: done,
                until: at,
                due,
            });
            done = at;
        }
    };
    let mut due = course.first;
    for attempt in attempts {
        let is_again = course.again_after > 0 && attempt.number == course.again_after + 1;
        let before = match attempt.number {
            _ if is_again => Phase::Again,
            1 => Phase::Before,
            // The earliest of many attempts are not told.
            _ => Phase::Between,
        };
        until(attempt.started_at, before, due);
        let ended = if attempt.goes_on {
            end
        } else {
            Attempted::end(attempt.started_at, attempt.millis)
        };
        until(ended, Phase::Attempt, due);
        due = attempt.next;
    }
    let last = attempts.last().map_or(0, |attempt| attempt.number);
    if let Some(again) = course.again_at.filter(|_| last == course.again_after) {
        until(again, Phase::Again, due);
        due = Due::At(again);
    }
    until(end, Phase::Waiting, course.due_at.map_or(due, Due::At));
    stretches
}

impl Stretch {
    /// Two, of which the second begins at `at`, as far as that lies in between, and could be sent then.
    pub(crate) fn cut(self, at: DateTime<Utc>) -> [Self; 2] {
        let at = at.clamp(self.from, self.until);
        [
            Self { until: at, ..self },
            Self {
                from: at,
                due: Due::At(at),
                ..self
            },
        ]
    }

    /// Its parts before, in and after the times in which it had been given up, with whether it was. What it waits for once it is replayed is another
    /// attempt.
    pub(crate) fn apart(self, given_up: &[(DateTime<Utc>, DateTime<Utc>)]) -> Vec<(Self, bool)> {
        let (mut parts, mut rest) = (Vec::new(), self);
        for (from, until) in given_up {
            if rest.phase == Phase::Attempt || *until <= rest.from || rest.until <= *from {
                continue;
            }
            let [before, after] = rest.cut(*from);
            let [during, after] = after.cut(*until);
            parts.extend([(before, false), (during, true)]);
            rest = after;
            if rest.phase == Phase::Again {
                rest.phase = Phase::Between;
            }
        }
        parts.push((rest, false));
        parts
    }

    /// Since when one stop followed the other until its end, or nearly so.
    fn stopped_to_the_end<C>(&self, stops: &[Stop<C>]) -> DateTime<Utc> {
        let mut stops: Vec<_> = stops
            .iter()
            .map(|stop| (stop.until.unwrap_or(self.until), stop.from))
            .collect();
        stops.sort_unstable();
        let mut since = self.until - RESUMED;
        for (until, from) in stops.into_iter().rev() {
            if until >= since {
                since = since.min(from);
            }
        }
        since
    }

    /// How much of it each of `stops` took, of those at once the first one, and how much none did. A stop takes nothing before it could have been
    /// sent, and none of an attempt, since it ends none that is under way.
    pub(crate) fn split<C: Copy>(&self, stops: &[Stop<C>]) -> Vec<(Option<C>, TimeDelta)> {
        let (due, is_put_off) = match self.due {
            Due::At(at) => (at, false),
            Due::NotBefore(at) => (at, true),
        };
        let could_be_sent = matches!(self.phase, Phase::Before | Phase::Between | Phase::Waiting);
        let counted_from = if is_put_off {
            self.stopped_to_the_end(stops)
        } else {
            self.from
        };
        let is_cause =
            |stop: &&Stop<C>| could_be_sent && stop.until.is_none_or(|until| until >= counted_from);
        let stopped: Vec<_> = stops
            .iter()
            .filter(is_cause)
            .map(|stop| {
                let from = stop.from.max(due).max(self.from);
                let until = stop.until.map_or(self.until, |until| until.min(self.until));
                (stop.cause, from, until)
            })
            .filter(|(_, from, until)| from < until)
            .collect();
        let mut edges = vec![self.from, self.until];
        edges.extend(stopped.iter().flat_map(|(_, from, until)| [*from, *until]));
        edges.sort_unstable();
        edges.dedup();
        let took = edges.windows(2).map(|edges| {
            let in_force = |(_, from, until): &&(C, DateTime<Utc>, DateTime<Utc>)| {
                *from <= edges[0] && edges[1] <= *until
            };
            let cause = stopped.iter().find(in_force).map(|(cause, ..)| *cause);
            (cause, edges[1] - edges[0])
        });
        took.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
    }

    /// What was accepted at once and waits.
    fn course(now: i64) -> Course {
        Course {
            accepted_at: at(0),
            began_as: "accepted",
            finished_at: None,
            now: at(now),
            first: Due::At(at(0)),
            due_at: None,
            again_after: 0,
            again_at: None,
            was_delivered: false,
        }
    }

    /// Two attempts that took no time, one at once and one at `minute`, of which the second could follow when `next` says.
    fn tried_at(minute: i64, next: Due) -> Vec<Stretch> {
        let attempt = |number, minute, next| Attempted {
            number,
            started_at: at(minute),
            millis: Some(0),
            goes_on: false,
            next,
        };
        let attempts = [attempt(1, 0, next), attempt(2, minute, Due::At(at(minute + 60)))];
        walk(&course(minute), &attempts)
    }

    /// How many minutes stops took, and how many none did.
    fn minutes(stretches: &[Stretch], stops: &[(i64, Option<i64>)]) -> (i64, i64) {
        let stops: Vec<_> = stops
            .iter()
            .map(|(from, until)| Stop {
                cause: (),
                from: at(*from),
                until: until.map(at),
            })
            .collect();
        let mut sums = (TimeDelta::zero(), TimeDelta::zero());
        for (cause, took) in stretches.iter().flat_map(|stretch| stretch.split(&stops)) {
            match cause {
                Some(()) => sums.0 += took,
                None => sums.1 += took,
            }
        }
        (sums.0.num_minutes(), sums.1.num_minutes())
    }

    /// What it is, when the second attempt was due and when it began, what was stopped, and how many minutes that took.
    type Case = (&'static str, Due, i64, &'static [(i64, Option<i64>)], i64);

    #[test]
    fn a_stop_takes_what_it_kept_back_and_nothing_that_was_due_later_anyway() {
        let exactly = Due::At(at(10));
        let put_off = Due::NotBefore(at(10));
        let cases: [Case; 12] = [
            ("wholly inside the wait", exactly, 10, &[(2, Some(8))], 0),
            ("wholly inside, put off", put_off, 20, &[(11, Some(13))], 0),
            ("over the time it was due", exactly, 16, &[(5, Some(16))], 6),
            ("the same, put off", put_off, 16, &[(5, Some(16))], 6),
            ("a queue follows", exactly, 20, &[(5, Some(16))], 6),
            ("after it was due", exactly, 20, &[(12, Some(19))], 7),
            ("two of them", exactly, 20, &[(2, Some(12)), (14, Some(20))], 8),
            ("two, put off", put_off, 20, &[(11, Some(12)), (14, Some(20))], 6),
            (
                "two in a row, put off",
                put_off,
                20,
                &[(11, Some(14)), (14, Some(20))],
                9,
            ),
            ("two at once", exactly, 20, &[(12, Some(18)), (14, Some(20))], 8),
            ("one that goes on", exactly, 20, &[(15, None)], 5),
            (
                "before and after all",
                exactly,
                20,
                &[(-9, Some(0)), (20, None)],
                0,
            ),
        ];
        for (case, next, began, stops, stopped) in cases {
            let took = minutes(&tried_at(began, next), stops);
            assert_eq!(took, (stopped, began - stopped), "{case}");
        }
    }

    #[test]
    fn what_was_kept_back_from_the_beginning_was_by_nothing_else() {
        for (due_at, took) in [(None, (30, 0)), (Some(20), (10, 20)), (Some(40), (0, 30))] {
            let waits = Course {
                due_at: due_at.map(at),
                ..course(30)
            };
            assert_eq!(minutes(&walk(&waits, &[]), &[(-5, None)]), took);
        }
    }

    #[test]
    fn an_attempt_that_is_under_way_is_stopped_by_nothing() {
        let attempt = Attempted {
            number: 1,
            started_at: at(1),
            millis: None,
            goes_on: true,
            next: Due::At(at(1)),
        };
        assert_eq!(minutes(&walk(&course(9), &[attempt]), &[(0, None)]), (1, 8));
    }

    #[test]
    fn a_stretch_that_is_cut_is_the_same_time() {
        let stretch = tried_at(10, Due::At(at(10)))[0];
        for (minute, first) in [(4, 4), (-1, 0), (99, 10)] {
            let parts = stretch.cut(at(minute));
            assert_eq!(minutes(&parts[..1], &[]), (0, first));
            assert_eq!(minutes(&parts, &[]), (0, 10));
        }
    }
}
