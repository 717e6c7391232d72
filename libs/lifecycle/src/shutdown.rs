//! The request to stop, and its second, impatient form.
//!
//! It deliberately only carries the request: what a service still finishes before it stops is decided where the work is.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Tells everyone who holds a clone that it is time to stop.
///
/// There are two levels. *Cancelled*: take no new work, finish or hand back what is in flight within the grace period.
/// *Hurried*: the grace period is over at once, because the stop was asked for a second time.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    cancelled: CancellationToken,
    hurried: CancellationToken,
}

impl Shutdown {
    /// A shutdown that only [`Shutdown::trigger`] requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// A shutdown that SIGTERM and SIGINT request. The first of them cancels, a second one hurries.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn on_signals() -> io::Result<Self> {
        let shutdown = Self::new();
        let mut signals = Signals::register()?;
        let requested = shutdown.clone();
        tokio::spawn(async move {
            let name = signals.next().await;
            tracing::info!(
                signal = name,
                "stopping; a second signal ends the grace period at once"
            );
            requested.trigger();
            let name = signals.next().await;
            tracing::warn!(signal = name, "stopping at once");
            requested.hurry();
        });
        Ok(shutdown)
    }

    /// Completes when a stop has been requested, at once if it already has.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// Whether a stop has been requested.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.is_cancelled()
    }

    /// Requests the stop. Has no effect the second time.
    pub fn trigger(&self) {
        self.cancelled.cancel();
    }

    /// Completes when the grace period has been cut short.
    pub async fn hurried(&self) {
        self.hurried.cancelled().await;
    }

    /// Whether the grace period has been cut short.
    pub fn is_hurried(&self) -> bool {
        self.hurried.is_cancelled()
    }

    /// Requests the stop and ends the grace period.
    pub fn hurry(&self) {
        self.cancelled.cancel();
        self.hurried.cancel();
    }

    /// A shutdown that follows this one but can also be requested on its own, without stopping its parent.
    pub fn child(&self) -> Self {
        Self {
            cancelled: self.cancelled.child_token(),
            hurried: self.hurried.child_token(),
        }
    }

    /// The token behind [`Shutdown::cancelled`], for APIs that take one.
    pub fn token(&self) -> CancellationToken {
        self.cancelled.clone()
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn register() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
