//! Looks at the system again and again, whether or not a person does: so it is known since when all is well.
//!
//! It deliberately keeps one row and no history: what was wrong, and when, is in the metrics and their alerts.

use std::sync::Arc;
use std::time::Duration;

use chrono::SubsecRound as _;
use lifecycle::{Shutdown, error_chain};

use super::evaluate;
use super::facts::{Database, Facts};
use crate::app::App;

/// How long after one look the next follows; a look that fails leaves no gap yet.
const EVERY: Duration = Duration::from_secs(30);

/// Looks until the service ends.
pub(crate) async fn watch(app: Arc<App>, stopping: Shutdown) {
    while !stopping.is_cancelled() {
        tokio::select! {
            () = stopping.cancelled() => {}
            () = Box::pin(next_look(&app)) => {}
        }
    }
}

/// How long noting may take that holds up an answer.
const NOTING: Duration = Duration::from_secs(1);

/// Notes that an answer calls wrong what the last look has found well: else a later one could say that it has been well all the time.
pub(super) async fn note_otherwise(app: &App, facts: &Facts) {
    let Database::Known(tables) = &facts.database else {
        return;
    };
    let Some(look) = tables.last_look.filter(|look| look.healthy) else {
        return;
    };
    let at = facts.now.trunc_subsecs(0).max(look.looked_at);
    if let Err(error) = store::within(NOTING, app.store.note_look(false, at)).await {
        tracing::debug!(
            error = error_chain(&error),
            "failed to note that something is wrong"
        );
    }
}

async fn next_look(app: &App) {
    tokio::time::sleep(EVERY).await;
    let facts = app.status.facts(app).await;
    // Where this cannot be asked, it cannot be told either.
    if !matches!(facts.database, Database::Known(_)) {
        return;
    }
    let healthy = evaluate::is_healthy(&evaluate::evaluate(&facts));
    if let Err(error) = app.store.note_look(healthy, app.now().trunc_subsecs(0)).await {
        tracing::debug!(error = error_chain(&error), "failed to note how the system is");
    }
}
