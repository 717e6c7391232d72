//! The connections' loops, closed and open, all on the current thread.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use tokio::task::LocalSet;

use super::backlog::Backlog;
use super::connection::Connection;
use super::request::Request;
use super::schedule::Schedule;
use super::tally::Tally;
use super::ticker::Ticker;
use super::{Load, Target};

/// Pause before a connection that broke is opened again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(50);
/// At higher rates several requests become due at once; a timer for each would take the CPU from what is measured.
const SHORTEST_TICK: Duration = Duration::from_micros(200);
/// How long the answers to the last requests of an open loop are waited for.
const STRAGGLERS: Duration = Duration::from_secs(30);

pub(crate) async fn drive(load: Load, target: &Target) -> Result<Tally> {
    let tally = Rc::new(RefCell::new(Tally::new()));
    let local = LocalSet::new();
    let driven = match load {
        Load::Closed {
            connections,
            measured,
        } => {
            let limit = Limit::Until(Instant::now() + measured);
            let driven = local.run_until(closed(target, &tally, vec![limit; connections]));
            driven.await.map(|_| measured)
        }
        Load::Exactly { connections, pushes } => {
            let limit = Limit::accepted(pushes);
            local
                .run_until(closed(target, &tally, vec![limit; connections]))
                .await
        }
        Load::Each { connections, pushes } => {
            let limits = (0..connections).map(|_| Limit::accepted(pushes));
            local.run_until(closed(target, &tally, limits.collect())).await
        }
        Load::Open {
            connections,
            rate,
            measured,
            patience,
        } => {
            let driven = open(target, &tally, connections, rate, measured, patience);
            local.run_until(driven).await.map(|()| measured)
        }
    };
    tally.borrow_mut().span = driven?;
    drop(local);
    let tally = Rc::into_inner(tally).context("a connection still counts")?;
    Ok(tally.into_inner())
}

/// When a closed loop ends.
#[derive(Clone)]
enum Limit {
    Until(Instant),
    /// How many are still to be accepted.
    Accepted(Rc<Cell<u64>>),
}

impl Limit {
    fn accepted(pushes: u64) -> Self {
        Self::Accepted(Rc::new(Cell::new(pushes)))
    }

    /// When the last request may be sent, if that is known.
    fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Until(end) => Some(*end),
            Self::Accepted(_) => None,
        }
    }

    /// Whether one more request may be sent.
    fn admits(&self) -> bool {
        match self {
            Self::Until(end) => Instant::now() < *end,
            Self::Accepted(left) => {
                let before = left.get();
                left.set(before.saturating_sub(1));
                before > 0
            }
        }
    }

    fn settle(&self, tally: &mut Tally, from: Instant, outcome: &io::Result<u16>) {
        match self {
            Self::Until(end) if Instant::now() < *end => tally.measured(from, outcome),
            Self::Until(_) => tally.unmeasured(outcome),
            Self::Accepted(left) => {
                tally.measured(from, outcome);
                if !matches!(outcome, Ok(202)) {
                    left.set(left.get() + 1);
                }
            }
        }
    }
}

/// A connection for each limit; connections may have one in common. Returns how long it took.
async fn closed(target: &Target, tally: &Rc<RefCell<Tally>>, limits: Vec<Limit>) -> Result<Duration> {
    let start = Instant::now();
    let mut tasks = Vec::with_capacity(limits.len());
    for (mut caller, limit) in callers(limits.len(), target).await?.into_iter().zip(limits) {
        let tally = Rc::clone(tally);
        tasks.push(tokio::task::spawn_local(async move {
            while limit.admits() && caller.enter(limit.deadline()).await {
                let from = Instant::now();
                let outcome = caller.call(from).await;
                limit.settle(&mut tally.borrow_mut(), from, &outcome);
            }
        }));
    }
    for task in tasks {
        task.await?;
    }
    Ok(start.elapsed())
}

async fn open(
    target: &Target,
    tally: &Rc<RefCell<Tally>>,
    connections: usize,
    rate: u32,
    measured: Duration,
    patience: Duration,
) -> Result<()> {
    let backlog = Rc::new(Backlog::default());
    let callers = callers(connections, target).await?;
    let start = Instant::now();
    let mut tasks = Vec::with_capacity(connections);
    for caller in callers {
        let (backlog, tally) = (Rc::clone(&backlog), Rc::clone(tally));
        tasks.push(tokio::task::spawn_local(work_off(
            caller,
            backlog,
            tally,
            start + measured,
        )));
    }
    let mut schedule = Schedule::new(start, rate, measured);
    let ticker = Ticker::new(SHORTEST_TICK.max(Duration::from_secs(1) / rate))?;
    while !schedule.is_over() {
        ticker.tick().await?;
        let now = Instant::now();
        while let Some(due) = schedule.due(now) {
            backlog.add(due);
        }
    }
    backlog.close();
    let mut finished = std::pin::pin!(async {
        for task in tasks {
            task.await?;
        }
        Ok(())
    });
    if let Ok(finished) = tokio::time::timeout(patience, &mut finished).await {
        return finished;
    }
    for due in backlog.clear() {
        tally.borrow_mut().given_up(due);
    }
    tokio::time::timeout(STRAGGLERS, finished)
        .await
        .context("requests stayed without an answer")?
}

async fn work_off(mut caller: Caller, backlog: Rc<Backlog>, tally: Rc<RefCell<Tally>>, end: Instant) {
    while let Some(due) = backlog.take().await {
        let outcome = caller.call(due).await;
        tally.borrow_mut().settled(end, due, &outcome);
    }
}

/// So many connections, spread over the replicas.
async fn callers(connections: usize, target: &Target) -> Result<Vec<Caller>> {
    let mut callers = Vec::with_capacity(connections);
    for address in target.addresses.iter().cycle().take(connections) {
        let connection = Connection::open(*address).await.context("failed to connect")?;
        callers.push(Caller {
            address: *address,
            connection: Some(connection),
            target: target.clone(),
            request: Request::new(target),
        });
    }
    Ok(callers)
}

/// One connection with its request; reconnects after a failure.
struct Caller {
    address: SocketAddr,
    connection: Option<Connection>,
    target: Target,
    request: Request,
}

impl Caller {
    /// Waits until there is room behind the answers; `false` when there is none in time.
    async fn enter(&self, deadline: Option<Instant>) -> bool {
        match &self.target.gate {
            Some(gate) => gate.enter(self.request.count(), deadline).await,
            None => true,
        }
    }

    async fn call(&mut self, due: Instant) -> io::Result<u16> {
        let outcome = self.exchange(due).await;
        if let Some(gate) = &self.target.gate
            && !matches!(outcome, Ok(202))
        {
            // Nothing of it will ever come out.
            gate.give_back(self.request.count());
        }
        outcome
    }

    async fn exchange(&mut self, due: Instant) -> io::Result<u16> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                tokio::time::sleep(RECONNECT_PAUSE).await;
                Connection::open(self.address).await?
            }
        };
        let status = connection.exchange(self.request.next(due)).await?;
        self.connection = Some(connection);
        Ok(status)
    }
}
