//! What became of an event that is looked for, where a list shows no notification of it.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::StatusCode;
use http_api::Problem;
use uuid::Uuid;

use super::words;
use crate::app::App;
use crate::events;
use crate::request::Reseller;

/// The event, and what became of it for each subscription.
pub(super) struct EventShown {
    pub(super) event_type: String,
    pub(super) accepted_at: DateTime<Utc>,
    pub(super) outcomes: Vec<Outcome>,
}

/// What became of it for a subscription.
pub(super) struct Outcome {
    /// The page of the notification, or the list of the subscription that got nothing.
    pub(super) address: String,
    /// Where the subscription sends to.
    pub(super) place: String,
    /// The status of the notification; empty where there is none.
    pub(super) status: &'static str,
    /// Why there is no notification.
    pub(super) explanation: String,
}

/// The event that is called so; `None` when there is none.
pub(super) async fn looked_for(
    app: &Arc<App>,
    reseller: &Reseller,
    id: &str,
) -> Result<Option<EventShown>, Problem> {
    let event = match events::look_up(app, reseller, id).await {
        Err(problem) if problem.kind().status() == StatusCode::NOT_FOUND => return Ok(None),
        found => found?,
    };
    let all = super::subscriptions_of(app, reseller).await?;
    let place = |id: Uuid| {
        let subscription = all.iter().find(|it| it.id == id);
        subscription.map_or_else(|| id.to_string(), |it| words::place(&it.url))
    };
    let got = event.notifications.iter().map(|it| Outcome {
        address: format!("/app/n/{}", it.row.id),
        place: place(it.subscription_id),
        status: it.row.status.as_str(),
        explanation: String::new(),
    });
    let missed = event.missed.iter().map(|it| Outcome {
        address: format!("/app/s/{}/deliveries", it.subscription_id),
        place: place(it.subscription_id),
        status: "",
        explanation: it.explanation.clone(),
    });
    Ok(Some(EventShown {
        outcomes: got.chain(missed).collect(),
        event_type: event.event_type,
        accepted_at: event.accepted_at,
    }))
}
