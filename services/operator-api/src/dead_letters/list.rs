//! `GET /dead-letters`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use http_api::paging::{self, List};
use http_api::{FieldCode, Problem, ReadParams, WrongQuery};
use store::{DeadLetterFilter, DeadLetterOrder, DeadLetterView};
use uuid::Uuid;

use super::filter::query_with_filter;
use crate::app::App;
use crate::request::Viewer;

query_with_filter! {
    /// Which dead letters, and which part of their list.
    ListParams {
        /// Which come first: `newest` or `oldest`.
        #[param(default = "newest")]
        order: Option<String>,
        /// How many entries.
        #[param(minimum = 1, maximum = 200, default = 50)]
        limit: Option<u32>,
        /// What the previous part gave as `next`.
        cursor: Option<String>,
    }
}

/// Lists dead letters by the time at which they were written.
///
/// A part may be short, or even empty, although others follow: only `next` tells the end.
#[utoipa::path(
    get, path = "/dead-letters", tag = "dead letters", operation_id = "listDeadLetters",
    security(("apiKey" = [])), params(ListParams),
    responses((status = 200, description = "A part of the list.", body = List<DeadLetterView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    ReadParams(params, wrong): ReadParams<ListParams>,
) -> Result<Json<List<DeadLetterView>>, Problem> {
    let (filter, order, limit, after) = wrong.with(part(&params))?;
    let list = app.store.list_dead_letters(&filter, order, after, limit);
    let page = http_api::by(viewer.deadline, ("the dead letters", "read"), list).await?;
    Ok(Json(List::new(page.items, page.next.map(paging::write_at))))
}

/// Where a part of a list begins: after this entry.
pub(crate) type After = Option<(DateTime<Utc>, Uuid)>;

/// Which dead letters are asked for, in which order, how many, and from where on.
pub(crate) fn part(params: &ListParams) -> Result<(DeadLetterFilter, DeadLetterOrder, u32, After), Problem> {
    let mut wrong = WrongQuery::default();
    let filter = wrong.take(params.filter());
    let limit = wrong.take(paging::limit(params.limit));
    let after = wrong.take(paging::read_at(params.cursor.as_deref()));
    let order = wrong.with(order(params.order.as_deref()))?;
    Ok((filter, order, limit, after))
}

fn order(given: Option<&str>) -> Result<DeadLetterOrder, Problem> {
    match given {
        None | Some("newest") => Ok(DeadLetterOrder::Newest),
        Some("oldest") => Ok(DeadLetterOrder::Oldest),
        Some(_) => {
            Err(Problem::query("order", "must be one of newest, oldest").coded(FieldCode::UnknownValue))
        }
    }
}
