//! What the page of resellers lists, as a file: resellers, or the subscriptions that a search finds.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http_api::{Params, Problem, ReadParams, TakesBodies as _};

use super::{Search, TROUBLE, named, trouble_unknown};
use crate::app::App;
use crate::console::export::{self, Column, Rows};
use crate::console::frame::Frame;
use crate::request::Viewer;
use crate::{status, subscriptions};

const RESELLERS: [Column; 6] = [
    ("id", "/id"),
    ("subscriptions", "/subscriptions"),
    ("active", "/active"),
    ("paused", "/paused"),
    ("failing", "/failing"),
    ("failingSince", "/failingSince"),
];
const SUBSCRIPTIONS: [Column; 16] = [
    ("id", "/id"),
    ("resellerId", "/resellerId"),
    ("url", "/url"),
    ("description", "/description"),
    ("eventTypes", "/eventTypes"),
    ("email", "/email"),
    ("state", "/state"),
    ("stateReason", "/stateReason"),
    ("stateChangedAt", "/stateChangedAt"),
    ("pausedAt", "/pausedAt"),
    ("heldAt", "/heldAt"),
    ("failingSince", "/failingSince"),
    ("dailyQuota", "/dailyQuota"),
    ("requestsPerSecond", "/requestsPerSecond"),
    ("createdAt", "/createdAt"),
    ("updatedAt", "/updatedAt"),
];
const IN_TROUBLE: [Column; 7] = [
    ("id", "/id"),
    ("resellerId", "/resellerId"),
    ("endpoint", "/endpoint"),
    ("state", "/state"),
    ("reason", "/reason"),
    ("since", "/since"),
    ("failingSince", "/failingSince"),
];

/// The list as a file.
pub(super) async fn export(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
) -> Result<Response, Problem> {
    let Params(search) = export::params::<Search>(&frame, None).await?;
    if search.is_empty() {
        return resellers(app, &frame).await;
    }
    if search.state.as_deref() == Some(TROUBLE) {
        return in_trouble(app, viewer, &frame, &search).await;
    }
    let reseller = named(&app, viewer, search.text.as_deref()).await?;
    let asked = frame.clone();
    let part = move |cursor: Option<String>| {
        let (app, frame, reseller) = (Arc::clone(&app), asked.clone(), reseller.clone());
        async move {
            let Params(search) = export::params::<Search>(&frame, cursor.as_deref()).await?;
            let params = ReadParams::of(search.params(reseller));
            let deadline = app.deadline();
            let list = subscriptions::list(State(app), Viewer { deadline }, params)
                .await?
                .0;
            Ok(Rows::of(&list.items, list.next))
        }
    };
    export::file(&frame, "subscriptions", &SUBSCRIPTIONS, part).await
}

async fn resellers(app: Arc<App>, frame: &Frame) -> Result<Response, Problem> {
    export::list(app, frame, ("resellers", &RESELLERS), subscriptions::resellers).await
}

/// Those in trouble come at once, from what the page of now knows.
async fn in_trouble(
    app: Arc<App>,
    viewer: Viewer,
    frame: &Frame,
    search: &Search,
) -> Result<Response, Problem> {
    let known = status::status(State(app), viewer).await.0.subscriptions;
    let mut trouble = known.ok_or_else(trouble_unknown)?.in_trouble;
    trouble.retain(|it| search.admits(it));
    let rows = Rows::of(&trouble, None).items;
    let part = move |_: Option<String>| {
        let items = rows.clone();
        async move { Ok(Rows { items, next: None }) }
    };
    export::file(frame, "subscriptions-in-trouble", &IN_TROUBLE, part).await
}
