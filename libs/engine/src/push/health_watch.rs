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
    /// For a term that begins: nothing has been heard of Swrve yet.
    pub(crate) fn new(watch: SwrveWatch) -> Self {
        Metric::PushFailingSince.set(f64::NAN);
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

    /// The pushes that were hit while it was not known yet.
    pub(crate) fn accused(&self) -> Vec<PushId> {
        self.state().watch.accused()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn words(outcome: &SendOutcome) -> String {
    match outcome {
        SendOutcome::Refused { status, message, .. } if message.starts_with(&status.to_string()) => {
            message.clone()
        }
        SendOutcome::Refused { status, message, .. } => format!("{status} {message}"),
        SendOutcome::Unreachable { message } => message.clone(),
        _ => "accepted".to_owned(),
    }
}
