//! The time for which one replica leads.

use std::time::{Duration, Instant};

use lifecycle::error_chain;
use store::{Lease, Store};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::Settings;
use crate::deadline::Deadline;

/// A term. It is renewed in the background until it is resigned, dropped or lost.
#[derive(Debug)]
pub struct Term {
    /// How long a farewell may take.
    limit: Duration,
    store: Store,
    lease: Lease,
    is_takeover: bool,
    validity: Validity,
    renewer: JoinHandle<()>,
}

/// Tells whether a term still holds. Cheap to clone and to ask, so it can be asked before every single send.
#[derive(Debug, Clone)]
pub struct Validity {
    deadline: Deadline,
    ended: CancellationToken,
}

impl Validity {
    /// Whether the term holds at this instant. It is a statement about the past as soon as it returns: act at once.
    pub fn holds(&self) -> bool {
        !self.ended.is_cancelled() && Instant::now() < self.deadline.instant()
    }

    /// Completes when the term has ended.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

impl Term {
    pub(crate) fn start(
        store: Store,
        lease: Lease,
        settings: Settings,
        asked: Instant,
        is_takeover: bool,
    ) -> Self {
        let limit = settings.ttl;
        let validity = Validity {
            deadline: Deadline::at(asked + settings.trusted()),
            ended: CancellationToken::new(),
        };
        let renewer = Renewer {
            store: store.clone(),
            lease: lease.clone(),
            validity: validity.clone(),
            settings,
        };
        let renewer = tokio::spawn(renewer.run());
        Self {
            limit,
            store,
            lease,
            is_takeover,
            validity,
            renewer,
        }
    }

    /// The lease that the term rests on; its epoch fences what the term writes.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Whether the holder before had not resigned: it died, or could not renew its lease.
    pub fn is_takeover(&self) -> bool {
        self.is_takeover
    }

    /// Something to ask whether the term still holds.
    pub fn validity(&self) -> Validity {
        self.validity.clone()
    }

    /// Ends the term, so that a successor need not wait for it to run out.
    pub async fn resign(self) {
        self.validity.ended.cancel();
        self.renewer.abort();
        match store::within(self.limit, self.store.release_lease(&self.lease)).await {
            Ok(true) => tracing::info!(lease = self.lease.name, epoch = self.lease.epoch, "resigned"),
            Ok(false) => {}
            Err(error) => {
                tracing::info!(
                    lease = self.lease.name,
                    error = error_chain(&error),
                    "could not resign, the lease will run out"
                );
            }
        }
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.validity.ended.cancel();
        self.renewer.abort();
    }
}

struct Renewer {
    store: Store,
    lease: Lease,
    validity: Validity,
    settings: Settings,
}

impl Renewer {
    /// Renews until the lease is lost. A renewal counts from the moment it was asked for.
    async fn run(self) {
        let mut pause = self.settings.renew_every();
        loop {
            let deadline = self.validity.deadline.instant();
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            tokio::time::sleep(pause.min(left)).await;
            let asked = Instant::now();
            match tokio::time::timeout_at(deadline.into(), self.store.renew_lease(&self.lease)).await {
                Ok(Ok(true)) => {
                    self.validity.deadline.extend_to(asked + self.settings.trusted());
                    pause = self.settings.renew_every();
                }
                Ok(Ok(false)) => break,
                Ok(Err(error)) => {
                    tracing::warn!(
                        lease = self.lease.name,
                        error = error_chain(&error),
                        "could not renew the lease"
                    );
                    pause = RETRY_PAUSE;
                }
                Err(_) => break,
            }
        }
        tracing::warn!(
            lease = self.lease.name,
            epoch = self.lease.epoch,
            "lost the lease"
        );
        self.validity.ended.cancel();
    }
}

/// Pause before a failed renewal is tried again, short against any sensible time-to-live.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use sqlx::postgres::PgPoolOptions;
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn a_term_is_trusted_for_less_than_its_time_to_live() {
        let pool = PgPoolOptions::new()
            .connect_lazy("postgres://nobody@localhost/nowhere")
            .unwrap();
        let settings = Settings {
            name: "push".to_owned(),
            ttl: Duration::from_secs(6),
            poll: Duration::from_secs(1),
        };
        let lease = Lease {
            name: "push".to_owned(),
            holder: Uuid::now_v7(),
            epoch: 1,
        };
        let asked = Instant::now();
        let term = Term::start(Store::from_pool(pool), lease, settings, asked, false);
        let deadline = term.validity().deadline.instant();
        assert_eq!(deadline, asked + Duration::from_secs(5));
    }
}
