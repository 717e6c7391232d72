//! Lets sends start one after another, never closer together than the delay, and hardly further apart.
//!
//! The [`gate`] decides and is exact; the timer only decides when it is worth asking the gate again, so a timer that
//! fires early costs a question and one that fires late costs rate, but neither can bring two starts closer together.
//!
//! Nothing is made up for: after a late start the next one is a whole delay away. It knows nothing of leases or of
//! other processes, except through [`Pacer::forbid_before`].

mod gate;
#[cfg(target_os = "linux")]
mod timerfd;
#[cfg(any(test, not(target_os = "linux")))]
mod tokio_timer;

use std::io;
use std::time::{Duration, Instant};

use governor::clock::MonotonicClock;
use tokio::runtime::Handle;

use crate::hand_over::HandOver;
use gate::Gate;
#[cfg(target_os = "linux")]
use timerfd::Timer;
#[cfg(not(target_os = "linux"))]
use tokio_timer::Timer;

/// Why a pacer could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PacerError {
    /// A delay of nothing is no pacing.
    #[error("the delay between two sends is zero")]
    ZeroDelay,
    /// [`Pacer::new`] was called outside a tokio runtime.
    #[error("a pacer needs the tokio runtime that it will run on")]
    NoRuntime(#[source] tokio::runtime::TryCurrentError),
    /// The operating system gave no timer.
    #[error("the precise timer could not be created")]
    Timer(#[source] io::Error),
}

/// When a send started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendStart {
    /// The start, by the monotonic clock.
    pub at: Instant,
    /// The time since the start before it; `None` for the first.
    pub gap: Option<Duration>,
}

/// Paces the sends of one process. Its holder is the only sender: every method takes it exclusively.
///
/// It keeps its rate best on a thread of its own, awaited in the root future of a current-thread runtime, which is
/// polled before the tasks that are ready at the same time.
#[derive(Debug)]
pub struct Pacer {
    gate: Gate<MonotonicClock>,
    timer: Timer,
    /// The hand-over of the last send, as long as it is of interest.
    watched: Option<HandOver>,
}

impl Pacer {
    /// A pacer whose first turn comes at once and each later one at least `delay` after the start before it.
    ///
    /// # Panics
    /// If the current runtime was built without its I/O driver.
    pub fn new(delay: Duration) -> Result<Self, PacerError> {
        Handle::try_current().map_err(PacerError::NoRuntime)?;
        let gate = Gate::new(delay, MonotonicClock).ok_or(PacerError::ZeroDelay)?;
        let timer = Timer::new().map_err(PacerError::Timer)?;
        Ok(Self {
            gate,
            timer,
            watched: None,
        })
    }

    /// Waits until a send may start.
    ///
    /// Cancel-safe: a wait that is given up, and a turn that is dropped unused, leave their place to the next call.
    pub async fn turn(&mut self) -> Turn<'_> {
        loop {
            if let Some(handed_over) = self.watched.as_mut().and_then(HandOver::instant) {
                self.watched = None;
                self.gate.follow(handed_over);
            }
            match self.gate.admit() {
                Ok(()) => break,
                Err(until) => self.timer.wait_until(until).await,
            }
        }
        // What has not been handed over by now is on a connection that is still being opened: no use in waiting for it.
        self.watched = None;
        Turn { gate: &mut self.gate }
    }

    /// Watches when the last send is handed to its connection, and lets the next one start so that the hand-overs keep
    /// the delay too. Otherwise a send that waits for its connection a little would be met by the next, which finds one
    /// ready, at less than the delay.
    ///
    /// A hand-over that is late by more than a quarter of the delay is not followed: that would cost much rate, and what
    /// arrives after so much waiting is scattered by the network anyway.
    pub fn watch(&mut self, hand_over: HandOver) {
        self.watched = Some(hand_over);
    }

    /// Forbids a start within the delay after `handed_over`, the time when the last send was handed to its socket. This
    /// is stricter than [`watch`](Self::watch), and costs the whole time between start and hand-over once per send.
    pub fn hold(&mut self, handed_over: Instant) {
        self.gate.hold(handed_over);
    }

    /// Forbids any start before `instant`: how a new leader waits out the lease of the old one, plus the delay.
    pub fn forbid_before(&mut self, instant: Instant) {
        self.gate.forbid_before(instant);
    }
}

/// The permission to start one send.
#[derive(Debug)]
#[must_use = "a turn that is not started leaves its place to the next one"]
pub struct Turn<'a> {
    gate: &'a mut Gate<MonotonicClock>,
}

impl Turn<'_> {
    /// Stamps the start. Call it immediately before the request is polled for the first time, with the request already
    /// prepared: whatever is done in between shortens the distance to the next send as the receiver sees it.
    pub fn start(self) -> SendStart {
        self.gate.start()
    }
}
