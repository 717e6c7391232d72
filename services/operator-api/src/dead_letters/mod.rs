//! Dead letters: what will not be delivered unless an operator acts, in lists, in groups, and one by one with everything
//! that is known of it.
//!
//! What is done about them is in the modules of replays and jobs; these only look.

pub(crate) mod filter;
mod groups;
mod list;
mod note;
mod resellers;
mod show;
pub(crate) mod timeline;

use std::sync::Arc;

pub(crate) use groups::{__path_groups, GroupDocument, GroupsDocument, NoteDocument, groups};
#[cfg(feature = "fuzzing")]
pub(crate) use list::part;
pub(crate) use list::{__path_list, ListParams, list};
pub(crate) use note::{__path_put_note, GroupNotePayload, put_note};
pub(crate) use resellers::{__path_resellers, ResellerDocument, ResellersDocument, resellers};
pub(crate) use show::{__path_show, AttemptDocument, DetailsDocument, show, trace_id};
pub(crate) use timeline::{__path_timeline, GroupTimeline, timeline};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(groups))
        .routes(routes!(resellers))
        .routes(routes!(put_note))
        .routes(routes!(timeline))
        .routes(routes!(show))
}
