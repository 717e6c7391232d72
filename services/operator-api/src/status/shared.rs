//! One look at the system for all pages that follow it: fifty open consoles ask as much of the database as one.
//!
//! It deliberately keeps nothing from a person who opens a page or calls the API: what was done a moment ago is seen there.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::facts::{self, Facts};
use crate::app::App;
use crate::dead_letters::timeline::TimelineDocument;

tokio::task_local! {
    static FOLLOWS: ();
}

/// Answers a page that asks for itself, without its person.
pub(crate) async fn following<T>(answering: impl Future<Output = T>) -> T {
    FOLLOWS.scope((), answering).await
}

fn follows() -> bool {
    FOLLOWS.try_with(|()| ()).is_ok()
}

/// For how long a look is good enough for a page that asks for itself.
const KEPT: Duration = Duration::from_secs(1);

/// What was found out last.
#[derive(Default)]
pub(crate) struct Shared {
    facts: Mutex<Option<(Arc<Facts>, Instant)>>,
    timeline: Mutex<Option<(Arc<TimelineDocument>, Instant)>>,
}

impl Shared {
    /// What is known of the system: of the last second for a page that asks for itself, else of now.
    pub(super) async fn facts(&self, app: &App) -> Arc<Facts> {
        let find_out = async || {
            let facts = facts::find_out(&app.store, &app.broker, &app.config, app.now()).await;
            (Arc::new(facts), Instant::now())
        };
        if !follows() {
            return find_out().await.0;
        }
        // Held meanwhile, so that pages that ask at the same time get the same.
        let mut kept = self.facts.lock().await;
        match &*kept {
            Some((facts, at)) if at.elapsed() < KEPT => Arc::clone(facts),
            _ => {
                let found = find_out().await;
                Arc::clone(&kept.insert(found).0)
            }
        }
    }

    /// As [`Self::facts`], of the dead letters of a day, which are read by `reading`.
    pub(crate) async fn timeline<E>(
        &self,
        reading: impl Future<Output = Result<TimelineDocument, E>>,
    ) -> Result<Arc<TimelineDocument>, E> {
        if !follows() {
            return reading.await.map(Arc::new);
        }
        let mut kept = self.timeline.lock().await;
        match &*kept {
            Some((timeline, at)) if at.elapsed() < KEPT => Ok(Arc::clone(timeline)),
            _ => {
                let found = (Arc::new(reading.await?), Instant::now());
                Ok(Arc::clone(&kept.insert(found).0))
            }
        }
    }
}
