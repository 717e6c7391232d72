//! `GET /notifications/{id}` and `POST /notifications/{id}/resend`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use domain::capability::Capability;
use domain::notification::{NotificationId, NotificationStatus};
use domain::subscription::{HeldBack, PausedBy};
use explain::words::time;
use http::StatusCode;
use http_api::{Id, Problem};
use store::Cancellation;
use store::webhook::{AskedAgain, NotificationView, Resent};
use uuid::Uuid;

use super::NotificationDocument;
use crate::app::App;
use crate::problems::{self, NOTIFICATION_BEYOND, NOTIFICATION_CANCELLED, NOTIFICATION_UNFINISHED};
use crate::request::{Manager, Reseller, Resender};

/// Shows a notification with its attempts: what was sent, what came back, how long it took.
#[utoipa::path(
    get, path = "/notifications/{id}", tag = "notifications", operation_id = "findNotification",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The notification's identifier.")),
    responses((status = 200, description = "The notification.", body = NotificationDocument))
)]
pub(crate) async fn find(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
) -> Result<Json<NotificationDocument>, Problem> {
    Ok(Json(look_up(&app, &reseller, id.into()).await?))
}

/// Sends a notification again that is SENT, FAILED or GIVEN_UP, or one in RETRY at once.
///
/// It is the same notification: the same event id, idempotency key and body. All of its retries are ahead of it. One that
/// was cancelled (reason CANCELLED) is not sent again. One in RETRY whose next attempt is ahead is tried at once; that is the next of the
/// attempts that it has left.
#[utoipa::path(
    post, path = "/notifications/{id}/resend", tag = "notifications", operation_id = "resendNotification",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The notification's identifier.")),
    responses((status = 202, description = "It will be sent in a moment.", body = NotificationDocument))
)]
pub(crate) async fn resend(
    State(app): State<Arc<App>>,
    reseller: Resender,
    Id(id): Id,
) -> Result<(StatusCode, Json<NotificationDocument>), Problem> {
    let id = NotificationId::from(id);
    let resend = app
        .store
        .resend_notification(&reseller.id, id, reseller.act(app.now()));
    let resent = http_api::by(reseller.deadline, ("the notification", "sent again"), resend).await?;
    let paused_by = match resent {
        Resent::Unfinished(_) => look_up(&app, &reseller, id).await?.paused_by(),
        _ => None,
    };
    if let Some(problem) = refusal(resent, paused_by) {
        return Err(problem);
    }
    let found = look_up(&app, &reseller, id).await?;
    Ok((StatusCode::ACCEPTED, Json(found)))
}

/// Why a notification is not sent again, if it is not. `paused_by` is whose pause it waits for.
fn refusal(resent: Resent, paused_by: Option<&'static str>) -> Option<Problem> {
    let problem = match resent {
        Resent::Done => return None,
        Resent::Unfinished(status) => {
            let detail = match paused_by {
                None if status == NotificationStatus::Scheduled => format!(
                    "the notification is {status} and waits in line, so that it is sent anyhow when its turn comes; its story says what it waits for \
                     and until when"
                ),
                None => {
                    format!("the notification is {status} and due or being sent, so that it is sent anyhow")
                }
                Some("RESELLER") => format!(
                    "the notification is {status} and waits for the end of a pause: you have paused its subscription, and it is sent when you \
                     resume that"
                ),
                Some(_) => format!(
                    "the notification is {status} and waits for the end of a pause: the operators have paused it, and it is sent when they \
                     resume it"
                ),
            };
            Problem::new(NOTIFICATION_UNFINISHED, detail)
        }
        Resent::Cancelled => {
            let detail = "the notification was cancelled, which is final";
            Problem::new(NOTIFICATION_CANCELLED, detail)
        }
        Resent::NotActive(state) => problems::not_active(state),
        Resent::Unknown => problems::no_notification(),
    };
    Some(problem)
}

/// What came of sending several again.
pub(crate) struct SentAgain {
    /// How many are sent again.
    pub(crate) count: u64,
    /// The others by why they are not, each as its event is called.
    pub(crate) refused: BTreeMap<String, Vec<String>>,
}

/// Sends several notifications again, of any subscriptions, each as [`resend`] does one, in one statement.
pub(crate) async fn resend_each(app: &App, reseller: &Resender, ids: &[Uuid]) -> Result<SentAgain, Problem> {
    let resend = app.store.resend_each(&reseller.id, ids, reseller.act(app.now()));
    let asked = http_api::by(reseller.deadline, ("the notifications", "sent again"), resend).await?;
    let is_unfinished = |asked: &&AskedAgain| matches!(asked.resent, Resent::Unfinished(_));
    let waiting = asked.iter().filter(is_unfinished);
    let waiting: Vec<_> = waiting.map(|asked| asked.subscription).collect();
    let held = app.store.held_back(&waiting);
    // What is sent again is told also where it is not found out for which pause others wait.
    let held = http_api::by(reseller.deadline, ("the subscriptions", "read"), held)
        .await
        .unwrap_or_default();
    let mut told = SentAgain {
        count: 0,
        refused: BTreeMap::new(),
    };
    let mut refuse = |problem: &Problem, name: String| {
        let reason = problem.detail().to_owned();
        told.refused.entry(reason).or_default().push(name);
    };
    for it in &asked {
        let held = held.get(&it.subscription).filter(|_| !it.claimed);
        let paused_by = held.and_then(|held| held.paused_by).map(PausedBy::for_reseller);
        match refusal(it.resent, paused_by) {
            None => told.count += 1,
            Some(problem) => {
                let event = it.event_id.clone().unwrap_or_else(|| it.id.to_string());
                refuse(&problem, format!("{event} ({})", it.event_type));
            }
        }
    }
    for id in ids {
        if !asked.iter().any(|it| it.id.uuid() == *id) {
            refuse(&problems::no_notification(), id.to_string());
        }
    }
    Ok(told)
}

/// Cancels a notification that waits: it is not sent any more, by no retry, resend or replay.
///
/// One that had been delivered and was to be sent again is SENT as before. One that is being sent at this moment cannot be cancelled. A place in
/// the quota of the day that it has is used up.
#[utoipa::path(
    post, path = "/notifications/{id}/cancel", tag = "notifications", operation_id = "cancelNotification",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The notification's identifier.")),
    responses((status = 200, description = "The notification as it is now.", body = NotificationDocument))
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    reseller: Manager,
    Id(id): Id,
) -> Result<Json<NotificationDocument>, Problem> {
    let id = NotificationId::from(id);
    // Whose a notification is never changes.
    look_up(&app, &reseller, id).await?;
    let cancel = app.store.cancel_notification(id, reseller.act(app.now()));
    match http_api::by(reseller.deadline, ("the notification", "cancelled"), cancel).await? {
        Cancellation::Done(_) | Cancellation::StaysDelivered(_) => {
            Ok(Json(look_up(&app, &reseller, id).await?))
        }
        Cancellation::BeingSent => Err(Problem::new(
            NOTIFICATION_BEYOND,
            "the notification is being sent at this moment",
        )),
        Cancellation::Before { at, .. } => Err(Problem::new(
            NOTIFICATION_BEYOND,
            format!("the notification was cancelled already, at {}", time(at)),
        )),
        Cancellation::Ended(status) => Err(Problem::new(
            NOTIFICATION_BEYOND,
            format!("the notification is {status} already"),
        )),
        Cancellation::Unknown => Err(problems::no_notification()),
    }
}

async fn look_up(
    app: &App,
    reseller: &Reseller,
    id: NotificationId,
) -> Result<NotificationDocument, Problem> {
    let find = app.store.find_notification(&reseller.id, id);
    let found = http_api::by(reseller.deadline, ("the notification", "read"), find).await?;
    let found = found.ok_or_else(problems::no_notification)?;
    let held = app.held_back(reseller, found.subscription).await?;
    Ok(shown(reseller, found, held))
}

/// As much of it as may be seen.
pub(super) fn shown(reseller: &Reseller, found: NotificationView, held: HeldBack) -> NotificationDocument {
    let document = NotificationDocument::of(found, held);
    if reseller.may(Capability::Bodies) {
        document
    } else {
        document.without_bodies()
    }
}
