//! Moves pushes on whose window has closed while they waited, as after a pause or in a campaign that was too large for its window.
//! Each would otherwise be promoted, queued and claimed only to be put off, at the rate of sending, and everything that came due
//! after it would wait behind it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use domain::push::SendingWindow;
use store::push::{Deferral, DuePush};
use telemetry::Metric;

use crate::context::Context;
use crate::periodic::JobError;

/// Pushes looked at in one statement, and put off in one.
const BATCH: u32 = 2_000;
/// How long an execution does this before it promotes.
const LIMIT: Duration = Duration::from_secs(10);

/// Puts off, from the head of what is due, whatever may not be sent now. It ends at the first batch that may all be sent.
pub(super) async fn move_on(context: &Context) -> Result<(), JobError> {
    let (started, now) = (Instant::now(), context.clock.now());
    let mut openings = HashMap::new();
    let mut moved = 0;
    loop {
        let due = context.store.due_pushes(now, BATCH).await?;
        let closed: Vec<Deferral> = due
            .iter()
            .filter_map(|push| put_off(context, push, now, &mut openings))
            .collect();
        if !closed.is_empty() {
            let deferred = context.store.defer_due_pushes(now, &closed).await?;
            Metric::PushDeferred.increment(deferred);
            moved += deferred;
        }
        if closed.is_empty() || due.len() < BATCH as usize || started.elapsed() >= LIMIT {
            break;
        }
    }
    if moved > 0 {
        tracing::info!(pushes = moved, "moved pushes on whose window had closed");
    }
    Ok(())
}

/// Until when a push has to wait; `None` when it may be sent. One whose expression cannot be read, or matches no time any more, is
/// left to the dispatcher: it ends there, with the reason. Campaigns share an expression, so each is evaluated once.
fn put_off(
    context: &Context,
    push: &DuePush,
    now: DateTime<Utc>,
    openings: &mut HashMap<String, Option<DateTime<Utc>>>,
) -> Option<Deferral> {
    let expression = push.cron_expression.as_deref()?;
    let opening = match openings.get(expression) {
        Some(known) => *known,
        None => {
            let next = next_opening(context, expression, now);
            openings.insert(expression.to_owned(), next);
            next
        }
    };
    Some(Deferral {
        id: push.id,
        to: opening?,
    })
}

fn next_opening(context: &Context, expression: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let push = &context.config.push;
    let window = SendingWindow::parse(expression, push.time_zone).ok()?;
    if window.is_open(now, push.cron.grace) {
        return None;
    }
    window.opens_at_or_after(now).ok()
}
