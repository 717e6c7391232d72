//! Puts notifications whose time has come into the queues: first attempts that wait for their subscription's share, and
//! everything that waits for a time.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use broker::{Envelope, Published, Queue};
use chrono::{DateTime, Utc};
use domain::notification::{NotificationId, queue_lease};
use lifecycle::error_chain;
use store::Lane;
use store::webhook::{Promoted, PromotedNotification, SpillReason};
use telemetry::Metric;
use telemetry::traces::{self, Publishing, Statement};
use tokio::time::Instant;
use uuid::Uuid;

use super::left_to_engines::LeftToEngines;
use super::promotion::promoted_in_traces;
use crate::context::Context;
use crate::periodic::{Job, JobError};

/// Notifications of one subscription that are put into a queue at once. The engine that gets them comes back for the rest.
const SHARE: u32 = 32;
/// Notifications of one line that are released at once: nothing comes back for the rest before the next look.
const LINE_SHARE: u32 = 250;
/// Notifications promoted in one statement.
const BATCH: u32 = 500;
/// Statements of one run that promote less than they may: with what each looks at, 5,000 subscriptions that have something
/// waiting, but nothing that may be sent now.
const SCARCE: u32 = 10;
/// After how long a run begins no other statement: a slow one must be far from the time after which a job is given up, and a shutdown waits for it.
/// What is left has its turn in the next run. The room in the queue bounds what is promoted meanwhile, and so does delivering.
const LIMIT: Duration = Duration::from_secs(5);

/// How long the database may take to tell their traces.
const TRACES_LIMIT: Duration = Duration::from_secs(2);
const PROMOTE: Statement = Statement {
    summary: "promote notifications",
    operation: "UPDATE",
    table: "notifications",
};

/// The subscription after which the next run goes on, so that those behind many others have their turn.
#[derive(Default)]
struct Place(Mutex<Option<Uuid>>);

impl Place {
    fn get(&self) -> Option<Uuid> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Uuid> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, after: Option<Uuid>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = after;
    }
}

/// Whose turn it is in the next run.
#[derive(Default)]
struct Turns {
    place: Place,
    left: LeftToEngines,
}

/// First attempts: as many of each subscription.
#[derive(Default)]
pub(crate) struct SendWaitingNotifications(Turns);

impl Job for SendWaitingNotifications {
    const NAME: &'static str = "send-waiting-notifications";
    const INTERVAL: Duration = Duration::from_secs(1);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let promote = |now, after, left: Vec<Uuid>, limit| async move {
            let (store, lease) = (&context.store, lease(context));
            store
                .promote_first_attempts(now, after, &left, SHARE, limit, lease)
                .await
        };
        send_shares(context, Queue::ResellerReady, &self.0, promote).await
    }
}

/// Retries whose time has come: as many of each subscription.
#[derive(Default)]
pub(crate) struct SendRetries(Turns);

impl Job for SendRetries {
    const NAME: &'static str = "send-retries";
    const INTERVAL: Duration = Duration::from_millis(500);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let promote = |now, after, left: Vec<Uuid>, limit| async move {
            let (store, lease) = (&context.store, lease(context));
            store
                .promote_retries(now, after, &left, SHARE, limit, lease)
                .await
        };
        send_shares(context, Queue::ResellerRetry, &self.0, promote).await
    }
}

/// What is in line for quota or for the requests per second.
pub(crate) struct SendScheduledNotifications;

impl Job for SendScheduledNotifications {
    const NAME: &'static str = "send-scheduled-notifications";
    // Below the time by which the requests per second are released ahead.
    const INTERVAL: Duration = Duration::from_millis(500);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let terms = runtime::connections::line_terms(&context.config);
        loop {
            // Half of the queue is left to what comes: what waits in line may be as much as it likes.
            let half = context.config.reseller.queue.capacity / 2;
            let limit = room(context, Queue::ResellerReady).await?.saturating_sub(half);
            if limit == 0 {
                return Ok(());
            }
            let (now, started) = (context.clock.now(), SystemTime::now());
            let released = context
                .store
                .release_lines(now, &terms, LINE_SHARE, limit.min(BATCH), lease(context))
                .await;
            let more = released.as_ref().is_ok_and(|released| released.more);
            let promoted = released.map(|released| released.promoted);
            let refused = publish(context, Queue::ResellerReady, promoted, started).await?;
            if !more || refused > 0 {
                return Ok(());
            }
        }
    }
}

/// Lines that nothing has noted.
pub(crate) struct FindLines;

impl Job for FindLines {
    const NAME: &'static str = "find-lines";
    const INTERVAL: Duration = Duration::from_secs(20);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let terms = runtime::connections::line_terms(&context.config);
        let found = context.store.find_lines(context.clock.now(), &terms).await?;
        if found > 0 {
            tracing::info!(
                subscriptions = found,
                "found notifications in lines that nothing had noted"
            );
        }
        Ok(())
    }
}

/// Promotes as much of each subscription, until the last that has something waiting has had its turn.
async fn send_shares<F>(
    context: &Context,
    queue: Queue,
    turns: &Turns,
    promote: impl Fn(DateTime<Utc>, Option<Uuid>, Vec<Uuid>, u32) -> F,
) -> Result<(), JobError>
where
    F: Future<Output = Result<Promoted, store::Error>>,
{
    let (promote, left) = (&promote, &turns.left);
    // No engine comes back for one whose requests per second are used up.
    let engines_come_back = context.config.reseller.subscription.requests_per_second.is_none();
    take_turns(&turns.place, |after| async move {
        let limit = room(context, queue).await?;
        if limit == 0 {
            return Ok(ControlFlow::Break(after));
        }
        let started = SystemTime::now();
        let promoted = promote(context.clock.now(), after, left.beyond(after), limit.min(BATCH)).await;
        let next = promoted.as_ref().map_or(None, |promoted| promoted.next);
        let (partly, promoted) = match promoted {
            Ok(promoted) => (promoted.partly, Ok(promoted.notifications)),
            Err(error) => (HashSet::new(), Err(error)),
        };
        let full = promoted
            .as_ref()
            .is_ok_and(|promoted| promoted.len() >= limit.min(BATCH) as usize);
        let found = if full { Found::Much } else { Found::Little };
        Ok(match publish(context, queue, promoted, started).await? {
            0 => {
                if engines_come_back {
                    left.note(partly);
                }
                ControlFlow::Continue((next, found))
            }
            // What was refused tells no engine of what else waits.
            _ => ControlFlow::Break(next),
        })
    })
    .await
}

/// What a statement has found to promote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// As much as it may promote.
    Much,
    Little,
}

/// Has all subscriptions looked at, some hundred with each call, from where the last run ended. `look` says after which
/// subscription the next call goes on: after none, when it has come to the last. It breaks off when no more can be sent now.
async fn take_turns<E, F>(place: &Place, mut look: impl FnMut(Option<Uuid>) -> F) -> Result<(), E>
where
    F: Future<Output = Result<ControlFlow<Option<Uuid>, (Option<Uuid>, Found)>, E>>,
{
    // A run that begins in the middle goes on with the first ones.
    let mut ends_at_the_last = place.get().is_none();
    let (started, mut scarce) = (Instant::now(), 0);
    while started.elapsed() < LIMIT {
        // When it fails, the next run begins with the first: those before the one that fails have their turn.
        let (next, found) = match look(place.take()).await? {
            ControlFlow::Continue(looked) => looked,
            ControlFlow::Break(next) => {
                place.set(next);
                break;
            }
        };
        place.set(next);
        scarce += u32::from(found == Found::Little);
        if scarce >= SCARCE || next.is_none() && ends_at_the_last {
            break;
        }
        ends_at_the_last |= next.is_none();
    }
    Ok(())
}

/// How long what is promoted is left in peace.
fn lease(context: &Context) -> Duration {
    queue_lease(context.config.reseller.queue.capacity)
}

/// How many notifications may be promoted at once: none while the broker takes no messages or the lane is paused, which
/// would only mark rows that have to be marked back. Otherwise as many as the queue takes messages: each is about one notification or
/// more, so that none is refused. How many of them engines keep is not known here; they put aside the others, and come back for them.
async fn room(context: &Context, queue: Queue) -> Result<u32, JobError> {
    if !context.may_promote(Lane::Reseller, queue).await? {
        return Ok(0);
    }
    let depth = context.publishing.to(queue).depth(queue).await?.messages;
    Ok(context.config.reseller.queue.capacity.saturating_sub(depth))
}

/// The traces of what was promoted, where some are recorded. Nothing waits for its trace: when it cannot be read, the
/// attempt has none.
async fn traces_of(context: &Context, promoted: &[PromotedNotification]) -> HashMap<NotificationId, String> {
    if !traces::are_on() {
        return HashMap::new();
    }
    let ids: Vec<Uuid> = promoted.iter().map(|one| one.id).collect();
    match store::within(TRACES_LIMIT, context.store.notification_traces(&ids)).await {
        Ok(traces) => traces,
        Err(error) => {
            tracing::debug!(
                error = error_chain(&error),
                "cannot read the traces of notifications"
            );
            HashMap::new()
        }
    }
}

/// Publishes what was promoted; what the broker did not confirm waits again. Returns how many those are.
async fn publish(
    context: &Context,
    queue: Queue,
    promoted: Result<Vec<PromotedNotification>, store::Error>,
    started: SystemTime,
) -> Result<usize, JobError> {
    let promoted =
        promoted.inspect_err(|_| Metric::StoreErrors.increment_with(&[("operation", "promoting")], 1))?;
    if promoted.is_empty() {
        return Ok(0);
    }
    let promoting = started..SystemTime::now();
    let mut traces = traces_of(context, &promoted).await;
    let recorded = traces.values().map(|trace| Some(trace.as_str()));
    promoted_in_traces(PROMOTE, recorded, promoting);
    let now = context.clock.now();
    let mut spans = Publishing::to(queue.name());
    let envelopes = promoted
        .iter()
        .map(|one| {
            let traceparent = spans.begin(one.id, traces.remove(&one.id.into()));
            Envelope::notification(one.id, one.subscription_id, now, traceparent)
        })
        .collect();
    let publisher = context.publishing.to(queue).publisher();
    let answers = publisher.publish(queue, envelopes).await;
    spans.end(|place| answers.get(place).and_then(|answer| answer.failure()));
    let refused: Vec<NotificationId> = promoted
        .iter()
        .zip(answers)
        .filter(|(_, answer)| *answer != Published::Confirmed)
        .map(|(one, _)| one.id.into())
        .collect();
    let taken = promoted.len() - refused.len();
    Metric::NotificationsPromoted.increment_with(&[("queue", queue.name())], taken as u64);
    if !refused.is_empty() {
        context
            .store
            .spill_notifications(&refused, SpillReason::NotEnqueued, context.clock.now())
            .await?;
    }
    Ok(refused.len())
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    /// How long each look takes.
    const LOOK: Duration = Duration::from_millis(50);

    /// Which of `parts` are looked at in a run that begins at `from`, and where the next one begins, when there is little to promote in any.
    /// Each part is named by its number.
    async fn run(parts: u128, from: u128, full_at: Option<u128>) -> (Vec<u128>, u128) {
        run_with(Found::Little, parts, from, full_at).await
    }

    async fn run_with(found: Found, parts: u128, from: u128, full_at: Option<u128>) -> (Vec<u128>, u128) {
        let place = Place(Mutex::new((from > 0).then(|| Uuid::from_u128(from))));
        let mut looked = Vec::new();
        take_turns(&place, |after| {
            let part = after.map_or(0, |after| after.as_u128());
            let answer = if full_at == Some(part) {
                ControlFlow::Break(after)
            } else {
                looked.push(part);
                let next = (part + 1 < parts).then(|| Uuid::from_u128(part + 1));
                ControlFlow::Continue((next, found))
            };
            async move {
                tokio::time::advance(LOOK).await;
                Ok::<_, ()>(answer)
            }
        })
        .await
        .unwrap();
        (looked, place.get().map_or(0, |place| place.as_u128()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_from_the_first_ends_at_the_last() {
        assert_eq!(run(1, 0, None).await, (vec![0], 0));
        assert_eq!(run(3, 0, None).await, (vec![0, 1, 2], 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_from_the_middle_goes_on_with_those_before() {
        assert_eq!(run(3, 2, None).await, (vec![2, 0, 1, 2], 0));
    }

    #[tokio::test(start_paused = true)]
    async fn those_behind_many_others_have_their_turn_in_the_next_run() {
        assert_eq!(run(12, 0, None).await, ((0..10).collect(), 10));
        assert_eq!(
            run(12, 10, None).await,
            ([10, 11].into_iter().chain(0..8).collect(), 8)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_goes_on_while_there_is_much_to_promote_and_ends_all_the_same() {
        assert_eq!(
            run_with(Found::Much, 40, 3, None).await,
            ((3..40).chain(0..40).collect(), 0)
        );
        let (looked, next) = run_with(Found::Much, 1_000, 0, None).await;
        let in_time = LIMIT.as_millis() / LOOK.as_millis();
        assert_eq!((looked.len() as u128, next), (in_time, in_time));
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_finds_no_room_begins_there_the_next_time() {
        assert_eq!(run(4, 0, Some(2)).await, (vec![0, 1], 2));
        assert_eq!(run(4, 0, Some(0)).await, (vec![], 0));
    }

    #[tokio::test]
    async fn after_a_failure_the_next_run_begins_with_the_first() {
        let place = Place(Mutex::new(Some(Uuid::from_u128(7))));
        let failed = take_turns(&place, |_| ready(Err("no database"))).await;
        assert_eq!((failed, place.get()), (Err("no database"), None));
    }
}
