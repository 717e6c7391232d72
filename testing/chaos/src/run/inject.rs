//! Brings the faults of a plan about, each at its time, whether the ones before have ended or not.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::stage::Stage;
use crate::cluster;
use crate::plan::{Fault, Plan, Planned};

/// A fault as it happened.
#[derive(Debug, Clone)]
pub struct Injection {
    /// As it was planned.
    pub planned: Planned,
    /// When it happened, from the beginning of the faults.
    pub at: Duration,
    /// What came of it.
    pub result: InjectionResult,
}

/// What came of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InjectionResult {
    /// It happened.
    Done,
    /// What it is about was away already, or nothing was there to be done.
    Nothing,
    /// It could not be brought about.
    Failed(String),
}

impl Injection {
    /// For how long it was in force, as planned.
    pub fn lasted(&self) -> Duration {
        use cluster::ClusterFault;
        match &self.planned.fault {
            Fault::Cluster(
                ClusterFault::Freeze { lasts, .. }
                | ClusterFault::KillBrokerLeader { lasts }
                | ClusterFault::KillBrokerNode { lasts, .. }
                | ClusterFault::PartitionBrokerNode { lasts, .. }
                | ClusterFault::MemoryAlarm { lasts }
                | ClusterFault::DiskAlarm { lasts }
                | ClusterFault::KillPostgres { lasts }
                | ClusterFault::Cut { lasts, .. }
                | ClusterFault::Blackhole { lasts, .. }
                | ClusterFault::Latency { lasts, .. },
            )
            | Fault::Swrve { lasts, .. }
            | Fault::Receivers { lasts, .. }
            | Fault::Pause { lasts, .. } => *lasts,
            _ => Duration::ZERO,
        }
    }
}

/// Everything that the plan says; returns when the time of faults is over. What lasts longer is left to the healing.
pub(super) async fn all(stage: &Stage, plan: &Plan) -> Vec<Injection> {
    let began = Instant::now();
    let mut injections = Vec::new();
    let mut people: Vec<JoinHandle<()>> = Vec::new();
    let pending = plan.faults.iter().map(|planned| async move {
        tokio::time::sleep_until(began + planned.at).await;
        let at = began.elapsed();
        let (result, person) = one(stage, &planned.fault).await;
        let planned = planned.clone();
        (Injection { planned, at, result }, person)
    });
    let mut pending: futures::stream::FuturesUnordered<_> = pending.collect();
    while let Some((one, person)) = futures::StreamExt::next(&mut pending).await {
        people.extend(person);
        injections.push(one);
    }
    tokio::time::sleep_until(began + plan.lasts).await;
    people.iter().for_each(JoinHandle::abort);
    injections.sort_by_key(|one: &Injection| one.at);
    injections
}

/// Returns when it has begun, with the task that ends it.
async fn one(stage: &Stage, fault: &Fault) -> (InjectionResult, Option<JoinHandle<()>>) {
    let done = |done: bool| {
        if done {
            InjectionResult::Done
        } else {
            InjectionResult::Nothing
        }
    };
    match fault.clone() {
        Fault::Cluster(fault) => {
            let result = match stage.cluster.inject(&fault).await {
                Ok(cluster::Injected::Yes) => InjectionResult::Done,
                Ok(cluster::Injected::NotApplicable) => InjectionResult::Nothing,
                Err(error) => InjectionResult::Failed(format!("{:#}", error)),
            };
            (result, None)
        }
        Fault::Swrve { behaviour, lasts } => {
            let receivers = stage.receivers.clone();
            let person = tokio::spawn(async move { receivers.swrve_for(behaviour, lasts).await });
            (InjectionResult::Done, Some(person))
        }
        Fault::Receivers { behaviour, lasts } => {
            let receivers = stage.receivers.clone();
            let person = tokio::spawn(async move { receivers.endpoints_for(behaviour, lasts).await });
            (InjectionResult::Done, Some(person))
        }
        Fault::Pause { lane, lasts } => {
            let operators = stage.operators.clone();
            let paused = operators.pause(lane).await;
            let person = tokio::spawn(async move {
                tokio::time::sleep(lasts).await;
                operators.resume(lane).await;
            });
            (done(paused), Some(person))
        }
        Fault::ReplayDeadLetters { lane } => (done(stage.operators.replay_dead_letters(lane).await), None),
        Fault::ReconnectStorm => {
            stage.user_agents.storm();
            (InjectionResult::Done, None)
        }
        Fault::SendAgain { choice } => (done(stage.operators.send_again(choice).await > 0), None),
    }
}
