//! Which failures of endpoints are ours, as far as this engine can tell and others say; shared by its stages. What it holds is told to
//! the database, for operators, other engines and promoters.
//!
//! It deliberately sends nothing: probes are begun by the loop, which knows the slots.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::Clock;
use domain::notification::{
    DeliveryOutcome, OUTAGE_WINDOW, Observation, OutageChange, OutageClass, OutageDecision, OutageWatch,
    Tried,
};
use lifecycle::error_chain;
use store::Store;
use store::webhook::{OutageNote, WITHHELD_FOR};
use telemetry::Metric;
use tokio::time::{Instant, MissedTickBehavior, interval};
use uuid::Uuid;

use super::Lane;

/// From one probe of an engine to the next, and from one look at what other engines hold to the next.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// From one renewal of what is withheld to the next.
const RENEWAL: Duration = Duration::from_secs(WITHHELD_FOR.as_secs() / 3);
/// Subscriptions that are noted by one statement.
const AT_ONCE: usize = 2_000;
/// How long the database may take to note it.
const LIMIT: Duration = Duration::from_secs(5);

pub(crate) struct Outages {
    lane: Lane,
    store: Store,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    watch: OutageWatch,
    /// Subscriptions whose probe is under way.
    probed: HashSet<Uuid>,
    /// What is known of each class that was held, and not noted yet.
    probe_notes: BTreeMap<OutageClass, ProbeNote>,
    /// Since when at the earliest what led to the present hold, or to the last one, can have failed.
    onset: Option<DateTime<Utc>>,
    /// Subscriptions that failed in it, and have not come to another end since.
    accused: BTreeSet<Uuid>,
}

#[derive(Default)]
struct ProbeNote {
    probes: u32,
    answer: String,
}

/// What is in the database as far as this engine has written it.
#[derive(Default)]
struct Written {
    withheld: HashSet<Uuid>,
    renewed: Option<Instant>,
}

impl Outages {
    pub(crate) fn new(lane: Lane, store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            lane,
            store,
            clock,
            state: Mutex::default(),
        }
    }

    /// Takes an outcome in, and says whether it counts.
    pub(crate) fn observe(&self, tried: Tried<'_>, outcome: &DeliveryOutcome) -> OutageDecision {
        let mut state = self.state();
        let observation = Observation::of(outcome);
        let before = state.watch.convinced();
        let withheld = state.watch.withheld_for(tried.subscription);
        let decision = state.watch.observe(tried, observation);
        match decision {
            OutageDecision::Spared(_) => state.accused.insert(tried.subscription),
            OutageDecision::Counts => state.accused.remove(&tried.subscription),
        };
        if state.probed.remove(&tried.subscription)
            && let Some(class) = withheld
        {
            let failed = decision == OutageDecision::Spared(class);
            Metric::DeliveryProbes
                .increment_with(&[("outcome", if failed { "failed" } else { "answered" })], 1);
            let note = state.probe_notes.entry(class).or_default();
            note.probes = note.probes.saturating_add(1);
            note.answer = words(outcome);
        }
        if let OutageDecision::Spared(class) = decision {
            Metric::DeliveryAttemptsSpared.increment_with(&[("class", label(class).as_str())], 1);
            state.probe_notes.entry(class).or_default().answer = words(outcome);
        }
        self.tell_of_changes(&mut state, &before, outcome);
        decision
    }

    fn tell_of_changes(&self, state: &mut State, before: &[OutageClass], outcome: &DeliveryOutcome) {
        let now = state.watch.convinced();
        for class in now.iter().filter(|class| !before.contains(class)) {
            tracing::warn!(
                class = class.as_str(),
                error = words(outcome),
                "most endpoints fail in one way at once; what fails in it is not counted, and probed"
            );
        }
        for class in before.iter().filter(|class| !now.contains(class)) {
            tracing::info!(
                class = class.as_str(),
                "endpoints answer again; what waited for them is sent"
            );
        }
        if now.len() > before.len() {
            let accused = state
                .watch
                .withheld()
                .into_iter()
                .map(|(subscription, _)| subscription);
            state.accused.extend(accused);
        }
        if before.is_empty() && !now.is_empty() {
            let window = TimeDelta::from_std(OUTAGE_WINDOW).unwrap_or(TimeDelta::MAX);
            state.onset = self.clock.now().checked_sub_signed(window);
        }
    }

    /// Whose oldest notification is to be sent as a probe, of those that are `free`.
    pub(crate) fn next_probe(&self, free: impl Fn(Uuid) -> bool) -> Option<Uuid> {
        let mut state = self.state();
        let turns = state.watch.withheld().len();
        (0..turns)
            .map_while(|_| state.watch.next_probe())
            .find(|subscription| free(*subscription))
    }

    /// A probe is under way.
    pub(crate) fn probing(&self, subscription: Uuid) {
        self.state().probed.insert(subscription);
    }

    /// Nothing of this subscription can be sent as a probe.
    pub(crate) fn nothing_waits(&self, subscription: Uuid) {
        self.state().watch.nothing_waits(subscription);
    }

    pub(crate) fn take_changes(&self) -> Vec<OutageChange> {
        self.state().watch.take_changes()
    }

    /// The subscriptions that are sent nothing but probes.
    pub(crate) fn withheld(&self) -> Vec<(Uuid, OutageClass)> {
        self.state().watch.withheld()
    }

    /// Keeps the database told, and looks at what other engines hold. Never ends.
    pub(crate) async fn keep(&self) {
        let mut written = Written::default();
        let mut turns = interval(PROBE_INTERVAL);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            turns.tick().await;
            // Apart, so that many who are withheld do not keep others from learning that the class is held. What fails is told and
            // asked again at the next turn.
            let exchanged = store::within(LIMIT, self.exchange()).await;
            let withheld = store::within(RENEWAL, self.note_withheld(&mut written)).await;
            if let Err(error) = exchanged.and(withheld) {
                tracing::debug!(error = error_chain(&error), "cannot exchange what is held");
            }
        }
    }

    async fn exchange(&self) -> Result<(), store::Error> {
        let elsewhere = self.store.outages().await?;
        let elsewhere: Vec<OutageClass> = elsewhere
            .iter()
            .filter_map(|name| OutageClass::named(name))
            .collect();
        self.state().watch.follow(&elsewhere);
        self.note_holds().await
    }

    async fn note_holds(&self) -> Result<(), store::Error> {
        let convinced = {
            let mut state = self.state();
            let convinced = state.watch.convinced();
            // What is held for another engine's sake alone is that one's to tell of.
            state.probe_notes.retain(|class, _| convinced.contains(class));
            convinced
        };
        for class in convinced {
            let (probes, answer) = {
                let mut state = self.state();
                let note = state.probe_notes.entry(class).or_default();
                (std::mem::take(&mut note.probes), note.answer.clone())
            };
            let note = OutageNote {
                class: class.as_str(),
                probes,
                answer: &answer,
            };
            self.store.note_outage(note).await?;
        }
        Ok(())
    }

    async fn note_withheld(&self, written: &mut Written) -> Result<(), store::Error> {
        let withheld = self.withheld();
        let now: HashSet<Uuid> = withheld.iter().map(|(subscription, _)| *subscription).collect();
        let lane = self.lane.label();
        let released: Vec<Uuid> = written.withheld.difference(&now).copied().collect();
        if !released.is_empty() {
            self.store.release_subscriptions(lane, &released).await?;
        }
        let due = written.renewed.is_none_or(|at| at.elapsed() >= RENEWAL);
        let new: Vec<(Uuid, &str)> = withheld
            .iter()
            .filter(|(subscription, _)| due || !written.withheld.contains(subscription))
            .map(|(subscription, class)| (*subscription, class.as_str()))
            .collect();
        for part in new.chunks(AT_ONCE) {
            self.store.withhold_subscriptions(lane, part).await?;
        }
        if due || !new.is_empty() {
            self.forgive().await?;
        }
        if due {
            written.renewed = Some(Instant::now());
        }
        written.withheld = now;
        Ok(())
    }

    /// What was recorded of them before it was known whose fault it is, here or by other engines, was not theirs. It may be recorded
    /// a while after it was found out, so this is said again and again.
    async fn forgive(&self) -> Result<(), store::Error> {
        let (onset, accused) = {
            let state = self.state();
            let onset = state.onset.filter(|_| !state.watch.convinced().is_empty());
            (onset, state.accused.iter().copied().collect::<Vec<_>>())
        };
        match onset {
            Some(onset) if !accused.is_empty() => self.store.forgive_failures(&accused, onset).await,
            _ => Ok(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn label(class: OutageClass) -> String {
    class.as_str().to_ascii_lowercase()
}

fn words(outcome: &DeliveryOutcome) -> String {
    match outcome {
        DeliveryOutcome::Answered { status, .. } => format!("answered {status}"),
        DeliveryOutcome::Failed { message, .. } => message.clone(),
    }
}
