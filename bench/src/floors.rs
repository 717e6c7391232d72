//! What the machine does without Postrider, each measured when a scenario first needs it and once in a run.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use crate::floor::{self, Inserts};
use crate::receiver::Receiver;
use crate::report::{Number, Row, Section, Unit};
use crate::rig::Rig;
use crate::{cpu, tell};

/// A thing that is measured with nothing around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Floor {
    /// Rows of pushes in batches.
    Rows,
    LargeBatches,
    /// A commit for each row.
    SingleRows,
    /// Rows of events and their notifications in batches.
    EventRows,
    /// Requests to a server that only answers.
    Requests,
    /// Requests by an HTTP client to a receiver that only answers.
    Posts,
    /// Confirmed publishes.
    Publishes,
    /// Messages published, consumed and acknowledged.
    Relayed,
    /// The median of the time of a request to a server that only answers.
    RequestTime,
    /// The median of the time of a commit of one row, without other clients.
    CommitTime,
    /// The median of the time from publishing a message to its being received.
    RelayTime,
}

impl Floor {
    pub(crate) const ALL: [Self; 11] = [
        Self::Rows,
        Self::LargeBatches,
        Self::SingleRows,
        Self::EventRows,
        Self::Requests,
        Self::Posts,
        Self::Publishes,
        Self::Relayed,
        Self::RequestTime,
        Self::CommitTime,
        Self::RelayTime,
    ];

    fn in_full(self) -> &'static str {
        match self {
            Self::Rows => "PostgreSQL: rows of pushes in batches of 64 from 4 connections",
            Self::LargeBatches => "PostgreSQL: rows of pushes in batches of 256 from 4 connections",
            Self::SingleRows => "PostgreSQL: a commit for each row, from 64 connections",
            Self::EventRows => {
                "PostgreSQL: events with a notification each, in batches of 64 from 4 connections"
            }
            Self::Requests => "HTTP: requests to a server that only answers, in a process of its own",
            Self::Posts => "HTTP: requests of a client to the receiver, both in one process",
            Self::Publishes => "RabbitMQ: confirmed publishes to a quorum queue, 1,000 unconfirmed",
            Self::Relayed => {
                "RabbitMQ: messages through a quorum queue, confirmed, consumed and acknowledged"
            }
            Self::RequestTime => "HTTP: median of a request to a server that only answers, 1,000 a second",
            Self::CommitTime => "PostgreSQL: median of a commit of one row on one connection",
            Self::RelayTime => "RabbitMQ: median from publishing to receiving, one message at a time",
        }
    }

    fn in_short(self) -> &'static str {
        match self {
            Self::Rows => "bare rows in batches of 64",
            Self::LargeBatches => "bare rows in batches of 256",
            Self::SingleRows => "a commit for each row",
            Self::EventRows => "bare event and notification rows in batches of 64",
            Self::Requests => "bare HTTP",
            Self::Posts => "bare HTTP out",
            Self::Publishes => "bare confirmed publishes",
            Self::Relayed => "bare publish and consume",
            Self::RequestTime => "bare HTTP, median",
            Self::CommitTime => "bare commit, median",
            Self::RelayTime => "bare publish to receipt, median",
        }
    }

    fn unit(self) -> Unit {
        match self {
            Self::RequestTime | Self::CommitTime | Self::RelayTime => Unit::Milliseconds,
            _ => Unit::PerSecond,
        }
    }

    async fn measure(self, rig: &Rig, connections: usize) -> Result<f64> {
        let rows = async |writers, batch| floor::inserts(&rig.database_url, Inserts { writers, batch }).await;
        match self {
            Self::Rows => rows(4, 64).await,
            Self::LargeBatches => rows(4, 256).await,
            Self::SingleRows => rows(64, 1).await,
            Self::EventRows => {
                let inserts = Inserts {
                    writers: 4,
                    batch: 64,
                };
                floor::events(&rig.database_url, inserts).await
            }
            Self::Requests => floor::echoes(rig, connections).await,
            Self::Posts => floor::posts(Receiver::start()?.address(), connections).await,
            Self::Publishes => floor::confirmed_publishes(&rig.amqp_url, &rig.name_of("floor")).await,
            Self::Relayed => floor::relayed(&rig.amqp_url, &rig.name_of("relay")).await,
            Self::RequestTime => floor::echo_time(rig).await,
            Self::CommitTime => floor::commit_time(&rig.database_url).await,
            Self::RelayTime => floor::relay_time(&rig.amqp_url, &rig.name_of("relay")).await,
        }
    }
}

/// One floor.
#[derive(Debug, Clone, Copy)]
struct Measured {
    value: f64,
    /// CPU seconds of the whole machine for 1,000, where rates were measured.
    cpu: Option<f64>,
}

/// The floors of a run.
pub(crate) struct Floors {
    connections: usize,
    measured: Mutex<BTreeMap<Floor, Measured>>,
}

impl Floors {
    pub(crate) fn new(connections: usize) -> Self {
        Self {
            connections,
            measured: Mutex::default(),
        }
    }

    /// The numbers to stand beside others; those that are not known yet are measured now. No service may be running.
    pub(crate) async fn beside(&self, rig: &Rig, floors: &[Floor]) -> Result<Vec<Number>> {
        let mut numbers = Vec::with_capacity(floors.len());
        for floor in floors {
            let value = self.measured(rig, *floor).await?.value;
            numbers.push(Number::new(floor.in_short(), value, floor.unit()));
        }
        Ok(numbers)
    }

    /// The CPU time of the whole machine for 1,000 of each.
    pub(crate) async fn cpu_beside(&self, rig: &Rig, floors: &[Floor]) -> Result<Vec<Number>> {
        let mut numbers = Vec::with_capacity(floors.len());
        for floor in floors {
            let cpu = self.measured(rig, *floor).await?.cpu;
            numbers.push(Number::new(
                format!("{}, whole machine", floor.in_short()),
                cpu.unwrap_or(f64::NAN),
                Unit::CpuPerThousand,
            ));
        }
        Ok(numbers)
    }

    async fn measured(&self, rig: &Rig, floor: Floor) -> Result<Measured> {
        if let Some(known) = self.lock().get(&floor) {
            return Ok(*known);
        }
        tell(format_args!("floor: {}", floor.in_full()));
        let before = cpu::of_machine();
        let value = floor.measure(rig, self.connections).await?;
        let used = cpu::of_machine().since(before).total();
        // The warm-up is as busy as the rest.
        let done = value * (floor::WARM_UP + floor::MEASURED).as_secs_f64();
        let measured = Measured {
            value,
            cpu: (floor.unit() == Unit::PerSecond).then(|| used / done * 1e3),
        };
        self.lock().insert(floor, measured);
        Ok(measured)
    }

    /// All that have been measured.
    pub(crate) fn section(&self) -> Option<Section> {
        let mut section = Section::new("floors");
        for (floor, measured) in &*self.lock() {
            let cpu = measured
                .cpu
                .map(|cpu| Number::new("CPU of the whole machine for 1,000", cpu, Unit::CpuPerThousand));
            section.row(Row::new(floor.in_full(), measured.value, floor.unit()).beside(cpu));
        }
        (!section.rows.is_empty()).then_some(section)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Floor, Measured>> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
