//! Notifications and pushes as a file: those of the status that is shown, or of each that waits.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http_api::{Params, Problem, TakesBodies as _};

use super::{WAITING, WaitingParams, of_notifications, of_pushes};
use crate::app::App;
use crate::console::export::{self, Column, Rows};
use crate::console::frame::Frame;
use crate::request::Viewer;

const NOTIFICATIONS: [Column; 15] = [
    ("id", "/id"),
    ("acceptedAt", "/acceptedAt"),
    ("status", "/status"),
    ("reason", "/reason"),
    ("pausedBy", "/pausedBy"),
    ("resellerId", "/resellerId"),
    ("subscriptionId", "/subscriptionId"),
    ("url", "/url"),
    ("eventId", "/eventId"),
    ("eventType", "/eventType"),
    ("attempts", "/attempts"),
    ("nextAttemptAt", "/nextAttemptAt"),
    ("finishedAt", "/finishedAt"),
    ("responseStatus", "/responseStatus"),
    ("error", "/error"),
];
const PUSHES: [Column; 11] = [
    ("id", "/id"),
    ("createdAt", "/createdAt"),
    ("status", "/status"),
    ("reason", "/reason"),
    ("pausedBy", "/pausedBy"),
    ("platform", "/platform"),
    ("messagePrototypeKey", "/messagePrototypeKey"),
    ("attempts", "/attempts"),
    ("nextAttemptAt", "/nextAttemptAt"),
    ("finishedAt", "/finishedAt"),
    ("lastFailure", "/lastFailure"),
];

/// The list as a file.
pub(super) async fn export(
    State(app): State<Arc<App>>,
    _: Viewer,
    frame: Frame,
    Params(params): Params<WaitingParams>,
) -> Result<Response, Problem> {
    let is_push = params.is_push();
    let part = move |at: Option<String>| {
        let (app, params) = (Arc::clone(&app), params.clone());
        async move {
            let statuses = match params.one_status() {
                Some(status) => vec![status],
                None => WAITING.to_vec(),
            };
            // Where it goes on is the place of a status, and a cursor of its list.
            let at = at.unwrap_or_default();
            let (place, cursor) = at.split_once(' ').unwrap_or(("0", ""));
            let place: usize = place.parse().unwrap_or_default();
            let cursor = Some(cursor.to_owned()).filter(|cursor| !cursor.is_empty());
            let viewer = Viewer {
                deadline: app.deadline(),
            };
            let which = (
                statuses.get(place).copied().unwrap_or_default(),
                Some(export::PART),
                cursor,
            );
            let mut rows = if is_push {
                let part = of_pushes(&app, viewer, &params, which).await?;
                Rows::of(&part.items, part.next)
            } else {
                let part = of_notifications(&app, viewer, &params, which).await?;
                Rows::of(&part.items, part.next)
            };
            if let Some(reason) = params.reason.as_deref().filter(|_| !is_push) {
                rows.items.retain(|it| it["reason"] == *reason);
            }
            rows.next = match rows.next {
                Some(cursor) => Some(format!("{place} {cursor}")),
                None => (place + 1 < statuses.len()).then(|| format!("{} ", place + 1)),
            };
            Ok(rows)
        }
    };
    let (name, columns): (_, &'static [Column]) = if is_push {
        ("pushes", &PUSHES)
    } else {
        ("notifications", &NOTIFICATIONS)
    };
    export::file(&frame, name, columns, part).await
}
