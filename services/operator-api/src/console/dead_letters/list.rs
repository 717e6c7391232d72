//! `/console/dead-letters/list`: dead letters by the time at which they were written, to choose some of them or all that match.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use http_api::{Params, Problem, ReadParams, paging};
use store::DeadLetterView;
use tokio::time::Instant;

use super::{AGES, Chosen, FIELDS};
use crate::app::App;
use crate::console::export::{self, Column};
use crate::console::frame::{Frame, Page, SHOWN};
use crate::dead_letters::{self, ListParams};
use crate::request::Viewer;

/// Words of the address that are this page's own.
const OWN: [&str; 3] = ["order", "cursor", "limit"];
/// How long others are looked for when a part of the list is short.
const PATIENCE: Duration = Duration::from_millis(300);
/// After how many counting is given up where the tallies do not know how many match: each is read, from another place of the table.
const COUNTED_MAX: u32 = 2_000;

#[derive(Template)]
#[template(path = "dead_letters_list.html")]
struct List {
    frame: Frame,
    chosen: Chosen,
    ages: [(&'static str, &'static str, i64); 4],
    letters: Vec<DeadLetterView>,
    next: Option<String>,
    /// How far the list was looked through, when that was not enough to fill it.
    searched: Option<DateTime<Utc>>,
    /// How many match, and whether there are more.
    total: u64,
    at_least: bool,
}

impl List {
    /// Where the list is as a file.
    fn file(&self, format: &str) -> String {
        export::link(&self.frame, "/console/dead-letters/export", format)
    }

    fn command(&self) -> String {
        let order = match &*self.frame.asked("order") {
            "oldest" => " --order oldest",
            _ => "",
        };
        self.chosen.listing("list") + order
    }

    fn tabs(&self) -> [(String, &'static str, bool); 4] {
        super::tabs(&self.chosen, "list")
    }
}

/// What a file of dead letters has.
const COLUMNS: [Column; 16] = [
    ("id", "/id"),
    ("createdAt", "/createdAt"),
    ("lane", "/lane"),
    ("state", "/state"),
    ("outcome", "/outcome"),
    ("reason", "/reason"),
    ("fingerprint", "/fingerprint"),
    ("target", "/target"),
    ("reseller", "/resellerId"),
    ("subscription", "/subscriptionId"),
    ("push", "/pushId"),
    ("notification", "/notificationId"),
    ("eventType", "/eventType"),
    ("prototype", "/prototype"),
    ("attempts", "/attempts"),
    ("detail", "/detail"),
];

/// The list as a file.
pub(super) async fn export(
    State(app): State<Arc<App>>,
    _: Viewer,
    frame: Frame,
) -> Result<Response, Problem> {
    export::list(app, &frame, ("dead-letters", &COLUMNS), dead_letters::list).await
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    mut frame: Frame,
) -> Result<impl IntoResponse, Problem> {
    let chosen = Chosen::asked(&frame, &OWN);
    let limit = frame.asked("limit");
    let limit = match &*limit {
        "" => SHOWN,
        asked => asked
            .parse()
            .map_err(|_| Problem::query("limit", "must be a number"))?,
    };
    let found = Box::pin(found(&app, viewer, (&frame, &chosen), limit)).await;
    let found = frame.filtered(found, &FIELDS)?.unwrap_or_default();
    let is_short = found.letters.len() < limit;
    let searched = found
        .next
        .as_deref()
        .filter(|_| is_short)
        .and_then(|cursor| paging::read_at(Some(cursor)).ok());
    let status = frame.list_status();
    let page = Page(List {
        chosen,
        ages: AGES,
        letters: found.letters,
        searched: searched.flatten().map(|(at, _)| at),
        next: found.next,
        total: found.total,
        at_least: found.at_least,
        frame,
    });
    Ok((status, page))
}

/// A page of the list.
#[derive(Default)]
struct Found {
    letters: Vec<DeadLetterView>,
    next: Option<String>,
    /// How many match, and whether there are more.
    total: u64,
    at_least: bool,
}

async fn found(
    app: &Arc<App>,
    viewer: Viewer,
    (frame, chosen): (&Frame, &Chosen),
    limit: usize,
) -> Result<Found, Problem> {
    let listed = listed(app, viewer, (frame, chosen), limit);
    let (listed, counted) = tokio::join!(listed, counted(app, viewer, (frame, chosen)));
    // What is wrong with a filter is told by the list, with what else is wrong.
    let (letters, next) = listed?;
    let (total, at_least) = counted?;
    Ok(Found {
        letters,
        next,
        total,
        at_least,
    })
}

/// The dead letters of a page, and where the next one begins.
async fn listed(
    app: &Arc<App>,
    viewer: Viewer,
    (frame, chosen): (&Frame, &Chosen),
    limit: usize,
) -> Result<(Vec<DeadLetterView>, Option<String>), Problem> {
    let order = frame.asked("order");
    let (mut letters, mut next) = (Vec::new(), Some(frame.asked("cursor")));
    let patience = Instant::now() + PATIENCE;
    while let Some(cursor) = next.take() {
        let more = (limit - letters.len()).to_string();
        let more = [("order", &*order), ("limit", &*more), ("cursor", &*cursor)];
        let Params(params) = chosen.params(frame.now, &more).await?;
        let part = dead_letters::list(State(Arc::clone(app)), viewer, ReadParams::of(params))
            .await?
            .0;
        letters.extend(part.items);
        next = part.next;
        if letters.len() >= limit || Instant::now() > patience {
            break;
        }
    }
    Ok((letters, next))
}

/// How many match, and whether there are more.
async fn counted(
    app: &App,
    viewer: Viewer,
    (frame, chosen): (&Frame, &Chosen),
) -> Result<(u64, bool), Problem> {
    let Params(params): Params<ListParams> = chosen.params(frame.now, &[]).await?;
    let filter = params.filter()?;
    let counting = app.store.count_dead_letters(&filter, COUNTED_MAX);
    http_api::by(viewer.deadline, ("the dead letters", "counted"), counting).await
}
