//! Waiting for one's turn to lead.

use std::time::{Duration, Instant};

use lifecycle::{Shutdown, error_chain};
use store::{LeaseView, Store};
use uuid::Uuid;

use crate::Term;

/// How a lease is kept and watched.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What the lease is for.
    pub name: String,
    /// How long it holds without renewal.
    pub ttl: Duration,
    /// How often it is watched by those who wait and renewed by the one who holds; well below `ttl`.
    pub poll: Duration,
}

/// The part of the time-to-live for which a holder does not trust its lease any more. Watchers wait for all of it, each by its own
/// monotonic clock, and two such clocks do not run equally fast: a time service may slew one of them by up to a twelfth. A holder
/// whose clock is slow by that still stops before a watcher starts whose clock is fast by as much.
const MARGIN: u32 = 6;

impl Settings {
    /// How long a holder trusts its lease, from when it asked for it.
    pub fn trusted(&self) -> Duration {
        self.ttl - self.ttl / MARGIN
    }

    /// The pause between two renewals, of which at least one fits into the time that the lease is trusted.
    pub(crate) fn renew_every(&self) -> Duration {
        self.poll.min(self.trusted() / 2)
    }
}

/// A replica that is ready to lead.
#[derive(Debug)]
pub struct Candidate {
    store: Store,
    settings: Settings,
    id: Uuid,
}

impl Candidate {
    /// A candidate with an identity of its own.
    pub fn new(store: Store, settings: Settings) -> Self {
        Self {
            store,
            settings,
            id: Uuid::now_v7(),
        }
    }

    /// Waits until this replica leads; `None` when it is to shut down instead. While the database is away it waits.
    pub async fn next_term(&self, shutdown: &Shutdown) -> Option<Term> {
        let mut seen: Option<(LeaseView, Instant)> = None;
        // Asked before watching as well: a leader that resigns because of the shutdown would find the lease free and take it again.
        while !shutdown.is_cancelled() {
            let watched = tokio::select! {
                () = shutdown.cancelled() => return None,
                watched = self.watch(&mut seen) => watched,
            };
            // Taking is not given up half-way: the database may grant a lease that no replica would then resign.
            let taken = match watched {
                Ok(Some(free)) => self.take(free).await,
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            };
            match taken {
                Ok(Some(term)) if shutdown.is_cancelled() => {
                    term.resign().await;
                    return None;
                }
                Ok(Some(term)) => return Some(term),
                Ok(None) => {}
                Err(error) => tracing::debug!(
                    lease = self.settings.name,
                    error = error_chain(&error),
                    "cannot watch or take the lease"
                ),
            }
            tokio::select! {
                () = shutdown.cancelled() => return None,
                () = tokio::time::sleep(self.settings.poll) => {}
            }
        }
        None
    }

    /// Looks at the lease; returns what was seen when it is there to be taken.
    async fn watch(
        &self,
        seen: &mut Option<(LeaseView, Instant)>,
    ) -> Result<Option<LeaseView>, store::Error> {
        let Settings { name, ttl, .. } = &self.settings;
        let view = store::within(*ttl, self.store.view_lease(name)).await?;
        let since = match *seen {
            Some((before, since)) if before == view => since,
            // The renewal that made this view was committed before now, so waiting from now on is never too short.
            _ => Instant::now(),
        };
        *seen = Some((view, since));
        let held = view.holder.is_some() && since.elapsed() < *ttl;
        Ok((!held).then_some(view))
    }

    async fn take(&self, view: LeaseView) -> Result<Option<Term>, store::Error> {
        let Settings { name, ttl, .. } = &self.settings;
        let asked = Instant::now();
        let lease = store::within(*ttl, self.store.take_lease(name, view, self.id)).await?;
        // Who resigns leaves no holder behind.
        let is_takeover = view.holder.is_some();
        let settings = self.settings.clone();
        Ok(lease.map(|lease| Term::start(self.store.clone(), lease, settings, asked, is_takeover)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_with_a_slow_clock_stops_before_a_watcher_with_a_fast_one_starts() {
        // chrony, the usual time service, slews by up to 83,333 parts in a million.
        const WRONG_BY: f64 = 0.083_333;
        for millis in [100, 2_500, 4_000, 5_000] {
            let settings = Settings {
                name: "push".to_owned(),
                ttl: Duration::from_millis(millis),
                poll: Duration::from_millis(10),
            };
            let stops = settings.trusted().mul_f64(1.0 + WRONG_BY);
            let starts = settings.ttl.mul_f64(1.0 - WRONG_BY);
            assert!(stops < starts, "of {millis} ms: {stops:?}, {starts:?}");
        }
    }

    #[test]
    fn a_lease_is_renewed_while_it_is_trusted_however_seldom_it_is_watched() {
        let settings = |poll| Settings {
            name: "push".to_owned(),
            ttl: Duration::from_millis(2_400),
            poll: Duration::from_millis(poll),
        };
        assert_eq!(settings(250).renew_every(), Duration::from_millis(250));
        assert_eq!(settings(2_399).renew_every(), Duration::from_secs(1));
    }
}
