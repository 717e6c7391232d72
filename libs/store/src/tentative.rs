//! What a claim took, between the question for its commit and the caller's having it.
//!
//! A caller that gives up before that question leaves a transaction that is rolled back. One that gives up after it, or gets no
//! answer, cannot know whether the rows are claimed; nothing was sent, and no other process will send them before the lease has run
//! out and an attempt is used up. So what was not handed over is handed back, in the background, until the database answers.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::push::PushId;
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::push::{Release, release_pushes};
use crate::webhook::{NotificationRelease, release_notifications};
use crate::{Error, Store, within};

/// How long the database may take for one try: it may have to wait for the commit that is still under way.
const TRY_LIMIT: Duration = Duration::from_secs(10);
/// Pause before it is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// How long a push that is handed back is left to the process that has its message. The rescuer makes it wait after that.
const MESSAGE_LIMIT: Duration = Duration::from_secs(5);

/// The rows of one claim.
#[derive(Debug, Clone)]
pub(crate) enum Taken {
    /// Pushes with their token.
    Pushes(Vec<PushId>, Uuid),
    /// Notifications with their tokens, and when they were claimed.
    Notifications(Vec<NotificationRelease>, DateTime<Utc>),
}

/// Hands back what was taken when it is dropped, unless it was kept.
#[must_use = "what is not kept is handed back"]
pub(crate) struct Tentative {
    store: Store,
    taken: Option<Taken>,
}

impl Tentative {
    /// To be made before the commit is asked for.
    pub(crate) fn new(store: &Store, taken: Taken) -> Self {
        let is_something = match &taken {
            Taken::Pushes(ids, _) => !ids.is_empty(),
            Taken::Notifications(releases, _) => !releases.is_empty(),
        };
        Self {
            store: store.clone(),
            taken: is_something.then_some(taken),
        }
    }

    /// The caller has it.
    pub(crate) fn keep(mut self) {
        self.taken = None;
    }
}

impl Drop for Tentative {
    fn drop(&mut self) {
        let Some(taken) = self.taken.take() else { return };
        // Without a runtime the process is at its end, and the leases bring back what there is.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(hand_back(self.store.clone(), taken));
        }
    }
}

async fn hand_back(store: Store, taken: Taken) {
    loop {
        match within(TRY_LIMIT, store.undo(&taken)).await {
            Ok(count) => {
                tracing::info!(count, "a claim that was given up is handed back");
                return;
            }
            Err(Error::Unavailable(sqlx::Error::PoolClosed)) => return,
            Err(error) if error.is_transient() => {
                tracing::debug!(error = %error, "cannot hand a claim back that was given up");
            }
            Err(error) => {
                tracing::error!(error = %error, "a claim that was given up cannot be handed back");
                return;
            }
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

impl Store {
    /// Hands back what of a claim was committed, once that is known; returns how many rows that were.
    ///
    /// The commit may still be under way. Its transaction has locked the rows before it was asked for, so they are locked
    /// here first, which waits for its end. What it did is visible only to a statement that begins after that.
    async fn undo(&self, taken: &Taken) -> Result<usize, Error> {
        let mut transaction = self.pool.begin().await?;
        let released = match taken {
            Taken::Pushes(ids, token) => {
                let rows: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
                sqlx::query!(
                    "SELECT FROM push_notifications WHERE id = ANY($1) ORDER BY id FOR UPDATE",
                    &rows
                )
                .execute(&mut *transaction)
                .await?;
                let release = |id: &PushId| Release {
                    id: *id,
                    lease_token: *token,
                    deferred_to: None,
                };
                let releases: Vec<Release> = ids.iter().map(release).collect();
                release_pushes(&mut *transaction, &releases, MESSAGE_LIMIT)
                    .await?
                    .len()
            }
            Taken::Notifications(releases, at) => {
                let rows: Vec<Uuid> = releases.iter().map(|release| release.id.uuid()).collect();
                sqlx::query!(
                    "SELECT FROM notifications WHERE id = ANY($1) ORDER BY id FOR UPDATE",
                    &rows
                )
                .execute(&mut *transaction)
                .await?;
                release_notifications(&mut *transaction, releases, *at)
                    .await?
                    .len()
            }
        };
        transaction.commit().await?;
        Ok(released)
    }
}
