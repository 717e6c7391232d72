//! `/console/resellers`: who is told of events, which subscriptions are in trouble, and pausing all of a reseller.

mod dashboard;
mod export;
pub(super) mod subscription;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use explain::words;
use http_api::paging::List;
use http_api::{Name, Params, Problem, ProblemKind, ReadParams};
use serde::Deserialize;
use store::PauseView;
use uuid::Uuid;

use super::act::{ActForm, note};
use super::frame::{Frame, Page, done_if, see_other, segment};
use super::pauses::{asked_end, gathered, paused, pausing, resumed, waiting_for};
use super::visit::Fields;
use crate::app::App;
use crate::notifications::{self, NotificationDocument, NotificationParams};
use crate::pauses;
use crate::portal_links::{self, LinkListed};
use crate::request::{Operator, Viewer};
use crate::status::{self, TroubleDocument};
use crate::subscriptions::{
    self, ResellerDocument, ResellerParams, SubscriptionDocument, SubscriptionParams,
};

/// How many notifications the page of a reseller or a subscription shows.
const RECENT: u32 = 20;
/// How many subscriptions in trouble the list of resellers begins with.
const TROUBLE_SHOWN: usize = 10;

/// How many subscriptions are counted that a pause is about.
const COUNTED_MAX: u32 = 200;
/// How many resellers are shown whose names begin with what is searched for.
const NAMED_SHOWN: u32 = 10;

/// The fields of the form of filters.
const FIELDS: [&str; 4] = ["text", "state", "failing", "paused"];
/// The state of a search for those in trouble.
const TROUBLE: &str = "trouble";
/// After how many seconds what could not be found out may be.
const RETRY_AFTER: u32 = 5;

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/console/resellers", get(page))
        // Not below the resellers: one may be called so.
        .route("/console/subscriptions/export", get(export::export))
        .route("/console/resellers/{reseller}", get(one))
        .route(
            "/console/resellers/{reseller}/pause",
            get(ask_to_pause).post(pause),
        )
        .route(
            "/console/resellers/{reseller}/resume",
            get(ask_to_resume).post(resume),
        )
        .route(
            "/console/resellers/{reseller}/dashboard",
            get(dashboard::ask).post(dashboard::make),
        )
        .route(
            "/console/portal-links/{id}/revoke",
            get(dashboard::ask_to_revoke).post(dashboard::revoke),
        )
        .merge(subscription::routes())
}

/// The page of a reseller.
pub(super) fn place_of_reseller(reseller: &str) -> String {
    format!("/console/resellers/{}", segment(reseller))
}

/// The page of a subscription.
pub(super) fn place_of_subscription(id: impl Display) -> String {
    format!("/console/subscriptions/{id}")
}

/// The end of an identifier: subscriptions that are made together begin alike.
pub(super) fn tail(id: &Uuid) -> String {
    let mut text = id.to_string();
    text.split_off(text.len() - 12)
}

/// A word of a command, for a shell.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Which subscriptions.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    /// The name of a reseller, a part of a URL, or the identifier of a subscription.
    text: Option<String>,
    /// A state, or `trouble`.
    state: Option<String>,
    failing: Option<bool>,
    paused: Option<bool>,
    limit: Option<u32>,
    cursor: Option<String>,
}

impl Search {
    fn is_empty(&self) -> bool {
        self.text.is_none() && self.state.is_none() && self.failing.is_none() && self.paused.is_none()
    }

    /// As the API is asked; the text is a reseller's name, or else a part of a URL.
    fn params(&self, reseller: Option<String>) -> SubscriptionParams {
        SubscriptionParams {
            url: self.text.clone().filter(|_| reseller.is_none()),
            reseller,
            state: self.state.clone(),
            failing: self.failing,
            paused: self.paused,
            limit: self.limit,
            cursor: self.cursor.clone(),
        }
    }

    /// Whether a subscription in trouble is searched for. Of those it is not known whether they are paused.
    fn admits(&self, trouble: &TroubleDocument) -> bool {
        let text = self.text.as_deref().unwrap_or_default();
        (trouble.reseller_id == text || trouble.endpoint.contains(text))
            && self
                .failing
                .is_none_or(|failing| failing == trouble.failing_since.is_some())
    }
}

/// What a search shows.
enum Found {
    /// All resellers, after the subscriptions in trouble.
    Resellers(Arc<List<ResellerDocument>>),
    /// The subscriptions in trouble.
    Trouble,
    /// Subscriptions with the text in their URL, or all.
    Subscriptions(List<SubscriptionDocument>),
}

#[derive(Template)]
#[template(path = "resellers.html")]
struct Resellers {
    frame: Frame,
    search: Search,
    /// How many subscriptions are in each state.
    states: BTreeMap<String, u64>,
    paused: u64,
    in_trouble: usize,
    /// Those of them that are shown.
    trouble: Vec<TroubleDocument>,
    /// The reseller whose name was searched for.
    reseller: Option<String>,
    /// Others whose names begin with what was searched for, if there are any.
    named_like: Option<List<ResellerDocument>>,
    found: Found,
}

impl Resellers {
    /// Where the list is as a file.
    fn file(&self, format: &str) -> String {
        super::export::link(&self.frame, "/console/subscriptions/export", format)
    }

    fn next(&self) -> Option<&str> {
        match &self.found {
            Found::Resellers(list) => list.next.as_deref(),
            Found::Subscriptions(list) => list.next.as_deref(),
            Found::Trouble => None,
        }
    }
}

async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    mut frame: Frame,
    asked: Result<Params<Search>, Problem>,
) -> Result<Response, Problem> {
    let search = frame.filtered(asked.map(|Params(search)| search), &FIELDS)?;
    let search = search.unwrap_or_default();
    if let Some(id) = search
        .text
        .as_ref()
        .and_then(|text| text.trim().parse::<Uuid>().ok())
    {
        return Ok(see_other(&place_of_subscription(id)));
    }
    let status = status::status(State(Arc::clone(&app)), viewer).await.0;
    let (mut trouble, mut states, mut paused) = (Vec::new(), BTreeMap::new(), 0);
    let is_of_trouble = search.state.as_deref() == Some(TROUBLE);
    if let Some(known) = status.subscriptions {
        (trouble, states, paused) = (known.in_trouble, known.states, known.paused);
    } else if is_of_trouble {
        // Or the page would say that there are none.
        return Err(trouble_unknown());
    }
    let (in_trouble, mut reseller, mut named_like) = (trouble.len(), None, None);
    let found = if !frame.is_readable() {
        trouble.clear();
        Found::Subscriptions(List::new(Vec::new(), None))
    } else if search.is_empty() {
        let is_first = search.cursor.is_none();
        trouble.truncate(if is_first { TROUBLE_SHOWN } else { 0 });
        let (limit, cursor) = (search.limit, search.cursor.clone());
        let name = None;
        let params = ReadParams::of(ResellerParams { name, limit, cursor });
        let reading = async {
            let read = subscriptions::resellers(State(Arc::clone(&app)), viewer, params).await;
            read.map(|list| list.0)
        };
        // The counts of the first part are the same for all who leave it open.
        Found::Resellers(match is_first && limit.is_none() {
            true => app.status.resellers(reading).await?,
            false => Arc::new(reading.await?),
        })
    } else if is_of_trouble {
        trouble.retain(|it| search.admits(it));
        Found::Trouble
    } else {
        trouble.clear();
        reseller = named(&app, viewer, search.text.as_deref()).await?;
        named_like = others_named_like(&app, viewer, &search, reseller.as_deref()).await?;
        let params = search.params(reseller.clone());
        let list = subscriptions::list(State(app), viewer, ReadParams::of(params)).await;
        let list = frame.filtered(list.map(|list| list.0), &FIELDS)?;
        Found::Subscriptions(list.unwrap_or_else(|| List::new(Vec::new(), None)))
    };
    let answered = frame.list_status();
    let page = Resellers {
        frame,
        search,
        states,
        paused,
        in_trouble,
        trouble,
        reseller,
        named_like,
        found,
    };
    Ok((answered, Page(page)).into_response())
}

fn trouble_unknown() -> Problem {
    let detail = "which subscriptions are in trouble cannot be found out now";
    Problem::unavailable(detail, RETRY_AFTER)
}

/// The text that is searched for, if it is the name of a reseller that has subscriptions.
async fn named(app: &Arc<App>, viewer: Viewer, text: Option<&str>) -> Result<Option<String>, Problem> {
    let Some(name) = text.map(str::trim) else {
        return Ok(None);
    };
    let mut one = of_reseller(name, None);
    one.limit = Some(1);
    let Json(found) = subscriptions::list(State(Arc::clone(app)), viewer, ReadParams::of(one)).await?;
    Ok(found.items.into_iter().next().map(|it| it.reseller_id))
}

/// Resellers whose names begin with the text that is searched for, beside the one that has it as a whole; on the first part alone.
async fn others_named_like(
    app: &Arc<App>,
    viewer: Viewer,
    search: &Search,
    reseller: Option<&str>,
) -> Result<Option<List<ResellerDocument>>, Problem> {
    let text = search.text.as_deref().map(str::trim).unwrap_or_default();
    // With a slash it is a part of a URL.
    if text.is_empty() || text.contains('/') || search.cursor.is_some() {
        return Ok(None);
    }
    let mut found = subscriptions::named_like(app, viewer, text, NAMED_SHOWN).await?;
    found.items.retain(|it| Some(&*it.id) != reseller);
    Ok(Some(found).filter(|found| !found.items.is_empty()))
}

/// All subscriptions of a reseller.
fn of_reseller(reseller: &str, cursor: Option<String>) -> SubscriptionParams {
    SubscriptionParams {
        reseller: Some(reseller.to_owned()),
        state: None,
        failing: None,
        paused: None,
        url: None,
        limit: None,
        cursor,
    }
}

/// Notifications of late, of a reseller or of a subscription.
fn of_late(reseller: Option<&str>, subscription: Option<Uuid>) -> NotificationParams {
    NotificationParams {
        reseller: reseller.map(str::to_owned),
        subscription,
        limit: Some(RECENT),
        ..NotificationParams::default()
    }
}

#[derive(Template)]
#[template(path = "reseller.html")]
struct Reseller {
    frame: Frame,
    name: String,
    place: String,
    list: List<SubscriptionDocument>,
    notifications: Vec<NotificationDocument>,
    /// The pause of all of it that is in force.
    pause: Option<PauseView>,
    /// Links to its dashboard that can still be used.
    links: Vec<LinkListed>,
    form: ActForm,
    dashboard: ActForm,
}

impl Reseller {
    /// Where a link is revoked, and from there back to this page.
    fn revoking(&self, link: &Uuid) -> String {
        dashboard::place_to_revoke(link, &self.place)
    }

    fn failing(&self) -> usize {
        self.list
            .items
            .iter()
            .filter(|it| it.failing_since.is_some())
            .count()
    }
}

/// Where the list of its subscriptions goes on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    cursor: Option<String>,
}

async fn one(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Name(name): Name,
    Params(part): Params<Part>,
) -> Result<impl IntoResponse, Problem> {
    let state = || State(Arc::clone(&app));
    let is_first = part.cursor.is_none();
    let Json(list) =
        subscriptions::list(state(), viewer, ReadParams::of(of_reseller(&name, part.cursor))).await?;
    let late = notifications::list(state(), viewer, ReadParams::of(of_late(Some(&name), None)))
        .await?
        .0;
    let pause = pause_of(state(), viewer, ("reseller", &name)).await?;
    if is_first && list.items.is_empty() && late.items.is_empty() && pause.is_none() {
        let detail = "no reseller of this name has subscriptions, notifications or a pause";
        return Err(Problem::new(ProblemKind::NOT_FOUND, detail));
    }
    let links = portal_links::usable(&app, viewer, &name).await?;
    let form = match &pause {
        Some(pause) => resume_form(&frame, &name, pauses::waiting(&app, pause).await),
        // The page may show all of them already.
        None if is_first && list.next.is_none() => {
            pause_form(&frame, &name, (list.items.len() as u64, false))
        }
        None => pause_form(&frame, &name, counted(&app, viewer, &name).await?),
    };
    let dashboard = dashboard::form(&frame, &name).in_dialog();
    Ok(Page(Reseller {
        frame,
        place: place_of_reseller(&name),
        name,
        list,
        notifications: late.items,
        pause,
        links,
        form: form.in_dialog(),
        dashboard,
    }))
}

/// The pause of a thing that is in force.
async fn pause_of(
    state: State<Arc<App>>,
    viewer: Viewer,
    (scope, key): (&str, &str),
) -> Result<Option<PauseView>, Problem> {
    let State(app) = state;
    let mut pauses = pauses::in_force(&app, viewer).await?.into_iter();
    Ok(pauses.find(|pause| pause.scope == scope && pause.key == key))
}

/// How many subscriptions a reseller has, as far as one part of their list goes, and whether there are more.
async fn counted(app: &Arc<App>, viewer: Viewer, reseller: &str) -> Result<(u64, bool), Problem> {
    let mut all = of_reseller(reseller, None);
    all.limit = Some(COUNTED_MAX);
    let Json(found) = subscriptions::list(State(Arc::clone(app)), viewer, ReadParams::of(all)).await?;
    Ok((found.items.len() as u64, found.next.is_some()))
}

fn pause_form(frame: &Frame, reseller: &str, (count, more): (u64, bool)) -> ActForm {
    let place = place_of_reseller(reseller);
    let more = if more { "More than " } else { "" };
    let one = format!("subscription of {reseller} is paused");
    let paused = words::of(count, &one, &format!("subscriptions of {reseller} are paused"));
    ActForm {
        title: format!("Pause all of {reseller}"),
        said: vec![
            format!("{more}{paused}, and those that it makes meanwhile."),
            "What is being sent ends; what comes is stored and waits. The reseller sees the pause and cannot end it. You can end it at any time, and what waited is sent then."
                .to_owned(),
        ],
        button: "Pause",
        is_dangerous: true,
        fields: vec![asked_end()],
        ..ActForm::new(frame, format!("{place}/pause"), place)
    }
}

/// The form to let all of a reseller go on.
pub(super) fn resume_form(frame: &Frame, reseller: &str, waiting: Option<u64>) -> ActForm {
    let place = place_of_reseller(reseller);
    ActForm {
        title: format!("Resume {reseller}"),
        said: vec![
            gathered(waiting),
            format!(
                "What waits for {reseller} is sent by itself, within its quotas and requests a second. Subscriptions with a pause of their own stay paused. You can pause it again at any time."
            ),
        ],
        button: "Resume",
        ..ActForm::new(frame, format!("{place}/resume"), place)
    }
}

async fn ask_to_pause(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Name(name): Name,
) -> Result<Response, Problem> {
    let count = counted(&app, viewer, &name).await?;
    Ok(pause_form(&frame, &name, count).page(frame))
}

async fn ask_to_resume(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Name(name): Name,
) -> Result<Response, Problem> {
    let waiting = waiting_for(&app, viewer, ("reseller", &name)).await?;
    Ok(resume_form(&frame, &name, waiting).page(frame))
}

async fn pause(
    operator: Operator,
    frame: Frame,
    Name(name): Name,
    fields: Fields,
) -> Result<Response, Problem> {
    let (app, viewer) = (Arc::clone(&operator.app), operator.viewer());
    let asked = pausing(&fields, app.now())?;
    match pauses::pause_reseller(operator, Name(name.clone()), asked).await {
        Ok(Json(change)) => Ok(done_if(
            change.changed,
            &place_of_reseller(&name),
            &paused(&name, &change),
        )),
        Err(problem) => {
            let count = counted(&app, viewer, &name).await?;
            pause_form(&frame, &name, count).again(frame, &fields, problem)
        }
    }
}

async fn resume(
    operator: Operator,
    frame: Frame,
    Name(name): Name,
    fields: Fields,
) -> Result<Response, Problem> {
    let (app, viewer) = (Arc::clone(&operator.app), operator.viewer());
    match pauses::resume_reseller(operator, Name(name.clone()), note(&fields)).await {
        Ok(Json(change)) => Ok(done_if(
            change.changed,
            &place_of_reseller(&name),
            &resumed(&name, &change),
        )),
        Err(problem) => {
            let waiting = waiting_for(&app, viewer, ("reseller", &name)).await?;
            resume_form(&frame, &name, waiting).again(frame, &fields, problem)
        }
    }
}
