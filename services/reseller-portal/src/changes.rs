//! `GET /changes`: that notifications came or changed, for those who follow them: asked again and again, or as a stream.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use futures::Stream;
use futures::stream::unfold;
use http::{HeaderMap, HeaderName, header};
use http_api::{FieldCode, FieldProblem, Problem, ReadParams, paging};
use serde::{Deserialize, Serialize};
use store::webhook::{Change, ChangeCursor, Changes};
use tokio::time::{Instant, sleep_until};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::limits::Turn;
use crate::request::Reseller;

/// How long an answer waits for a change, in seconds, when it is not said, and at most.
const WAIT: u32 = 20;
/// How often it is looked meanwhile.
const LOOK: Duration = Duration::from_secs(1);
/// How often it is looked whether changes are whole, which they are as soon as other transactions are over.
const SETTLE: Duration = Duration::from_millis(50);
/// For how long changes are gathered before they are told.
const GATHER: Duration = Duration::from_millis(250);
/// How long a stream goes on. Then who follows comes again, with a key or a visit that is still valid.
const STREAMED: Duration = Duration::from_secs(60);
/// What a browser says to go on where a stream has ended.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// From where, and how patiently.
#[derive(Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChangesParams {
    /// What the previous answer gave as `next`; from now on when missing.
    pub(crate) after: Option<String>,
    /// How many seconds the answer waits for a change.
    #[param(minimum = 0, maximum = 20, default = 20)]
    pub(crate) wait: Option<u32>,
    /// How many changes.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
}

/// That a notification came or changed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Change)]
pub(crate) struct ChangeDocument {
    /// To which subscription it goes.
    pub(crate) subscription_id: Uuid,
    /// Which notification.
    pub(crate) notification_id: Uuid,
    /// When.
    pub(crate) at: DateTime<Utc>,
}

/// What changed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Changes)]
pub(crate) struct ChangesDocument {
    /// In the order in which they are to be read, nearly that of time. What changed several times is there several times; what it is now is
    /// for `GET /notifications/{id}` to say.
    pub(crate) items: Vec<ChangeDocument>,
    /// With what to ask again, as `after`.
    pub(crate) next: String,
    /// Since when changes are noted: from the first question on, and for three minutes at least after the last one.
    pub(crate) since: DateTime<Utc>,
    /// Whether changes after `after` are lost, since it is older than `since`, or than the ten minutes for which changes are kept: then the lists
    /// have to be read again.
    pub(crate) missed: bool,
}

impl From<Change> for ChangeDocument {
    fn from(change: Change) -> Self {
        Self {
            subscription_id: change.subscription,
            notification_id: change.notification,
            at: change.at,
        }
    }
}

impl From<Changes> for ChangesDocument {
    fn from(changes: Changes) -> Self {
        Self {
            items: changes.items.into_iter().map(ChangeDocument::from).collect(),
            next: write(changes.next),
            since: changes.since,
            missed: changes.missed,
        }
    }
}

fn write(cursor: ChangeCursor) -> String {
    format!("{}-{}", cursor.transaction, cursor.change)
}

fn read(text: &str) -> Option<ChangeCursor> {
    let (transaction, change) = text.split_once('-')?;
    let number = |digits: &str| digits.parse().ok().filter(|number: &i64| *number >= 0);
    Some(ChangeCursor {
        transaction: number(transaction)?,
        change: number(change)?,
    })
}

/// One that follows. It holds no turn of the reseller's other requests, and no connection to the database while it waits.
struct Follower {
    app: Arc<App>,
    reseller: String,
    after: Option<ChangeCursor>,
    limit: u32,
    /// Before then it is not looked again: many changes make few answers.
    not_before: Instant,
    _place: Turn,
}

impl Follower {
    /// What changed, as soon as something has, or what there is at `until`.
    async fn next(&mut self, until: Instant) -> Result<Changes, Problem> {
        loop {
            tokio::select! {
                () = sleep_until(self.not_before) => {}
                () = self.app.shutdown.cancelled() => {}
            }
            let look = self.app.store.changes(&self.reseller, self.after, self.limit);
            let changes = http_api::by(self.app.deadline(), ("the changes", "read"), look).await?;
            let (now, is_first) = (Instant::now(), self.after.is_none());
            let is_over = now >= until || self.app.shutdown.is_cancelled();
            // The lists that are read after this answer are to hold all that is in no change. At the end of its time it is told to begin once
            // more instead.
            if (is_first || changes.missed) && !changes.whole && !is_over {
                self.not_before = until.min(now + SETTLE);
                continue;
            }
            self.after = Some(changes.next);
            if !changes.more {
                self.not_before = until.min(now + LOOK);
            }
            if is_first || !changes.items.is_empty() || changes.missed || is_over {
                return Ok(changes);
            }
        }
    }

    /// The same again and again, for a while.
    fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        let until = Instant::now() + STREAMED;
        unfold(Some(self), move |follower| async move {
            let mut follower = follower?;
            // Where it cannot be read, who follows comes again, and is told what is wrong then.
            let document = ChangesDocument::from(follower.next(until).await.ok()?);
            let event = Event::default().id(&document.next).json_data(&document).ok()?;
            let is_over = Instant::now() >= until || follower.app.shutdown.is_cancelled();
            Some((Ok(event), Some(follower).filter(|_| !is_over)))
        })
    }
}

/// Tells which notifications came or changed.
///
/// The answer waits until there is something to tell, `wait` seconds at most. It tells the identifiers alone. The first question, without
/// `after`, is answered with where to begin as soon as what was being written is committed, as a rule at once. Nothing is passed over as long as
/// it is asked again within three minutes; where something was, as later changes may not have been noted, `missed` says so.
///
/// With `Accept: text/event-stream` the answer is a stream of the same documents, which goes on for a minute; their `id` is `next`, and what
/// comes as `Last-Event-ID` is taken for `after`. Eight requests of a reseller can wait at once.
#[utoipa::path(
    get, path = "/changes", tag = "notifications", operation_id = "listChanges",
    security(("apiKey" = [])),
    params(ChangesParams),
    responses((status = 200, description = "What changed.", body = ChangesDocument))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    headers: HeaderMap,
    ReadParams(params, mut wrong): ReadParams<ChangesParams>,
) -> Result<Response, Problem> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let given = text(LAST_EVENT_ID).or(params.after.as_deref());
    let not_ours =
        || Problem::query("after", "must be what an answer gave as next").coded(FieldCode::WrongFormat);
    let after = wrong.take(given.map(|given| read(given).ok_or_else(not_ours)).transpose());
    let wait = params.wait.unwrap_or(WAIT);
    if wait > WAIT {
        wrong.add(Problem::parameter(
            FieldProblem::new("wait", format!("must be between 0 and {WAIT}")).between(0, WAIT),
        ));
    }
    let limit = wrong.with(paging::limit(params.limit))?;
    let mut follower = Follower {
        limit,
        _place: app.limits.follow(&reseller.id).await?,
        reseller: reseller.id.clone(),
        after,
        not_before: Instant::now(),
        app,
    };
    // Its turn ends here: waiting is no work.
    drop(reseller);
    if text(header::ACCEPT).is_some_and(|accepted| accepted.contains("text/event-stream")) {
        let stream = Sse::new(follower.stream()).keep_alive(KeepAlive::default());
        return Ok(stream.into_response());
    }
    let until = Instant::now() + Duration::from_secs(wait.into());
    if follower.after.is_some() {
        follower.not_before = until.min(Instant::now() + GATHER);
    }
    let changes = follower.next(until).await?;
    Ok(Json(ChangesDocument::from(changes)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_nothing_else_is() {
        let cursor = ChangeCursor {
            transaction: 812_345,
            change: 7,
        };
        assert_eq!(read(&write(cursor)), Some(cursor));
        for other in ["", "7", "-", "7-", "-7", "7--7", "x-1", "1-9223372036854775808"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
