//! R13: what happens to notifications, as it happens, and a test event to see it by.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::notification::NotificationStatus;
use http::HeaderMap;
use http_api::{FieldProblem, Id, Payload, Problem, ReadParams};
use pages::{Fields, Filter, LeavingOut, Page, Without, done};
use uuid::Uuid;

use super::frame::Frame;
use super::{Route, confirm, words};
use crate::app::App;
use crate::changes;
use crate::notifications::all::{AllParams, ListedDocument};
use crate::notifications::{self, RowDocument};
use crate::request::{Manager, Reseller};
use crate::subscriptions;
use crate::subscriptions::test_event::TestPayload;

/// Where it is.
const PLACE: &str = "/app/live";
/// How many of the newest are shown.
const SHOWN: u32 = 50;

const FILTERS: [Filter; 2] = [
    Filter::new("Subscription", &["subscription"]),
    Filter::new("Status", &["status"]),
];

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page(PLACE, page),
        super::act(PLACE, send_test),
        super::page("/app/changes", changes::list),
    ]
}

/// A notification, and where it goes.
struct Line {
    row: RowDocument,
    subscription: Uuid,
    host: String,
}

/// The test event as it was typed, and what is wrong with it.
#[derive(Default)]
struct Typed {
    subscription: String,
    event_type: String,
    variant: String,
    errors: Vec<FieldProblem>,
}

#[derive(Template)]
#[template(path = "live.html")]
struct Live {
    frame: Frame,
    typed: Typed,
    lines: Vec<Line>,
    leaving_out: LeavingOut,
    /// Each with its host.
    subscriptions: Vec<(Uuid, String)>,
    /// Those to which nothing can be sent now.
    silent: Vec<Uuid>,
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

    fn is_silent(&self, id: &Uuid) -> bool {
        self.silent.contains(id)
    }

    fn wrong(&self, field: &str) -> Option<&str> {
        confirm::wrong(&self.typed.errors, field)
    }

    fn statuses(&self) -> [NotificationStatus; 7] {
        NotificationStatus::ALL
    }
}

fn host_of(all: &[(Uuid, String)], subscription: Uuid) -> String {
    let found = all.iter().find(|(id, _)| *id == subscription);
    found.map_or_else(String::new, |(_, host)| host.clone())
}

async fn page(State(app): State<Arc<App>>, reseller: Reseller, frame: Frame) -> Result<Response, Problem> {
    show(&app, &reseller, frame, Typed::default()).await
}

/// Sends a test event, which the page then shows as everything else.
async fn send_test(
    State(app): State<Arc<App>>,
    manager: Manager,
    frame: Frame,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Response, Problem> {
    let text = |name| fields.get(name).unwrap_or_default().trim().to_owned();
    let mut typed = Typed {
        subscription: text("subscription"),
        event_type: text("type"),
        variant: text("variant"),
        errors: Vec::new(),
    };
    let Ok(id) = typed.subscription.parse() else {
        typed.errors = vec![FieldProblem::new("subscription", "must be one of yours")];
        return show(&app, &manager, frame, typed).await;
    };
    let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let payload = Payload(TestPayload {
        event_type: given(&typed.event_type),
        variant: given(&typed.variant),
    });
    let state = State(Arc::clone(&app));
    match subscriptions::send_test(state, manager.clone(), Id(id), headers, Some(payload)).await {
        Ok(_) => Ok(done(PLACE, "A test event is on its way. It uses no quota.")),
        Err(problem) => {
            typed.errors = confirm::mendable(problem)?;
            show(&app, &manager, frame, typed).await
        }
    }
}

/// What the list is asked with at the address of a page; nothing where there is no such subscription.
fn asked(frame: &pages::Frame, all: &[(Uuid, String)], limit: u32) -> Option<AllParams> {
    let (only, status) = (frame.asked("subscription"), frame.asked("status"));
    let mut chosen = all
        .iter()
        .filter(|(id, _)| only.is_empty() || only == id.to_string());
    let (first, _) = chosen.next()?;
    Some(AllParams {
        subscription: chosen.next().is_none().then_some(*first),
        status: Some(status).filter(|status| !status.is_empty()),
        limit: Some(limit),
        ..AllParams::default()
    })
}

async fn newest(
    app: &Arc<App>,
    reseller: &Reseller,
    asked: Option<AllParams>,
) -> Result<Vec<ListedDocument>, Problem> {
    let Some(params) = asked else {
        return Ok(Vec::new());
    };
    let list = notifications::list_all(State(Arc::clone(app)), reseller.clone(), ReadParams::of(params));
    Ok(list.await?.0.items)
}

async fn show(app: &Arc<App>, reseller: &Reseller, frame: Frame, typed: Typed) -> Result<Response, Problem> {
    let all = super::subscriptions_of(app, reseller).await?;
    let silent = all.iter().filter(|subscription| !subscription.state.receives());
    let silent = silent.map(|subscription| subscription.id).collect();
    let all: Vec<_> = all
        .into_iter()
        .map(|subscription| (subscription.id, words::place(&subscription.url)))
        .collect();
    let mut lines: Vec<_> = newest(app, reseller, asked(&frame, &all, SHOWN))
        .await?
        .into_iter()
        .map(|found| Line {
            host: host_of(&all, found.subscription_id),
            subscription: found.subscription_id,
            row: found.row,
        })
        .collect();
    let mut leaving_out = LeavingOut::of(&frame, &FILTERS);
    if lines.is_empty() {
        for one in leaving_out.to_try() {
            let mut without = pages::Frame::clone(&frame);
            without.address = one.address().to_owned();
            let list = newest(app, reseller, asked(&without, &all, Without::LOOKED_FOR));
            // The list itself was read: its page is shown without this.
            let Ok(found) = list.await else { break };
            one.found(found.len(), found.len() >= Without::LOOKED_FOR as usize);
        }
    }
    lines.sort_by_key(|line| std::cmp::Reverse((line.row.updated_at, line.row.id)));
    let status = confirm::status(&typed.errors);
    let page = Live {
        frame,
        typed,
        lines,
        leaving_out,
        subscriptions: all,
        silent,
    };
    Ok((status, Page(page)).into_response())
}
