//! How each fault is brought about and cured.

use std::sync::PoisonError;
use std::time::Duration;

use fault_proxy::Toxic;
use tokio_util::sync::CancellationToken;

use super::clock::NOTICED_WITHIN;
use super::rabbit::Alarm;
use super::supervisor::Supervisor;
use super::{Cluster, ClusterFault, End, Replica};

/// The queue whose leader is meant by "the broker's leader".
const QUEUE: &str = "push.ready";

/// Whether a fault was injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injected {
    /// It is in force, or has happened.
    Yes,
    /// What it is about is down already, or not there at all.
    NotApplicable,
}

impl From<bool> for Injected {
    fn from(injected: bool) -> Self {
        if injected { Self::Yes } else { Self::NotApplicable }
    }
}

impl Cluster {
    /// Brings a fault about; returns when it is in force. Those that last cure themselves in the background.
    pub async fn inject(&self, fault: &ClusterFault) -> anyhow::Result<Injected> {
        let injected = match *fault {
            ClusterFault::Kill { replica } => self.replica(replica).is_some_and(Supervisor::kill),
            ClusterFault::StopGracefully { replica } => {
                self.replica(replica).is_some_and(Supervisor::ask_to_stop)
            }
            ClusterFault::Freeze { replica, lasts } => self.freeze(replica, lasts),
            ClusterFault::ClockStep { replica, by_millis } => self.step(replica, by_millis).await?,
            ClusterFault::KillBrokerLeader { lasts } => match self.broker.leader(QUEUE).await {
                Some(node) => self.down(self.broker.node(node), lasts),
                None => false,
            },
            ClusterFault::KillBrokerNode { node, lasts } => self.down(self.broker.node(node), lasts),
            ClusterFault::KillPostgres { lasts } => self.down(Some(&self.postgres_process), lasts),
            ClusterFault::PartitionBrokerNode { node, lasts } => self.partition(node, lasts),
            ClusterFault::MemoryAlarm { lasts } => self.alarm(Alarm::Memory, lasts).await?,
            ClusterFault::DiskAlarm { lasts } => self.alarm(Alarm::Disk, lasts).await?,
            ClusterFault::Cut { from, to, lasts } => self.add(from, to, Toxic::Cut, lasts),
            ClusterFault::Blackhole { from, to, lasts } => self.add(from, to, Toxic::Silence, lasts),
            ClusterFault::Latency {
                from,
                to,
                delay,
                jitter,
                lasts,
            } => self.add(from, to, Toxic::Latency { delay, jitter }, lasts),
            ClusterFault::ResetConnections { from, to } => self.links.reset(from, to),
        };
        Ok(injected.into())
    }

    /// Cures every fault at once and waits until everything runs and is ready.
    pub async fn heal_all(&self) -> anyhow::Result<()> {
        self.healing().cancel();
        self.cures.close();
        self.cures.wait().await;
        self.cures.reopen();
        *self.healing.lock().unwrap_or_else(PoisonError::into_inner) = CancellationToken::new();
        if self.clocks.heal()? {
            tokio::time::sleep(NOTICED_WITHIN).await;
        }
        self.broker.clear_all().await;
        self.ready().await
    }

    fn healing(&self) -> CancellationToken {
        self.healing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn replica(&self, replica: Replica) -> Option<&Supervisor> {
        self.services.get(&replica)
    }

    /// Cures a fault after a while, or when all is healed.
    fn cure_after(&self, lasts: Duration, cure: impl Future<Output = ()> + Send + 'static) {
        let healing = self.healing();
        self.cures.spawn(async move {
            // Either way it is over.
            let _ = tokio::time::timeout(lasts, healing.cancelled()).await;
            cure.await;
        });
    }

    fn freeze(&self, replica: Replica, lasts: Duration) -> bool {
        let frozen = self.replica(replica).and_then(Supervisor::freeze);
        let injected = frozen.is_some();
        self.cure_after(lasts, async move { drop(frozen) });
        injected
    }

    async fn step(&self, replica: Replica, by_millis: i64) -> anyhow::Result<bool> {
        if self.replica(replica).is_none() || !self.clocks.can_be_wrong() {
            return Ok(false);
        }
        self.clocks.step(replica, by_millis)?;
        tokio::time::sleep(NOTICED_WITHIN).await;
        Ok(true)
    }

    fn down(&self, process: Option<&Supervisor>, lasts: Duration) -> bool {
        let Some(process) = process else { return false };
        let held = process.hold();
        let injected = process.kill();
        self.cure_after(lasts, async move { drop(held) });
        injected
    }

    fn partition(&self, node: usize, lasts: Duration) -> bool {
        let peers = (0..self.broker.count()).filter(|peer| *peer != node);
        let cuts: Vec<_> = peers
            .map(|peer| (End::BrokerNode(node), End::BrokerNode(peer)))
            .flat_map(|(one, other)| {
                let there = self.links.add(one, other, Toxic::Cut);
                there.into_iter().chain(self.links.add(other, one, Toxic::Cut))
            })
            .collect();
        let injected = !cuts.is_empty();
        self.cure_after(lasts, async move { drop(cuts) });
        injected
    }

    async fn alarm(&self, alarm: Alarm, lasts: Duration) -> anyhow::Result<bool> {
        let Some(node) = self.broker.raise(alarm).await? else {
            return Ok(false);
        };
        let broker = self.broker.clone();
        self.cure_after(lasts, async move { broker.clear(node, alarm).await });
        Ok(true)
    }

    fn add(&self, from: End, to: End, toxic: Toxic, lasts: Duration) -> bool {
        let toxics = self.links.add(from, to, toxic);
        let injected = !toxics.is_empty();
        self.cure_after(lasts, async move { drop(toxics) });
        injected
    }
}
