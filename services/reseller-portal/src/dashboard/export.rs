//! R5, R7 and R15 as files: what a list has, as it is filtered, as comma-separated values, or as the list of the API.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http_api::{Id, Params, Problem, ReadParams};
use pages::export::{Column, File, Format, PART, Rows};
use uuid::Uuid;

use super::Route;
use super::activity::ActsAsked;
use super::delivery_filter::DeliveryParams;
use super::frame::Frame;
use crate::activity::{self, ActivityParams};
use crate::app::App;
use crate::notifications;
use crate::notifications::all::AllParams;
use crate::notifications::list::ScheduledParams;
use crate::request::{PartParams, Reseller};

/// What the files of a list are called and made of.
struct Kind {
    name: &'static str,
    columns: &'static [Column],
    /// What a file ends with that is not all.
    not_all: &'static str,
}

const DELIVERIES: Kind = Kind {
    name: "deliveries",
    columns: &[
        ("acceptedAt", "/acceptedAt"),
        ("notificationId", "/id"),
        ("eventId", "/eventId"),
        ("eventType", "/eventType"),
        ("subscriptionId", "/subscriptionId"),
        ("status", "/status"),
        ("reason", "/reason"),
        ("attempts", "/attempts"),
        ("lastStatus", "/last/status"),
        ("lastMillis", "/last/millis"),
        ("lastError", "/last/error"),
        ("payloadBytes", "/payloadBytes"),
        ("nextAttemptAt", "/nextAttemptAt"),
        ("finishedAt", "/finishedAt"),
    ],
    not_all: "This is not all: older notifications are missing. Narrow the time or the filter, or list them with GET /notifications and its until.",
};

const SCHEDULED: Kind = Kind {
    name: "scheduled",
    columns: &[
        ("acceptedAt", "/acceptedAt"),
        ("notificationId", "/id"),
        ("eventId", "/eventId"),
        ("eventType", "/eventType"),
        ("status", "/status"),
        ("reason", "/reason"),
        ("pausedBy", "/pausedBy"),
        ("attempts", "/attempts"),
        ("payloadBytes", "/payloadBytes"),
        ("nextAttemptAt", "/nextAttemptAt"),
    ],
    not_all: "This is not all: later notifications are missing. Narrow the filter, or list them with GET /subscriptions/{id}/scheduled.",
};

const ACTIVITY: Kind = Kind {
    name: "activity",
    columns: &[
        ("at", "/at"),
        ("id", "/id"),
        ("by", "/by"),
        ("name", "/name"),
        ("action", "/action"),
        ("subscriptionId", "/subscriptionId"),
        ("notificationId", "/notificationId"),
        ("note", "/note"),
        ("details", "/details"),
    ],
    not_all: "This is not all: older acts are missing. Narrow the time or the filter, or list them with GET /activity and its until.",
};

const MAILS: Kind = Kind {
    name: "mails",
    columns: &[
        ("createdAt", "/createdAt"),
        ("id", "/id"),
        ("kind", "/kind"),
        ("status", "/status"),
        ("subscriptionId", "/subscriptionId"),
        ("recipient", "/recipient"),
        ("occurrences", "/occurrences"),
        ("dueAt", "/dueAt"),
        ("finishedAt", "/finishedAt"),
    ],
    not_all: "This is not all: older mails are missing. List them with GET /mails.",
};

pub(super) fn routes() -> Vec<Route> {
    use super::page;
    vec![
        page("/app/deliveries.csv", of_all),
        page("/app/deliveries.json", of_all),
        page("/app/s/{id}/deliveries.csv", of_one),
        page("/app/s/{id}/deliveries.json", of_one),
        page("/app/s/{id}/scheduled.csv", scheduled),
        page("/app/s/{id}/scheduled.json", scheduled),
        page("/app/activity.csv", acts),
        page("/app/activity.json", acts),
        page("/app/activity/mails.csv", mails),
        page("/app/activity/mails.json", mails),
    ]
}

/// A file of this kind, in the format that its address ends with. `part` reads the rows from a cursor on. The first part is read in the turn of
/// the request, each of the others in a turn and until a deadline of its own: the whole file takes as long as its reader does, who must not keep
/// other requests of the reseller waiting.
async fn file<F, P>(
    kind: &Kind,
    (app, reseller, frame): (Arc<App>, Reseller, &Frame),
    part: F,
) -> Result<Response, Problem>
where
    F: Fn(Arc<App>, Reseller, Option<String>) -> P + Send + Sync + 'static,
    P: Future<Output = Result<Rows, Problem>> + Send,
{
    let path = frame.address.split('?').next().unwrap_or_default();
    let format = path.rsplit('.').next().and_then(Format::named);
    let file = File {
        name: kind.name.to_owned(),
        columns: kind.columns,
        not_all: kind.not_all,
    };
    let (part, between) = (Arc::new(part), reseller.between_turns());
    let part = move |cursor: Option<String>| {
        let (app, part, between) = (Arc::clone(&app), Arc::clone(&part), between.clone());
        async move {
            let reseller = if cursor.is_none() {
                between
            } else {
                between.in_turn(&app).await?
            };
            part(app, reseller, cursor).await
        }
    };
    let answer = file.answer(format.unwrap_or(Format::Csv), part).await;
    // The first part is read.
    drop(reseller);
    answer
}

async fn of_all(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Params(params): Params<DeliveryParams>,
) -> Result<Response, Problem> {
    deliveries((app, reseller, frame), params, None).await
}

async fn of_one(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
    Params(params): Params<DeliveryParams>,
) -> Result<Response, Problem> {
    super::subscription(&app, &reseller, id).await?;
    deliveries((app, reseller, frame), params, Some(id)).await
}

async fn deliveries(
    (app, reseller, frame): (Arc<App>, Reseller, Frame),
    params: DeliveryParams,
    subscription: Option<Uuid>,
) -> Result<Response, Problem> {
    let asked = frame.clone();
    let part = move |app, reseller, cursor| {
        let filter = params.filter(&asked, subscription);
        async move {
            let part = AllParams {
                limit: Some(PART),
                cursor,
                ..filter?
            };
            let list = notifications::list_all(State(app), reseller, ReadParams::of(part))
                .await?
                .0;
            Ok(Rows::of(&list.items, list.next))
        }
    };
    file(&DELIVERIES, (app, reseller, &frame), part).await
}

async fn scheduled(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
    Params(params): Params<ScheduledParams>,
) -> Result<Response, Problem> {
    let part = move |app, reseller, cursor| {
        let part = ScheduledParams {
            reason: params.reason.clone(),
            event_type: params.event_type.clone(),
            day: params.day,
            limit: Some(PART),
            cursor,
        };
        async move {
            let list = notifications::scheduled(State(app), reseller, Id(id), ReadParams::of(part)).await?;
            Ok(Rows::from(list.0))
        }
    };
    file(&SCHEDULED, (app, reseller, &frame), part).await
}

async fn acts(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Params(params): Params<ActsAsked>,
) -> Result<Response, Problem> {
    let asked = frame.clone();
    let part = move |app, reseller, cursor| {
        let filter = params.filter(&asked);
        async move {
            let part = ActivityParams {
                limit: Some(PART),
                cursor,
                ..filter?
            };
            Ok(Rows::from(
                activity::list(State(app), reseller, ReadParams::of(part))
                    .await?
                    .0,
            ))
        }
    };
    file(&ACTIVITY, (app, reseller, &frame), part).await
}

async fn mails(State(app): State<Arc<App>>, reseller: Reseller, frame: Frame) -> Result<Response, Problem> {
    let part = |app, reseller, cursor| async move {
        let part = PartParams {
            limit: Some(PART),
            cursor,
        };
        Ok(Rows::from(
            activity::mails(State(app), reseller, ReadParams::of(part))
                .await?
                .0,
        ))
    };
    file(&MAILS, (app, reseller, &frame), part).await
}
