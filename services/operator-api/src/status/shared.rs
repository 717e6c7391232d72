//! One look at the system for all pages that follow it: fifty open consoles ask as much of the database as one.
//!
//! It deliberately keeps nothing from a person who opens a page or calls the API: what was done a moment ago is seen there.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_api::paging::List;
use telemetry::Metric;
use tokio::sync::Mutex;

use super::facts::{self, Facts};
use crate::app::App;
use crate::dead_letters::timeline::TimelineDocument;
use crate::subscriptions::ResellerDocument;
use crate::waiting::WaitingDocument;

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

/// What was found out last, once each.
#[derive(Default)]
pub(crate) struct Shared {
    facts: Kept<Facts>,
    timeline: Kept<TimelineDocument>,
    resellers: Kept<List<ResellerDocument>>,
    waiting: Kept<WaitingDocument>,
}

/// What was found out last, and when.
struct Kept<T>(Mutex<Option<(Arc<T>, Instant)>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Kept<T> {
    /// What `finding` finds; what was found within the last second for a page that asks for itself.
    async fn found<E>(&self, finding: impl Future<Output = Result<T, E>>) -> Result<Arc<T>, E> {
        if !follows() {
            return finding.await.map(Arc::new);
        }
        // Held meanwhile, so that pages that ask at the same time get the same.
        let mut kept = self.0.lock().await;
        match &*kept {
            Some((found, at)) if at.elapsed() < KEPT => Ok(Arc::clone(found)),
            _ => {
                let found = Arc::new(finding.await?);
                *kept = Some((Arc::clone(&found), Instant::now()));
                Ok(found)
            }
        }
    }
}

impl Shared {
    /// What is known of the system: of the last second for a page that asks for itself, else of now.
    pub(super) async fn facts(&self, app: &App) -> Arc<Facts> {
        let finding = async {
            Metric::StatusLooks.increment(1);
            // Many handlers wait for this, and it is large.
            let finding = Box::pin(facts::find_out(&app.store, &app.broker, &app.config, app.now()));
            Ok::<_, Infallible>(finding.await)
        };
        let Ok(facts) = self.facts.found(finding).await;
        facts
    }

    /// As [`Self::facts`], of the dead letters of a day, which are read by `reading`.
    pub(crate) async fn timeline<E>(
        &self,
        reading: impl Future<Output = Result<TimelineDocument, E>>,
    ) -> Result<Arc<TimelineDocument>, E> {
        self.timeline.found(reading).await
    }

    /// As [`Self::facts`], of the first resellers with the counts of their subscriptions, which are read by `reading`.
    pub(crate) async fn resellers<E>(
        &self,
        reading: impl Future<Output = Result<List<ResellerDocument>, E>>,
    ) -> Result<Arc<List<ResellerDocument>>, E> {
        self.resellers.found(reading).await
    }

    /// As [`Self::facts`], of what waits, which is read by `reading`.
    pub(crate) async fn waiting<E>(
        &self,
        reading: impl Future<Output = Result<WaitingDocument, E>>,
    ) -> Result<Arc<WaitingDocument>, E> {
        self.waiting.found(reading).await
    }
}
