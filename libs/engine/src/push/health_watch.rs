//! Whether Swrve is in order, as the sender's outcomes tell; shared by the stages of one term.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use domain::push::{HoldDecision, PushId, SendOutcome, Sign, SwrveWatch};
use telemetry::Metric;
use tokio::sync::watch;

/// What Swrve said last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Whether that shows that it does its work.
    pub(crate) works: bool,
    pub(crate) words: String,
}

pub(crate) struct HealthWatch {
    state: Mutex<State>,
    holds: watch::Sender<bool>,
}

struct State {
    watch: SwrveWatch,
    answer: Option<Answer>,
    /// The last failure, in words.
    words: String,
}

impl HealthWatch {
    /// For a term that begins: nothing has been heard of Swrve yet, but what the watch knows of the term before.
    pub(crate) fn new(watch: SwrveWatch) -> Self {
        let since = watch.failing_since();
        Metric::PushFailingSince.set(since.map_or(f64::NAN, |since| since.timestamp() as f64));
        Self {
            holds: watch::Sender::new(watch.holds()),
            state: Mutex::new(State {
                watch,
                answer: None,
                words: String::new(),
            }),
        }
    }

    /// Takes an outcome in; [`HoldDecision::Spared`] when it does not count.
    pub(crate) fn observe(&self, push: PushId, outcome: &SendOutcome, at: DateTime<Utc>) -> HoldDecision {
        let Some(sign) = Sign::of(outcome) else {
            return HoldDecision::Counts;
        };
        let works = sign == Sign::Works;
        let words = words(outcome);
        let mut state = self.state();
        if !works {
            state.words.clone_from(&words);
        }
        state.answer = Some(Answer { works, words });
        let ruling = state.watch.observe(push, sign, at);
        Metric::PushFailingSince.set(if works {
            0.0
        } else {
            state.watch.failing_since().unwrap_or(at).timestamp() as f64
        });
        self.holds.send_if_modified(|holds| {
            let changed = *holds != state.watch.holds();
            *holds = state.watch.holds();
            changed
        });
        ruling
    }

    /// Whether only probes may be sent.
    pub(crate) fn holds(&self) -> bool {
        *self.holds.borrow()
    }

    /// Completes when only probes may be sent.
    pub(crate) async fn held(&self) {
        // The sender of changes is in here.
        let _ = self.holds.subscribe().wait_for(|holds| *holds).await;
    }

    /// A probe has succeeded.
    pub(crate) fn resume(&self) {
        self.state().watch = SwrveWatch::wary();
        self.holds.send_replace(false);
    }

    /// What Swrve has said since [`Self::forget`].
    pub(crate) fn answer(&self) -> Option<Answer> {
        self.state().answer.clone()
    }

    pub(crate) fn forget(&self) {
        self.state().answer = None;
    }

    /// The last failure, in words.
    pub(crate) fn last_words(&self) -> String {
        self.state().words.clone()
    }

    /// Since when nothing but failures came.
    pub(crate) fn failing_since(&self) -> Option<DateTime<Utc>> {
        self.state().watch.failing_since()
    }

    /// The pushes that were hit while it was not known yet.
    pub(crate) fn accused(&self) -> Vec<PushId> {
        self.state().watch.accused()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A failure as it stands with its attempt: by Swrve's own code, else by the HTTP status.
fn words(outcome: &SendOutcome) -> String {
    match outcome {
        SendOutcome::Refused {
            status,
            code,
            message,
        } => {
            let code = code.map_or_else(|| status.to_string(), |code| code.to_string());
            if message.starts_with(&code) {
                message.clone()
            } else {
                format!("{code} {message}")
            }
        }
        SendOutcome::Unreachable { message } => message.clone(),
        _ => "accepted".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_by_the_code_that_its_attempt_has() {
        let refused = |code, message: &str| SendOutcome::Refused {
            status: 503,
            code,
            message: message.to_owned(),
        };
        for (outcome, said) in [
            (refused(Some(5031), "try later"), "5031 try later"),
            (refused(None, "try later"), "503 try later"),
            (
                refused(None, "503 Service Unavailable"),
                "503 Service Unavailable",
            ),
        ] {
            assert_eq!(words(&outcome), said);
        }
    }

    /// The lane is held in another term than that in which the failures began.
    #[test]
    fn a_failing_probe_leaves_since_when_swrve_fails() {
        let push = PushId::at(DateTime::UNIX_EPOCH);
        let silent = SendOutcome::Unreachable {
            message: "no answer".to_owned(),
        };
        let at = |seconds| DateTime::UNIX_EPOCH + chrono::TimeDelta::seconds(seconds);
        let known = HealthWatch::new(SwrveWatch::holding(Some(at(5))));
        let unknown = HealthWatch::new(SwrveWatch::holding(None));
        for seconds in [40, 41, 42] {
            known.observe(push, &silent, at(seconds));
            unknown.observe(push, &silent, at(seconds));
        }
        assert_eq!(known.failing_since(), Some(at(5)));
        assert_eq!(unknown.failing_since(), Some(at(40)));
        known.observe(push, &SendOutcome::Delivered, at(43));
        assert_eq!(known.failing_since(), None);
    }
}
