//! R13: what happens to notifications, as it happens.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use domain::notification::NotificationStatus;
use http_api::{Params, Problem};
use pages::Page;
use uuid::Uuid;

use super::frame::Frame;
use super::{Route, words};
use crate::app::App;
use crate::changes;
use crate::notifications::all::AllParams;
use crate::notifications::{self, RowDocument};
use crate::request::Reseller;

/// How many of the newest are shown.
const SHOWN: u32 = 50;

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page("/app/live", page),
        super::page("/app/changes", changes::list),
    ]
}

/// A notification, and where it goes.
struct Line {
    row: RowDocument,
    subscription: Uuid,
    host: String,
}

#[derive(Template)]
#[template(path = "live.html")]
struct Live {
    frame: Frame,
    lines: Vec<Line>,
    /// Each with its host.
    subscriptions: Vec<(Uuid, String)>,
}

impl Live {
    fn why(&self, row: &RowDocument) -> String {
        row.reason.as_deref().map_or_else(String::new, words::reason)
    }

    fn is_filtered(&self) -> bool {
        ["subscription", "status"]
            .iter()
            .any(|name| !self.frame.asked(name).is_empty())
    }

    fn statuses(&self) -> [NotificationStatus; 7] {
        NotificationStatus::ALL
    }
}

fn host_of(all: &[(Uuid, String)], subscription: Uuid) -> String {
    let found = all.iter().find(|(id, _)| *id == subscription);
    found.map_or_else(String::new, |(_, host)| host.clone())
}

async fn page(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
) -> Result<impl IntoResponse, Problem> {
    let state = || State(Arc::clone(&app));
    let all = super::subscriptions_of(&app, &reseller).await?;
    let all: Vec<_> = all
        .into_iter()
        .map(|subscription| (subscription.id, words::place(&subscription.url)))
        .collect();
    let (only, status) = (frame.asked("subscription"), frame.asked("status"));
    let chosen: Vec<_> = all
        .iter()
        .filter(|(id, _)| only.is_empty() || only == id.to_string())
        .collect();
    let mut lines = Vec::new();
    if let [first, others @ ..] = chosen.as_slice() {
        let params = AllParams {
            subscription: (others.is_empty()).then_some(first.0),
            status: Some(status).filter(|status| !status.is_empty()),
            limit: Some(SHOWN),
            ..AllParams::default()
        };
        let list = notifications::list_all(state(), reseller, Params(params)).await?;
        lines.extend(list.0.items.into_iter().map(|found| Line {
            host: host_of(&all, found.subscription_id),
            subscription: found.subscription_id,
            row: found.row,
        }));
    }
    lines.sort_by_key(|line| std::cmp::Reverse((line.row.updated_at, line.row.id)));
    Ok(Page(Live {
        frame,
        lines,
        subscriptions: all,
    }))
}
