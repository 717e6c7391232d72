//! `GET /waiting`: what waits in both lanes and of Web Push, by what it waits for.
//!
//! It is counted up to a bound, like all that on-call asks often. It deliberately lists nothing one by one: `GET /pushes` and
//! `GET /notifications` do.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::lifecycle::Status;
use domain::reason::NotificationReason;
use http_api::Problem;
use serde::Serialize;
use store::push::SWRVE;
use store::status::{WAITS_COUNTED_MAX, Waits};
use tokio::time::timeout;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::pauses;
use crate::request::Viewer;

/// For how long the answer waits for the counts of what Web Push stores.
const COUNTING: Duration = Duration::from_secs(1);

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(waiting))
}

/// What waits, in all.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Waiting)]
pub(crate) struct WaitingDocument {
    /// When it was so.
    pub(crate) at: DateTime<Utc>,
    /// What waits for the same, lane by lane, the most of each first.
    pub(crate) items: Vec<WaitsDocument>,
}

/// What of a lane waits for the same.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WaitsFor)]
pub(crate) struct WaitsDocument {
    /// `push`, `reseller` or `webpush`.
    #[schema(example = "reseller")]
    pub(crate) lane: &'static str,
    /// What for: WINDOW, QUOTA, RATE, POSTPONED, PAUSED, UNVERIFIED, WITHHELD, BUSY, ROOM, QUEUED, SENDING, RETRY or USER_AGENT.
    #[schema(example = "QUOTA")]
    pub(crate) reason: &'static str,
    /// The same in words.
    #[schema(example = "in line for a daily quota")]
    pub(crate) text: &'static str,
    /// How many, at most 10,000; of Web Push expired ones included, and an estimate above that.
    pub(crate) count: u64,
    /// Whether more wait in this status than the 10,000 that are counted: the rest is then of those.
    pub(crate) more: bool,
    /// When the first of them was accepted; null of Web Push.
    pub(crate) oldest: Option<DateTime<Utc>>,
    /// When the next of them is due, of what is in line for RATE or POSTPONED when the next line is looked at; null when that depends on something
    /// else than time, and of QUOTA, whose lines are looked at all day: `GET /notifications` with the status SCHEDULED tells when each one's turn
    /// comes.
    pub(crate) next_due_at: Option<DateTime<Utc>>,
    /// Whether an operator has paused the lane.
    pub(crate) paused: bool,
    /// Whether the lane is held because Swrve is out of order; of the reseller lane WITHHELD says it.
    pub(crate) held: bool,
}

/// Tells what waits in both lanes and of Web Push, by what it waits for: how many, the oldest, and when the next is due.
#[utoipa::path(
    get, path = "/waiting", tag = "status", operation_id = "waiting", security(("apiKey" = [])),
    responses((status = 200, description = "What waits.", body = WaitingDocument))
)]
pub(crate) async fn waiting(
    State(app): State<Arc<App>>,
    viewer: Viewer,
) -> Result<Json<WaitingDocument>, Problem> {
    read(&app, viewer).await.map(Json)
}

/// What waits now.
pub(crate) async fn read(app: &App, viewer: Viewer) -> Result<WaitingDocument, Problem> {
    let pauses = pauses::in_force(app, viewer).await?;
    let is_paused = |lane: &str| {
        let mut pauses = pauses.iter();
        pauses.any(|pause| pause.scope == "lane" && pause.key == lane)
    };
    let look = async {
        let pushes = app.store.waits_of_pushes().await?;
        let notifications = app.store.waits_of_notifications().await?;
        let holds = app.store.list_holds().await?;
        // After millions were deleted, counting passes what is left of them: the rest is told without it.
        let months = match timeout(COUNTING, app.store.webpush_months()).await {
            Ok(months) => months?,
            Err(_) => Vec::new(),
        };
        Ok((pushes, notifications, months, holds))
    };
    let look = http_api::by(viewer.deadline, ("what waits", "counted"), look).await?;
    let (pushes, notifications, months, holds) = look;
    let mut items = of_lane("push", &pushes, is_paused("push"));
    let mut holds = holds.iter();
    let is_held = holds.any(|hold| hold.class == SWRVE && hold.answered_at.is_none());
    for item in &mut items {
        item.held = is_held;
    }
    items.extend(of_lane("reseller", &notifications, is_paused("reseller")));
    let messages: u64 = months.iter().map(|month| month.messages).sum();
    if messages > 0 {
        items.push(WaitsDocument {
            lane: "webpush",
            reason: "USER_AGENT",
            text: "for their user agents to take them",
            count: messages,
            more: false,
            oldest: None,
            next_due_at: None,
            paused: false,
            held: false,
        });
    }
    Ok(WaitingDocument { at: app.now(), items })
}

/// What of a lane waits for the same, the most first.
fn of_lane(lane: &'static str, waits: &[Waits], paused: bool) -> Vec<WaitsDocument> {
    let counted_with = |one: &Waits| {
        // The two share an index and a bound.
        let is_due = |status| matches!(status, Status::Scheduled | Status::Retry);
        let together = |other: &Waits| {
            other.status == one.status || lane == "push" && is_due(other.status) && is_due(one.status)
        };
        let others = waits.iter().filter(|other| together(other));
        others.map(|other| other.count).sum::<u64>()
    };
    let mut items: Vec<WaitsDocument> = Vec::new();
    for one in waits {
        let (reason, text) = waits_for(lane, one);
        // A look at a line finds nothing to send before the day has room, or the pause has ended.
        let next_due = one.next_due.filter(|_| !matches!(reason, "QUOTA" | "PAUSED"));
        let more = counted_with(one) > WAITS_COUNTED_MAX;
        match items.iter_mut().find(|known| known.reason == reason) {
            Some(known) => {
                known.count += one.count;
                known.more |= more;
                known.oldest = known.oldest.min(Some(one.oldest));
                known.next_due_at = [known.next_due_at, next_due].into_iter().flatten().min();
            }
            None => items.push(WaitsDocument {
                lane,
                reason,
                text,
                count: one.count,
                more,
                oldest: Some(one.oldest),
                next_due_at: next_due,
                paused,
                held: false,
            }),
        }
    }
    for item in &mut items {
        item.count = item.count.min(WAITS_COUNTED_MAX);
    }
    items.sort_by(|one, other| other.count.cmp(&one.count).then(one.reason.cmp(other.reason)));
    items
}

/// What it waits for, as a code and in words.
fn waits_for(lane: &str, waits: &Waits) -> (&'static str, &'static str) {
    match (waits.status, &waits.reason) {
        (Status::Scheduled, _) if lane == "push" => ("WINDOW", "for a sending window"),
        (Status::Scheduled | Status::Pending, Some(NotificationReason::Paused)) => {
            ("PAUSED", "for the end of a pause")
        }
        (Status::Scheduled, Some(NotificationReason::Quota)) => ("QUOTA", "in line for a daily quota"),
        (Status::Scheduled, Some(NotificationReason::Postponed)) => {
            ("POSTPONED", "in line for want of something of our own")
        }
        (Status::Scheduled, _) => ("RATE", "in line for requests per second"),
        (Status::Pending, Some(NotificationReason::Unverified)) => {
            ("UNVERIFIED", "for an endpoint to be verified")
        }
        (Status::Pending, Some(NotificationReason::Withheld)) => {
            ("WITHHELD", "for endpoints that fail in one way at once")
        }
        (Status::Pending, Some(NotificationReason::Busy)) => {
            ("BUSY", "for others of their subscriptions that are being sent")
        }
        (Status::Pending, _) => ("ROOM", "for room in the queue"),
        (Status::InMemory, _) if waits.claimed => ("SENDING", "being sent"),
        (Status::InMemory, _) => ("QUEUED", "in the queue"),
        // Nothing that has ended is read.
        _ => ("RETRY", "for another attempt"),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn waits(status: Status, reason: Option<NotificationReason>, count: u64) -> Waits {
        let oldest = DateTime::UNIX_EPOCH + TimeDelta::seconds(count.cast_signed());
        Waits {
            status,
            reason,
            claimed: false,
            count,
            oldest,
            next_due: Some(oldest),
        }
    }

    #[test]
    fn what_waits_for_the_same_is_one_entry_and_the_most_comes_first() {
        let read = [
            waits(Status::Pending, None, 3),
            waits(Status::Pending, Some(NotificationReason::Backlog), 2),
            waits(Status::Pending, Some(NotificationReason::Paused), 4),
            waits(Status::Scheduled, Some(NotificationReason::Paused), 3),
            waits(Status::Scheduled, Some(NotificationReason::Quota), 9),
        ];
        let items = of_lane("reseller", &read, true);
        let told: Vec<_> = items.iter().map(|it| (it.reason, it.count, it.more)).collect();
        assert_eq!(
            told,
            [("QUOTA", 9, false), ("PAUSED", 7, false), ("ROOM", 5, false)]
        );
        let oldest = Some(DateTime::UNIX_EPOCH + TimeDelta::seconds(2));
        assert_eq!((items[2].oldest, items[2].next_due_at), (oldest, oldest));
        for item in &items[..2] {
            assert_eq!(item.next_due_at, None, "the next look is no delivery");
        }
        assert!(items.iter().all(|it| it.paused));
    }

    #[test]
    fn what_is_counted_together_is_more_together() {
        let read = [
            waits(Status::Scheduled, None, WAITS_COUNTED_MAX),
            waits(Status::Retry, None, 1),
            waits(Status::Pending, None, 1),
        ];
        let more = |lane| {
            let items = of_lane(lane, &read, false).into_iter();
            items.map(|it| (it.reason, it.more)).collect::<Vec<_>>()
        };
        assert_eq!(more("push"), [("WINDOW", true), ("RETRY", true), ("ROOM", false)]);
        assert_eq!(
            more("reseller"),
            [("RATE", false), ("RETRY", false), ("ROOM", false)]
        );
        let beyond = [waits(Status::Pending, None, WAITS_COUNTED_MAX + 1)];
        let items = of_lane("reseller", &beyond, false);
        assert_eq!((items[0].count, items[0].more), (WAITS_COUNTED_MAX, true));
    }
}
