//! The sign of life that a service leaves in the database every few seconds, for operators who ask how the system is.
//!
//! It deliberately disturbs nothing: while the database is away it is silent, and no work waits for it.

use std::collections::VecDeque;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use lifecycle::{Readiness, Shutdown, error_chain};
use store::{Beat, Store};
use tokio::time::MissedTickBehavior;
use uuid::Uuid;

use super::report::{AnswerSecond, Counters, Earlier, LATELY, PaceSecond, Report, SwrveReport};

/// How often a service reports itself.
pub const INTERVAL: Duration = Duration::from_secs(5);

/// How often a service that has reported that Swrve fails looks whether it works again, which it does not keep until the next report.
const LOOK: Duration = Duration::from_millis(500);
/// How long a report may take; also the farewell.
const LIMIT: Duration = Duration::from_secs(1);
/// After how long a service that has not said goodbye is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// How many reports lie between two looks for such services: an hour.
const BEATS_BETWEEN_FORGETTING: u64 = 720;
/// How many lie between two looks for minutes that are an hour old.
const BEATS_BETWEEN_MINUTES: u64 = 60;
/// Answers that took longer say too little about the other clock.
const PRECISE: TimeDelta = TimeDelta::milliseconds(500);

/// The operating system's process that all services in it share.
static PROCESS: LazyLock<Process> = LazyLock::new(|| Process {
    id: Uuid::now_v7(),
    host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
});

struct Process {
    id: Uuid,
    host: String,
}

/// Reports until shutdown, and says goodbye then. Each report is made whole: one that is given up half-way could arrive
/// after the farewell.
pub(crate) async fn run(store: Store, readiness: Readiness, shutdown: Shutdown) {
    let mut heart = Heartbeat {
        service: store.service_name(),
        started: Instant::now(),
        clock_ahead: None,
        history: VecDeque::new(),
        store,
        readiness,
    };
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut beats: u64 = 0;
    let mut told = None;
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            _ = ticks.tick() => {}
            () = works_again(told, super::report::swrve_now) => ticks.reset(),
        }
        told = heart.beat().await;
        if beats.is_multiple_of(BEATS_BETWEEN_FORGETTING) {
            heart.forget_others().await;
        }
        if beats.is_multiple_of(BEATS_BETWEEN_MINUTES) {
            heart.forget_minutes().await;
        }
        beats += 1;
    }
    heart.say_goodbye().await;
}

/// Completes when Swrve works again, of which `told` said that it fails; never where it did not.
async fn works_again(told: Option<SwrveReport>, heard: impl Fn() -> Option<SwrveReport>) {
    let fails = |heard: Option<SwrveReport>| heard.is_some_and(|swrve| swrve.failing_since.is_some());
    if !fails(told) {
        return std::future::pending().await;
    }
    loop {
        tokio::time::sleep(LOOK).await;
        if !fails(heard()) {
            return;
        }
    }
}

struct Heartbeat {
    service: String,
    started: Instant,
    store: Store,
    readiness: Readiness,
    clock_ahead: Option<TimeDelta>,
    /// What had been counted at each report of the last minutes.
    history: VecDeque<(Instant, Counters)>,
}

impl Heartbeat {
    /// Reports itself; returns what that says of Swrve.
    async fn beat(&mut self) -> Option<SwrveReport> {
        let mut report = Report::now(
            self.readiness.report(),
            self.clock_ahead.map(|ahead| ahead.num_milliseconds()),
        );
        let seconds = telemetry::pace::of_late(SystemClock.now().timestamp());
        let sent = seconds.iter().filter(|second| second.sends > 0);
        report.pace = sent.copied().map(PaceSecond::from).collect();
        let answered = seconds
            .iter()
            .filter(|second| second.answers.iter().any(|count| *count > 0));
        report.answers = answered
            .map(|second| AnswerSecond(second.at, second.answers))
            .collect();
        report.earlier = earlier(&mut self.history, Instant::now(), report.counters);
        let state = serde_json::to_value(&report)
            .expect("invariant: a struct of numbers, strings and maps with text keys is valid JSON");
        let beat = Beat {
            process: PROCESS.id,
            service: &self.service,
            host: &PROCESS.host,
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION"),
            uptime: self.started.elapsed(),
            state: &state,
        };
        let asked = SystemClock.now();
        match store::within(LIMIT, self.store.beat(beat)).await {
            Ok(database) => self.clock_ahead = ahead(asked, database, SystemClock.now()).or(self.clock_ahead),
            Err(error) => tracing::debug!(error = error_chain(&error), "could not report that it lives"),
        }
        report.swrve
    }

    async fn forget_others(&self) {
        let forgetting = self.store.forget_silent_processes(FORGOTTEN_AFTER);
        if let Err(error) = store::within(LIMIT, forgetting).await {
            tracing::debug!(error = error_chain(&error), "could not forget silent processes");
        }
    }

    async fn forget_minutes(&self) {
        if let Err(error) = store::within(LIMIT, self.store.forget_process_minutes()).await {
            tracing::debug!(
                error = error_chain(&error),
                "could not forget what was reported an hour ago"
            );
        }
    }

    async fn say_goodbye(&self) {
        let farewell = self.store.forget_process(PROCESS.id, &self.service);
        if let Err(error) = store::within(LIMIT, farewell).await {
            tracing::debug!(error = error_chain(&error), "could not say goodbye");
        }
    }
}

/// What had been counted at the beginning of [`LATELY`]; takes in what is counted now.
fn earlier(history: &mut VecDeque<(Instant, Counters)>, now: Instant, counters: Counters) -> Option<Earlier> {
    history.push_back((now, counters));
    while history
        .front()
        .is_some_and(|(at, _)| now.duration_since(*at) > LATELY)
    {
        history.pop_front();
    }
    let (at, counters) = *history.front()?;
    let seconds = now.duration_since(at).as_secs();
    (seconds > 0).then_some(Earlier { seconds, counters })
}

/// How far the own clock is ahead of the database's, which answered somewhere between the question and the answer.
/// `None` when that was too long to tell.
fn ahead(asked: DateTime<Utc>, database: DateTime<Utc>, answered: DateTime<Utc>) -> Option<TimeDelta> {
    let took = answered - asked;
    let precise = took >= TimeDelta::zero() && took <= PRECISE;
    precise.then(|| asked + took / 2 - database)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn that_swrve_works_again_does_not_wait_for_the_next_report() {
        let fails = Some(SwrveReport {
            failing_since: Some(DateTime::UNIX_EPOCH),
        });
        let works = Some(SwrveReport { failing_since: None });
        let looks = Cell::new(0);
        let heard = || {
            looks.set(looks.get() + 1);
            if looks.get() < 3 { fails } else { works }
        };
        let start = tokio::time::Instant::now();
        works_again(fails, heard).await;
        assert_eq!(looks.get(), 3);
        assert!(start.elapsed() < INTERVAL, "{:?}", start.elapsed());
        // What was not said to fail is told in its turn.
        for told in [works, None] {
            let told = tokio::time::timeout(2 * INTERVAL, works_again(told, heard)).await;
            assert!(told.is_err(), "{told:?}");
        }
    }

    #[test]
    fn what_was_counted_is_remembered_for_as_long_as_alerts_look_back() {
        let start = Instant::now();
        let counters = |pushes_sent| Counters {
            pushes_sent,
            ..Counters::default()
        };
        let mut history = VecDeque::new();
        assert_eq!(earlier(&mut history, start, counters(0)), None);
        let beats = LATELY.as_secs() / INTERVAL.as_secs();
        for beat in 1..=3 * beats {
            let now = start + INTERVAL * u32::try_from(beat).unwrap();
            let told = earlier(&mut history, now, counters(beat)).unwrap();
            let back = beat.min(beats);
            assert_eq!(told.seconds, back * INTERVAL.as_secs());
            assert_eq!(told.counters.pushes_sent, beat - back);
        }
        assert_eq!(history.len() as u64, beats + 1);
    }

    #[test]
    fn a_clock_is_compared_with_the_middle_of_question_and_answer() {
        let at = |millis| DateTime::UNIX_EPOCH + TimeDelta::milliseconds(millis);
        assert_eq!(ahead(at(1_000), at(1_050), at(1_100)), Some(TimeDelta::zero()));
        assert_eq!(
            ahead(at(8_000), at(1_050), at(8_100)),
            Some(TimeDelta::seconds(7))
        );
        assert_eq!(
            ahead(at(0), at(1_000), at(2_000)),
            None,
            "a slow answer says nothing"
        );
        assert_eq!(ahead(at(9), at(5), at(0)), None, "the own clock was turned back");
    }
}
