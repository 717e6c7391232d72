//! R10: sending again what a subscription missed in some time.

use std::sync::Arc;

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{MappedLocalTime, TimeDelta};
use chrono_tz::Tz;
use domain::capability::Capability;
use domain::subscription::{ReplayStatus, SubscriptionState};
use http_api::paging::List;
use http_api::{Draft, FieldProblem, Id, Ids, Params, Problem, ReadParams, Wrong};
use pages::{Fields, Markup, Page, TYPED_ABOVE, done};
use uuid::Uuid;

use super::confirm::Confirm;
use super::frame::Frame;
use super::{Route, confirm, words};
use crate::activity;
use crate::app::App;
use crate::replays::{
    self, ReplayAnswer, ReplayDocument, ReplayParams, ReplayPayload, ReplayPreviewDocument,
};
use crate::request::{PartParams, Reseller, Resender};
use crate::subscriptions::SubscriptionDocument;

/// What failed shortly before a subscription was deactivated is missed as well, and what was delivered is left alone.
const FAILED_BEFORE: TimeDelta = TimeDelta::hours(1);
/// For how long a form that begins with the oldest time can be looked at.
const LOOKED_AT_FOR: TimeDelta = TimeDelta::minutes(10);

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

    fn is_typed(&self, preview: &ReplayPreviewDocument) -> bool {
        preview.count > TYPED_ABOVE
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
    let list = replays::list(
        State(Arc::clone(app)),
        reseller.clone(),
        Id(id),
        ReadParams::of(params),
    );
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

/// The form of a replay of what came while nothing was sent to a subscription that gets events again, as far as its states are known.
pub(super) async fn of_what_was_missed(
    app: &Arc<App>,
    reseller: &Reseller,
    frame: &Frame,
    id: Uuid,
) -> Result<Option<String>, Problem> {
    let states = activity::states(
        State(Arc::clone(app)),
        reseller.clone(),
        Id(id),
        ReadParams::of(PartParams::default()),
    );
    let states = states.await?.0.items;
    let before = states.iter().skip_while(|entry| entry.state.receives());
    let Some(missed) = before.take_while(|entry| !entry.state.receives()).last() else {
        return Ok(None);
    };
    let since = match missed.state {
        SubscriptionState::Deactivated => missed.at - FAILED_BEFORE,
        _ => missed.at,
    };
    // Some time is left to look at the form.
    let oldest = frame.now - app.config.reseller.replay.max_age + LOOKED_AT_FOR;
    let since = frame.local(since.max(oldest));
    Ok(Some(format!("{}/new?since={since}", place(id))))
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

/// What was typed, and the replay that it asks for.
fn read(fields: &Fields, zone: Tz) -> (Typed, ReplayPayload) {
    let text = |name| fields.get(name).unwrap_or_default().to_owned();
    let typed = Typed {
        since: text("since"),
        until: text("until"),
        event_types: text("eventTypes"),
        statuses: fields.all("status"),
        ..Typed::default()
    };
    let types = typed.event_types.split([',', ' ', '\n']);
    let types: Vec<_> = types.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let payload = ReplayPayload {
        since: words::time(&typed.since, zone, MappedLocalTime::earliest),
        until: words::time(&typed.until, zone, MappedLocalTime::latest),
        event_types: Some(types).filter(|types| !types.is_empty()),
        statuses: Some(typed.statuses.clone()).filter(|statuses| !statuses.is_empty()),
        dry_run: Some(true),
    };
    (typed, payload)
}

/// What keeps a replay of so many from being started: the number of many has to be typed.
fn objection(typed: Option<&str>, count: u64) -> Option<FieldProblem> {
    let typed = typed.map(|number| number.replace([',', ' '], ""));
    let is_agreed = count <= TYPED_ABOVE || typed == Some(count.to_string());
    (!is_agreed).then(|| FieldProblem::new("number", format!("must be {count}")))
}

/// Counts first, also where that was not asked for: how many they are decides whether their number has to be typed.
async fn start(
    State(app): State<Arc<App>>,
    resender: Resender,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let is_count = fields.get("count").is_some();
    let (typed, payload) = read(&fields, frame.preferences.zone);
    if !typed.until.is_empty() && payload.until.is_none() {
        let detail = "must be a time such as 2026-11-21T12:00";
        let errors = vec![FieldProblem::new("until", detail)];
        return form(&app, &resender, frame, id, Typed { errors, ..typed }).await;
    }
    let counting = Draft(payload.clone(), Wrong::default());
    let preview = match replays::create(State(Arc::clone(&app)), resender.clone(), Id(id), counting).await {
        Ok((_, _, Json(ReplayAnswer::Preview(preview)))) => preview,
        Ok((_, _, Json(ReplayAnswer::Made(_)))) => return Ok(begun(id)),
        Err(problem) => {
            let errors = confirm::mendable(problem)?;
            return form(&app, &resender, frame, id, Typed { errors, ..typed }).await;
        }
    };
    let objection = objection(fields.get("number"), preview.count).filter(|_| !is_count);
    if is_count || objection.is_some() {
        let typed = Typed {
            errors: objection.into_iter().collect(),
            preview: Some(preview),
            ..typed
        };
        return form(&app, &resender, frame, id, typed).await;
    }
    let payload = ReplayPayload {
        dry_run: None,
        ..payload
    };
    let draft = Draft(payload, Wrong::default());
    drop(replays::create(State(app), resender, Id(id), draft).await?);
    Ok(begun(id))
}

fn begun(id: Uuid) -> Response {
    done(&place(id), "The replay has begun: this page shows how far it is.")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_of_many_is_started_with_their_number_alone() {
        for (typed, count, is_right) in [
            (None, 0, true),
            (None, 1_000, true),
            (None, 1_001, false),
            (Some("1000"), 1_001, false),
            (Some("1001"), 1_001, true),
            (Some("1,001"), 1_001, true),
        ] {
            assert_eq!(
                objection(typed, count).is_none(),
                is_right,
                "{typed:?} of {count}"
            );
        }
    }
}
