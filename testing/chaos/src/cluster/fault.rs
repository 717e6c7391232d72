//! What can go wrong: the names of faults and of what they are about. How each is brought about is not done here.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A service of Postrider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Receives pushes and events.
    IngestApi,
    /// Sends first attempts.
    Dispatcher,
    /// Promotes, retries and rescues.
    RetryWorker,
    /// Serves resellers.
    ResellerPortal,
    /// Serves on-call.
    OperatorApi,
    /// Takes messages of Web Push from senders.
    WebpushEndpoint,
    /// Keeps the connections of user agents.
    WebpushConnection,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::IngestApi,
        Self::Dispatcher,
        Self::RetryWorker,
        Self::ResellerPortal,
        Self::OperatorApi,
        Self::WebpushEndpoint,
        Self::WebpushConnection,
    ];

    /// As `postrider serve` calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::IngestApi => "ingest-api",
            Self::Dispatcher => "dispatcher",
            Self::RetryWorker => "retry-worker",
            Self::ResellerPortal => "reseller-portal",
            Self::OperatorApi => "operator-api",
            Self::WebpushEndpoint => "webpush-endpoint",
            Self::WebpushConnection => "webpush-connection",
        }
    }
}

/// One replica of a service; replicas count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Replica {
    /// Of which service.
    pub service: Service,
    /// Which of its replicas, from 0.
    pub index: usize,
}

impl Service {
    /// The replica with this index.
    pub const fn replica(self, index: usize) -> Replica {
        Replica { service: self, index }
    }
}

impl fmt::Display for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.service.name(), self.index)
    }
}

/// One end of a link. Links are there from replicas to what they use, from clients to replicas that listen, from the endpoint nodes of
/// Web Push to its connection nodes, and between broker nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The callers of the services over HTTP, and user agents.
    Clients,
    /// The endpoint nodes of Web Push, as callers of a connection node's router port: it has one name for all of them.
    EndpointNodes,
    /// A replica of a service.
    Replica(Replica),
    /// The database.
    Postgres,
    /// A node of the broker, from 0.
    BrokerNode(usize),
    /// All nodes of the broker.
    Broker,
    /// Swrve.
    Swrve,
    /// The endpoints of resellers. All replicas reach them over the same links, so a fault there hits every one of them.
    Receivers,
}

/// A fault. Those that last cure themselves after `lasts`, or with [`super::Cluster::heal_all`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum ClusterFault {
    /// SIGKILL; it starts again after a second.
    Kill {
        /// Whom.
        replica: Replica,
    },
    /// SIGTERM; it starts again after its end.
    StopGracefully {
        /// Whom.
        replica: Replica,
    },
    /// SIGSTOP, and SIGCONT afterwards.
    Freeze {
        /// Whom.
        replica: Replica,
        /// How long.
        lasts: Duration,
    },
    /// The wall clock of a replica jumps to so far from the true time, and stays there until all is healed.
    ClockStep {
        /// Whose.
        replica: Replica,
        /// How many milliseconds ahead of the true time, or behind it when less than 0.
        by_millis: i64,
    },
    /// SIGKILL of the broker node that leads `push.ready`; it is down for a while.
    KillBrokerLeader {
        /// How long it is down.
        lasts: Duration,
    },
    /// SIGKILL of a broker node; it is down for a while.
    KillBrokerNode {
        /// Which, from 0.
        node: usize,
        /// How long it is down.
        lasts: Duration,
    },
    /// The links between a broker node and its peers are silent, both ways; services still reach it.
    PartitionBrokerNode {
        /// Which, from 0.
        node: usize,
        /// How long.
        lasts: Duration,
    },
    /// A memory alarm: the broker takes no messages.
    MemoryAlarm {
        /// How long.
        lasts: Duration,
    },
    /// A disk alarm: the broker takes no messages.
    DiskAlarm {
        /// How long.
        lasts: Duration,
    },
    /// SIGKILL of the database's first process, which takes all others down; it recovers when it starts again.
    KillPostgres {
        /// How long it is down.
        lasts: Duration,
    },
    /// Connections end, and new ones are refused or end at once.
    Cut {
        /// Who connects.
        from: End,
        /// To whom.
        to: End,
        /// How long.
        lasts: Duration,
    },
    /// Connections stay open, new ones are taken, and nothing passes.
    Blackhole {
        /// Who connects.
        from: End,
        /// To whom.
        to: End,
        /// How long.
        lasts: Duration,
    },
    /// What passes is late.
    Latency {
        /// Who connects.
        from: End,
        /// To whom.
        to: End,
        /// How late, each way.
        delay: Duration,
        /// Up to how much later still, at random.
        jitter: Duration,
        /// How long.
        lasts: Duration,
    },
    /// Connections end; new ones work.
    ResetConnections {
        /// Who connects.
        from: End,
        /// To whom.
        to: End,
    },
}

impl ClusterFault {
    /// Every kind, in the order of the enum.
    pub const KINDS: [&str; 14] = [
        "kill",
        "stop-gracefully",
        "freeze",
        "clock-step",
        "kill-broker-leader",
        "kill-broker-node",
        "partition-broker-node",
        "memory-alarm",
        "disk-alarm",
        "kill-postgres",
        "cut",
        "blackhole",
        "latency",
        "reset-connections",
    ];

    /// Its kind, as the command line and the report name it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Kill { .. } => "kill",
            Self::StopGracefully { .. } => "stop-gracefully",
            Self::Freeze { .. } => "freeze",
            Self::ClockStep { .. } => "clock-step",
            Self::KillBrokerLeader { .. } => "kill-broker-leader",
            Self::KillBrokerNode { .. } => "kill-broker-node",
            Self::PartitionBrokerNode { .. } => "partition-broker-node",
            Self::MemoryAlarm { .. } => "memory-alarm",
            Self::DiskAlarm { .. } => "disk-alarm",
            Self::KillPostgres { .. } => "kill-postgres",
            Self::Cut { .. } => "cut",
            Self::Blackhole { .. } => "blackhole",
            Self::Latency { .. } => "latency",
            Self::ResetConnections { .. } => "reset-connections",
        }
    }
}
