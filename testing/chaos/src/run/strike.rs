//! Brings the faults of a plan about, each at its time, whether the ones before have ended or not.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::stage::Stage;
use crate::ground;
use crate::plan::{Plan, Planned, Stroke};

/// A fault as it happened.
#[derive(Debug, Clone)]
pub struct Struck {
    /// As it was planned.
    pub planned: Planned,
    /// When it happened, from the beginning of the faults.
    pub at: Duration,
    /// What came of it.
    pub result: Strike,
}

/// What came of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strike {
    /// It happened.
    Done,
    /// What it would have struck was away already, or nothing was there to be done.
    Nothing,
    /// It could not be brought about.
    Failed(String),
}

impl Struck {
    /// For how long it was in force, as planned.
    pub fn lasted(&self) -> Duration {
        use ground::Fault;
        match &self.planned.stroke {
            Stroke::Ground(
                Fault::Freeze { lasts, .. }
                | Fault::KillBrokerLeader { lasts }
                | Fault::KillBrokerNode { lasts, .. }
                | Fault::PartitionBrokerNode { lasts, .. }
                | Fault::MemoryAlarm { lasts }
                | Fault::DiskAlarm { lasts }
                | Fault::KillPostgres { lasts }
                | Fault::Cut { lasts, .. }
                | Fault::Blackhole { lasts, .. }
                | Fault::Latency { lasts, .. },
            )
            | Stroke::Swrve { lasts, .. }
            | Stroke::Receivers { lasts, .. }
            | Stroke::Pause { lasts, .. } => *lasts,
            _ => Duration::ZERO,
        }
    }
}

/// Everything that the plan says; returns when the time of faults is over. What lasts longer is left to the healing.
pub(super) async fn all(stage: &Stage, plan: &Plan) -> Vec<Struck> {
    let began = Instant::now();
    let mut struck = Vec::new();
    let mut people: Vec<JoinHandle<()>> = Vec::new();
    let strikes = plan.strokes.iter().map(|planned| async move {
        tokio::time::sleep_until(began + planned.at).await;
        let at = began.elapsed();
        let (result, person) = one(stage, &planned.stroke).await;
        let planned = planned.clone();
        (Struck { planned, at, result }, person)
    });
    let mut strikes: futures::stream::FuturesUnordered<_> = strikes.collect();
    while let Some((one, person)) = futures::StreamExt::next(&mut strikes).await {
        people.extend(person);
        struck.push(one);
    }
    tokio::time::sleep_until(began + plan.lasts).await;
    people.iter().for_each(JoinHandle::abort);
    struck.sort_by_key(|one: &Struck| one.at);
    struck
}

/// Returns when it has begun, with the task that ends it.
async fn one(stage: &Stage, stroke: &Stroke) -> (Strike, Option<JoinHandle<()>>) {
    let done = |done: bool| if done { Strike::Done } else { Strike::Nothing };
    match stroke.clone() {
        Stroke::Ground(fault) => {
            let result = match stage.ground.inject(&fault).await {
                Ok(ground::Struck::Yes) => Strike::Done,
                Ok(ground::Struck::NotApplicable) => Strike::Nothing,
                Err(error) => Strike::Failed(format!("{:#}", anyhow::Error::new(error))),
            };
            (result, None)
        }
        Stroke::Swrve { mood, lasts } => {
            let receivers = stage.receivers.clone();
            let person = tokio::spawn(async move { receivers.swrve_for(mood, lasts).await });
            (Strike::Done, Some(person))
        }
        Stroke::Receivers { mood, lasts } => {
            let receivers = stage.receivers.clone();
            let person = tokio::spawn(async move { receivers.endpoints_for(mood, lasts).await });
            (Strike::Done, Some(person))
        }
        Stroke::Pause { lane, lasts } => {
            let meddler = stage.meddler.clone();
            let paused = meddler.pause(lane).await;
            let person = tokio::spawn(async move {
                tokio::time::sleep(lasts).await;
                meddler.resume(lane).await;
            });
            (done(paused), Some(person))
        }
        Stroke::ReplayDeadLetters { lane } => (done(stage.meddler.replay_dead_letters(lane).await), None),
        Stroke::SendAgain { choice } => (done(stage.meddler.send_again(choice).await > 0), None),
    }
}
