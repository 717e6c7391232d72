//! R10: sending again what a subscription missed in some time.

use std::sync::Arc;

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::MappedLocalTime;
use domain::capability::Capability;
use domain::subscription::ReplayStatus;
use http_api::paging::List;
use http_api::{Draft, FieldProblem, Id, Ids, Params, Problem, Wrong};
use pages::{Fields, Markup, Page, done};
use uuid::Uuid;

use super::confirm::Confirm;
use super::frame::Frame;
use super::{Route, confirm, words};
use crate::app::App;
use crate::replays::{
    self, ReplayAnswer, ReplayDocument, ReplayParams, ReplayPayload, ReplayPreviewDocument,
};
use crate::request::{Reseller, Resender};
use crate::subscriptions::SubscriptionDocument;

pub(super) fn routes() -> Vec<Route> {
    use super::{act, page as at};
    vec![
        at("/app/s/{id}/replays", page),
        at("/app/s/{id}/replays/new", ask),
        act("/app/s/{id}/replays/new", start),
        at("/app/s/{id}/replays/{replay}/cancel", ask_to_cancel),
        act("/app/s/{id}/replays/{replay}/cancel", cancel),
    ]
}

#[derive(Template)]
#[template(path = "replays.html")]
struct Replays {
    frame: Frame,
    subscription: SubscriptionDocument,
    replays: List<ReplayDocument>,
    /// The one that is running, if any: the part of the list may be without it.
    running: Option<ReplayDocument>,
}

impl Replays {
    fn heading(&self) -> String {
        words::host(&self.subscription.url)
    }

    fn running(&self) -> Option<&ReplayDocument> {
        self.running.as_ref()
    }

    fn statuses(&self) -> [ReplayStatus; 3] {
        ReplayStatus::ALL
    }

    fn is_running(&self, replay: &ReplayDocument) -> bool {
        is_running(replay)
    }

    fn progress(&self, replay: &ReplayDocument) -> Markup {
        let tone = if is_running(replay) { "wait" } else { "ok" };
        words::progress(replay.progress, tone)
    }
}

fn is_running(replay: &ReplayDocument) -> bool {
    replay.status == ReplayStatus::Running
}

/// What was typed, what is wrong with it, and what it would send again.
#[derive(Default)]
struct Typed {
    since: String,
    until: String,
    event_types: String,
    statuses: Vec<String>,
    errors: Vec<FieldProblem>,
    preview: Option<ReplayPreviewDocument>,
}

#[derive(Template)]
#[template(path = "replay_new.html")]
struct NewReplay {
    frame: Frame,
    subscription: SubscriptionDocument,
    typed: Typed,
    is_running: bool,
    per_second: u32,
    max_age_seconds: u64,
}

impl NewReplay {
    fn heading(&self) -> String {
        words::host(&self.subscription.url)
    }

    fn has(&self, status: &str) -> bool {
        self.typed.statuses.iter().any(|known| known == status)
    }

    fn wrong(&self, field: &str) -> Option<&str> {
        confirm::wrong(&self.typed.errors, field)
    }
}

fn place(id: Uuid) -> String {
    format!("/app/s/{id}/replays")
}

async fn list(
    app: &Arc<App>,
    reseller: &Reseller,
    id: Uuid,
    params: ReplayParams,
) -> Result<List<ReplayDocument>, Problem> {
    let list = replays::list(State(Arc::clone(app)), reseller.clone(), Id(id), Params(params));
    Ok(list.await?.0)
}

/// The one that is running: at most one is.
async fn running(app: &Arc<App>, reseller: &Reseller, id: Uuid) -> Result<Option<ReplayDocument>, Problem> {
    let params = ReplayParams {
        status: Some(ReplayStatus::Running.as_str().to_owned()),
        limit: Some(1),
        ..ReplayParams::default()
    };
    Ok(list(app, reseller, id, params).await?.items.pop())
}

async fn page(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
    Params(params): Params<ReplayParams>,
) -> Result<impl IntoResponse, Problem> {
    Ok(Page(Replays {
        subscription: super::subscription(&app, &reseller, id).await?,
        running: running(&app, &reseller, id).await?,
        replays: list(&app, &reseller, id, params).await?,
        frame,
    }))
}

async fn form(
    app: &Arc<App>,
    reseller: &Reseller,
    frame: Frame,
    id: Uuid,
    typed: Typed,
) -> Result<Response, Problem> {
    let status = confirm::status(&typed.errors);
    let replay = &app.config.reseller.replay;
    let page = NewReplay {
        subscription: super::subscription(app, reseller, id).await?,
        is_running: running(app, reseller, id).await?.is_some(),
        per_second: replay.per_second,
        max_age_seconds: replay.max_age.as_secs(),
        frame,
        typed,
    };
    Ok((status, Page(page)).into_response())
}

async fn ask(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    let typed = Typed {
        since: frame.asked("since"),
        until: frame.asked("until"),
        ..Typed::default()
    };
    form(&app, &reseller, frame, id, typed).await
}

async fn start(
    State(app): State<Arc<App>>,
    resender: Resender,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let text = |name| fields.get(name).unwrap_or_default().to_owned();
    let (since, until) = (text("since"), text("until"));
    let zone = frame.preferences.zone;
    let is_count = fields.get("count").is_some();
    let (statuses, event_types) = (fields.all("status"), text("eventTypes"));
    let types = event_types
        .split([',', ' ', '\n'])
        .filter(|name| !name.is_empty());
    let types: Vec<_> = types.map(str::to_owned).collect();
    let payload = ReplayPayload {
        since: words::time(&since, zone, MappedLocalTime::earliest),
        until: words::time(&until, zone, MappedLocalTime::latest),
        event_types: Some(types).filter(|types| !types.is_empty()),
        statuses: Some(statuses.clone()).filter(|statuses| !statuses.is_empty()),
        dry_run: Some(is_count),
    };
    let is_wrong = !until.is_empty() && payload.until.is_none();
    let typed = Typed {
        since,
        until,
        event_types,
        statuses,
        ..Typed::default()
    };
    if is_wrong {
        let errors = vec![FieldProblem::new(
            "until",
            "must be a time such as 2026-11-21T12:00",
        )];
        return form(&app, &resender, frame, id, Typed { errors, ..typed }).await;
    }
    let draft = Draft(payload, Wrong::default());
    match replays::create(State(Arc::clone(&app)), resender.clone(), Id(id), draft).await {
        Ok((_, _, Json(ReplayAnswer::Made(_)))) => Ok(done(
            &place(id),
            "The replay has begun: this page shows how far it is.",
        )),
        Ok((_, _, Json(ReplayAnswer::Preview(preview)))) => {
            let preview = Some(preview);
            form(&app, &resender, frame, id, Typed { preview, ..typed }).await
        }
        Err(problem) => {
            let errors = confirm::mendable(problem)?;
            form(&app, &resender, frame, id, Typed { errors, ..typed }).await
        }
    }
}

fn cancellation(frame: &Frame, id: Uuid, replay: &ReplayDocument) -> Confirm {
    let sent = frame.number(replay.replayed);
    Confirm {
        id: "cancel",
        title: "Cancel the replay".to_owned(),
        said: vec![format!(
            "It goes on no more. The {sent} that it has made due already are still sent."
        )],
        action: format!("{}/{}/cancel", place(id), replay.id),
        back: place(id),
        button: "Cancel the replay",
        is_dangerous: true,
        expected: None,
        needs: "resend",
        may: frame.may(Capability::Resend),
        in_dialog: false,
        typed: None,
    }
}

async fn ask_to_cancel(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Ids(id, replay): Ids,
) -> Result<Response, Problem> {
    let found = replays::find(State(app), reseller, Ids(id, replay)).await?;
    Ok(cancellation(&frame, id, &found.0).page(frame))
}

async fn cancel(
    State(app): State<Arc<App>>,
    resender: Resender,
    Ids(id, replay): Ids,
) -> Result<Response, Problem> {
    replays::cancel(State(app), resender, Ids(id, replay)).await?;
    Ok(done(&place(id), "The replay is cancelled and goes on no more."))
}
