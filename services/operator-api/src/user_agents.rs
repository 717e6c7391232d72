//! `GET /webpush/user-agents`: the user agents of Web Push, and where each was connected when that was last noted.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use http_api::{Problem, ReadParams, paging, words};
use serde::{Deserialize, Serialize};
use store::webpush::{Client, ClientFilter};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::examined::{Part, text, times};
use crate::request::Viewer;

/// The states of a user agent, as `GET /explain/{id}` tells them.
const STATES: [&str; 2] = [CONNECTED, AWAY];
const CONNECTED: &str = "CONNECTED";
const AWAY: &str = "AWAY";

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Which user agents.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UserAgentParams {
    /// In this state: CONNECTED or AWAY.
    #[param(example = "CONNECTED")]
    pub(crate) state: Option<String>,
    /// Connected to this node, which is named by the URL at which other nodes reach it (`webpush.connection.routerUrl`).
    #[param(example = "http://node-1.internal:8085")]
    pub(crate) node: Option<String>,
    /// Connected last at this time or later.
    pub(crate) since: Option<DateTime<Utc>>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// A user agent of Web Push in a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UserAgentListed)]
pub(crate) struct UserAgentDocument {
    /// Its identifier; `GET /explain/{id}` tells its story.
    pub(crate) id: Uuid,
    /// CONNECTED or AWAY, as its node last noted it: a node that died says nothing more.
    #[schema(example = "CONNECTED")]
    pub(crate) state: &'static str,
    /// The node that it is connected to.
    #[schema(example = "http://node-1.internal:8085")]
    pub(crate) node: Option<String>,
    /// When it last connected.
    pub(crate) connected_at: DateTime<Utc>,
    /// How many channels it has registered.
    pub(crate) channels: usize,
    /// The month whose messages it reads.
    #[schema(example = "2026-11")]
    pub(crate) month: String,
    /// When it registered its first channel.
    pub(crate) created_at: DateTime<Utc>,
}

impl From<Client> for UserAgentDocument {
    fn from(client: Client) -> Self {
        Self {
            id: client.uaid,
            state: if client.node.is_some() { CONNECTED } else { AWAY },
            node: client.node,
            connected_at: client.connected_at,
            channels: client.channels.len(),
            month: client.month.first_day().format("%Y-%m").to_string(),
            created_at: client.created_at,
        }
    }
}

/// Lists the user agents of Web Push that have registered a channel, in the order of their identifiers.
///
/// At most 10,000 are looked at for a part, so that one may be short, or even empty, although others follow: only `next` tells the end.
#[utoipa::path(
    get, path = "/webpush/user-agents", tag = "search", operation_id = "listUserAgents", security(("apiKey" = [])),
    params(UserAgentParams),
    responses((status = 200, description = "A part of the list.", body = Part<UserAgentDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    ReadParams(params, mut wrong): ReadParams<UserAgentParams>,
) -> Result<Json<Part<UserAgentDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let after = wrong.take(paging::read_id(params.cursor.as_deref()));
    let states: Vec<String> = wrong.take(words::some_of("state", params.state.as_deref(), &STATES));
    let (since, _) = wrong.take(times(params.since, None));
    let filter = ClientFilter {
        node: wrong.take(text("node", params.node.as_deref())),
        connected: match states.as_slice() {
            [only] => Some(only == CONNECTED),
            _ => None,
        },
        since,
    };
    wrong.end()?;
    let reading = app.store.webpush_clients(&filter, after, limit);
    let found = http_api::by(viewer.deadline, ("the user agents", "read"), reading).await?;
    Ok(Json(Part {
        items: found.items.into_iter().map(UserAgentDocument::from).collect(),
        next: found.next.map(paging::write_id),
        examined: found.examined,
        looked_back_to: None,
    }))
}
