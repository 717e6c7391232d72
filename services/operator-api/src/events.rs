//! `GET /events`: events of all resellers or of one, by a value in their data; those that became no notification are in no other list.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use http_api::{Problem, ReadParams, paging};
use serde::{Deserialize, Serialize};
use store::webhook::{EventFound, EventSearch};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::examined::{Part, event_type, text, times};
use crate::request::Viewer;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Which events.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventParams {
    /// Of this reseller.
    #[param(example = "acme")]
    reseller: Option<String>,
    /// Of this type.
    event_type: Option<String>,
    /// Whose data has this text as a whole value, at whatever place, such as the name of a domain, A to Z in either case; the name
    /// of a field and the eventId that the caller gave are found as well.
    #[param(example = "example.org")]
    value: Option<String>,
    /// Only those that matched no subscription when they were accepted, so that they became no notification.
    unmatched: Option<bool>,
    /// Accepted at this time or later.
    since: Option<DateTime<Utc>>,
    /// Accepted before this time.
    until: Option<DateTime<Utc>>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// What the previous part gave as `next`.
    cursor: Option<String>,
}

/// An event in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EventListed)]
pub(crate) struct EventDocument {
    /// Its identifier; `GET /explain/{id}` tells its story.
    id: Uuid,
    /// What receivers know it by: the caller's eventId, else its identifier.
    #[schema(example = "order-4711")]
    event_id: String,
    /// Whose event it is.
    #[schema(example = "acme")]
    reseller_id: String,
    /// Its type.
    #[schema(example = "domain.created")]
    event_type: String,
    /// When it happened.
    occurred_at: DateTime<Utc>,
    /// When it was accepted.
    accepted_at: DateTime<Utc>,
    /// How many notifications it became.
    notifications: u64,
}

impl EventDocument {
    fn of(found: EventFound) -> Self {
        Self {
            id: found.id,
            event_id: found.event_id,
            reseller_id: found.reseller,
            event_type: found.event_type,
            occurred_at: found.occurred_at,
            accepted_at: found.created_at,
            notifications: found.notifications,
        }
    }
}

/// Lists events, the newest first; also those that matched no subscription.
///
/// At most 50,000 events are looked at for a part, so that one may be short, or even empty, although others follow: only `next` tells the
/// end. What an event says is never shown.
#[utoipa::path(
    get, path = "/events", tag = "search", operation_id = "listEvents", security(("apiKey" = [])),
    params(EventParams),
    responses((status = 200, description = "A part of the list.", body = Part<EventDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    ReadParams(params, mut wrong): ReadParams<EventParams>,
) -> Result<Json<Part<EventDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let after = wrong.take(paging::read_at(params.cursor.as_deref()));
    let (since, until) = wrong.take(times(params.since, params.until));
    let search = EventSearch {
        reseller: wrong.take(text("reseller", params.reseller.as_deref())),
        event_type: wrong.take(event_type(params.event_type.as_deref())),
        value: wrong.take(text("value", params.value.as_deref())),
        unmatched: params.unmatched.unwrap_or_default(),
        since,
        until,
    };
    wrong.end()?;
    let searching = app.store.search_events(&search, after, limit);
    let found = http_api::by(viewer.deadline, ("the events", "read"), searching).await?;
    Ok(Json(Part::newest_first(found, limit, EventDocument::of)))
}
