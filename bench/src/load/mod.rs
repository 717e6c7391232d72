//! The load generator: raw HTTP/1.1 over keep-alive connections, from one thread, so that it takes as little as possible
//! of the CPU that it shares with what it measures.
//!
//! It knows `POST /push` and `POST /events`, with a push or events of its own each time, and reads of the answers no more
//! than where they end and their status.

mod backlog;
mod connection;
mod drive;
mod gate;
mod request;
mod schedule;
mod tally;
mod ticker;
mod user_agent;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Context as _, Result};

pub(crate) use connection::Connection;
pub(crate) use gate::Gate;
pub(crate) use request::EVENT_TYPE;
pub(crate) use tally::Tally;
pub(crate) use user_agent::{CHANNEL, UserAgent};

/// Where requests go, as whom, and what they say.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The replicas, which connections are spread over.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The API key.
    pub(crate) key: String,
    /// Numbers all pushes and events of a run, so that no two are the same.
    pub(crate) serial: Arc<AtomicU64>,
    pub(crate) what: What,
    /// Bounds what is accepted and not delivered yet, in a closed loop.
    pub(crate) gate: Option<Gate>,
}

/// What a request hands in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    /// One push.
    Push,
    /// One event, or a batch of so many, for each of so many resellers in turn, from the one with this number on.
    Events {
        first: u32,
        resellers: u32,
        batch: Option<usize>,
    },
}

/// How pushes come.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Load {
    /// Every connection sends its next push when the last is answered.
    Closed { connections: usize, measured: Duration },
    /// As [`Load::Closed`], until `pushes` are accepted.
    Exactly { connections: usize, pushes: u64 },
    /// As [`Load::Exactly`], with `pushes` of each connection.
    Each { connections: usize, pushes: u64 },
    /// Pushes come at even distances whatever happens to those before. Each is timed from the moment when it was due, so
    /// that a stall counts for everyone who would have come during it. What has not been sent `patience` after the last one
    /// was due is given up, and counts with the time that it has waited.
    Open {
        connections: usize,
        rate: u32,
        measured: Duration,
        patience: Duration,
    },
}

impl Load {
    /// An open loop in which nothing is given up.
    pub(crate) fn evenly(connections: usize, rate: u32, measured: Duration) -> Self {
        Self::Open {
            connections,
            rate,
            measured,
            patience: PATIENCE,
        }
    }

    /// A closed loop.
    pub(crate) fn at_once(connections: usize, measured: Duration) -> Self {
        Self::Closed {
            connections,
            measured,
        }
    }
}

/// How long the last requests of an open loop may wait for a connection when none is to be given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Puts `load` on `target`, on a thread of its own.
pub(crate) async fn put(load: Load, target: &Target) -> Result<Tally> {
    let target = target.clone();
    let driven = tokio::task::spawn_blocking(move || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(drive::drive(load, &target))
    });
    driven.await.context("the load generator failed")?
}
