//! `/console/subscriptions/{id}`: how a subscription is, why, what waits for it, and pausing it.

use std::collections::BTreeMap;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use chrono::{DateTime, Days, Utc};
use domain::quota::{day_of, start_of};
use domain::reason::StateReason;
pub(in crate::console) use explain::words::waits;
use http_api::{FieldProblem, Id, Payload, Problem, ReadParams};
use store::PauseView;
use uuid::Uuid;

use super::{of_late, place_of_subscription};
use crate::app::App;
use crate::console::act::{ActForm, Asked, is_as_shown, note};
use crate::console::frame::{Frame, Page, done, done_if};
use crate::console::pauses::{asked_end, gathered, paused, pausing, resumed, waiting_for};
use crate::console::retries::subscription_form;
use crate::console::visit::{Fields, onward};
use crate::notifications::{self, NotificationDocument, NotificationParams};
use crate::pauses;
use crate::request::{Administrator, Operator, Viewer};
use crate::subscriptions::{self, LimitsPayload, SubscriptionDocument};

/// Most notifications of each status that are counted for why they wait.
const COUNTED_MAX: u32 = 200;
/// The statuses in which a notification waits.
const WAITING: [&str; 3] = ["SCHEDULED", "PENDING", "RETRY"];

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/console/subscriptions/{id}", get(page))
        .route("/console/subscriptions/{id}/pause", get(ask_to_pause).post(pause))
        .route(
            "/console/subscriptions/{id}/resume",
            get(ask_to_resume).post(resume),
        )
        .route(
            "/console/subscriptions/{id}/limits",
            get(ask_for_limits).post(limit),
        )
}

/// How much a subscription may get in a day, and has got today.
pub(in crate::console) struct Quota {
    pub(in crate::console) daily: u32,
    pub(in crate::console) is_default: bool,
    pub(in crate::console) used: u64,
    /// Notifications in line for it, counted up to 100,000.
    pub(in crate::console) waiting: u64,
    pub(in crate::console) resets_at: DateTime<Utc>,
    pub(in crate::console) per_second: Option<u32>,
    /// What it has instead of the default.
    per_second_of_its_own: Option<u32>,
}

impl Quota {
    /// In whole percent, what is used of today's.
    pub(in crate::console) fn percent(&self) -> u64 {
        (self.used * 100)
            .checked_div(u64::from(self.daily))
            .unwrap_or_default()
            .min(100)
    }
}

/// The quota of a subscription; none of one that was deleted.
pub(in crate::console) async fn quota(
    app: &App,
    viewer: Viewer,
    (reseller, subscription): (&str, Uuid),
) -> Result<Option<Quota>, Problem> {
    let finding = app.store.find_quota(reseller, subscription);
    let found = http_api::by(viewer.deadline, ("the quota", "read"), finding).await?;
    let (defaults, zone) = (
        &app.config.reseller.subscription,
        app.config.reseller.quota.time_zone,
    );
    let today = day_of(app.now(), zone);
    Ok(found.map(|view| {
        let daily = view.daily_quota.unwrap_or(defaults.daily_quota);
        let used = view
            .budget
            .map_or(0, |(budget, quota)| budget.used_on(today, quota, daily));
        Quota {
            daily,
            is_default: view.daily_quota.is_none(),
            used,
            waiting: view.scheduled,
            resets_at: start_of(today.checked_add_days(Days::new(1)).unwrap_or(today), zone),
            per_second_of_its_own: view.requests_per_second,
            per_second: view.requests_per_second.or(defaults.requests_per_second),
        }
    }))
}

/// Notifications that wait for the same.
pub(in crate::console) struct Waits {
    why: &'static str,
    count: usize,
    /// Whether there are more than were counted.
    more: bool,
}

#[derive(Template)]
#[template(path = "subscription.html")]
struct Subscription {
    frame: Frame,
    it: SubscriptionDocument,
    /// Its state, in a sentence, and the tone of that.
    verdict: (&'static str, &'static str),
    pauses: Vec<PauseView>,
    quota: Option<Quota>,
    default_timeout: u64,
    waits: Vec<Waits>,
    notifications: Vec<NotificationDocument>,
    form: ActForm,
    /// To retry now what waits for a retry, if anything does.
    retry: Option<ActForm>,
    limits: ActForm,
}

async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<impl IntoResponse, Problem> {
    let state = || State(Arc::clone(&app));
    let it = subscriptions::find(state(), viewer, Id(id)).await?.0;
    let mut pauses = pauses::in_force(&app, viewer).await?;
    let key = id.to_string();
    // That of its reseller the subscription tells of by itself, and no operator can end it.
    pauses.retain(|pause| match pause.scope.as_str() {
        _ if pause.by_reseller => false,
        "lane" => pause.key == "reseller",
        "reseller" => pause.key == it.reseller_id,
        _ => pause.key == key,
    });
    let own = pauses.iter().find(|pause| pause.scope == "subscription");
    let quota = quota(&app, viewer, (&it.reseller_id, id)).await?;
    let (waits, retries) = waiting(&app, viewer, id).await?;
    let late = ReadParams::of(of_late(None, Some(id)));
    let notifications = notifications::list(state(), viewer, late).await?.0.items;
    let form = match own {
        Some(own) => resume_form(&frame, &key, pauses::waiting(&app, own).await),
        None => pause_form(&frame, &it, place_of_subscription(id)),
    };
    let limits = limits_form(&frame, id, quota.as_ref(), &app);
    Ok(Page(Subscription {
        limits: limits.in_dialog(),
        retry: (retries.0 > 0).then(|| subscription_form(retries, id, &frame).in_dialog()),
        verdict: verdict(&it, !pauses.is_empty()),
        frame,
        pauses,
        quota,
        default_timeout: u64::try_from(app.config.reseller.delivery.timeout.as_millis()).unwrap_or(u64::MAX),
        waits,
        notifications,
        form: form.in_dialog(),
        it,
    }))
}

/// What waits for a subscription, and for what; and how much of it waits for a retry, and whether there is more.
pub(in crate::console) async fn waiting(
    app: &Arc<App>,
    viewer: Viewer,
    id: Uuid,
) -> Result<(Vec<Waits>, (usize, bool)), Problem> {
    let mut retries = (0, false);
    let mut all: BTreeMap<&'static str, (usize, bool)> = BTreeMap::new();
    for status in WAITING {
        let params = NotificationParams {
            status: Some(status.to_owned()),
            limit: Some(COUNTED_MAX),
            ..of_late(None, Some(id))
        };
        let part = notifications::list(State(Arc::clone(app)), viewer, ReadParams::of(params))
            .await?
            .0;
        let more = part.next.is_some();
        if status == "RETRY" {
            retries = (part.items.len(), more);
        }
        for it in part.items {
            let why = if it.paused {
                "for the end of a pause"
            } else {
                waits(status, it.reason.as_deref().unwrap_or_default())
            };
            let (count, goes_on) = all.entry(why).or_default();
            *count += 1;
            *goes_on |= more;
        }
    }
    let waits = all
        .into_iter()
        .map(|(why, (count, more))| Waits { why, count, more });
    Ok((waits.collect(), retries))
}

/// The state of a subscription and why it has it, in a sentence, after the tone of that.
fn verdict(it: &SubscriptionDocument, is_held: bool) -> (&'static str, &'static str) {
    match it.state {
        "DEACTIVATED" => ("bad", deactivated(it.state_reason)),
        _ if is_held => (
            "hold",
            "It is paused by an operator: what comes is stored and waits.",
        ),
        _ if it.paused_at.is_some() => (
            "hold",
            "Its reseller has paused it: what comes is stored and waits.",
        ),
        "PENDING_VERIFICATION" => ("hold", unverified(it.state_reason)),
        "DEGRADED" => (
            "warn",
            "It is degraded: every attempt has failed for days. It still gets everything.",
        ),
        _ if it.failing_since.is_some() => (
            "warn",
            "It is active, and every attempt since its last success has failed.",
        ),
        _ => match it.state_reason {
            "RECOVERED" => (
                "ok",
                "It is active again: an attempt succeeded after it had been degraded.",
            ),
            "BY_RESELLER" => ("ok", "It is active: its reseller has switched it on."),
            _ => ("ok", "It is active: its endpoint has answered its challenge."),
        },
    }
}

fn deactivated(reason: &str) -> &'static str {
    match reason {
        "FAILING" => {
            "It is deactivated, since every attempt had failed for days. It gets nothing; its events are stored."
        }
        "REDIRECTED" => {
            "It is deactivated, since its endpoint redirects. It gets nothing; its events are stored."
        }
        "GONE" => {
            "It is deactivated, since its endpoint said that it is gone. It gets nothing; its events are stored."
        }
        "BY_RESELLER" => "Its reseller has deactivated it. It gets nothing; its events are stored.",
        _ => "It is deactivated. It gets nothing; its events are stored.",
    }
}

fn unverified(reason: &str) -> &'static str {
    match reason {
        "CREATED" => "It is new: nothing but challenges is sent until its endpoint answers one.",
        "ENDPOINT_CHANGED" => {
            "Its reseller gave it another endpoint, which has to answer a challenge before anything is sent."
        }
        _ => "Its endpoint has to answer a challenge before anything is sent.",
    }
}

/// Why a subscription has its state, in few words.
pub(in crate::console) fn reason(name: impl AsRef<str>) -> String {
    let name = name.as_ref();
    let known: Option<StateReason> = name.parse().ok();
    known.map_or_else(|| name.to_owned(), |reason| reason.said().to_owned())
}

/// Where an act on a subscription leads when it is done: to where its form was opened.
fn back_to(given: Option<&str>, id: Uuid) -> String {
    given.map_or_else(|| place_of_subscription(id), |back| onward(Some(back)))
}

fn pause_form(frame: &Frame, it: &SubscriptionDocument, back: String) -> ActForm {
    let place = place_of_subscription(it.id);
    ActForm {
        title: format!("Pause the subscription of {}", it.reseller_id),
        said: vec![
            format!("1 subscription is paused: {}, to {}.", it.id, it.url),
            "What is being sent ends; what comes is stored and waits. The reseller sees the pause and cannot end it. You \
             can end it at any time, and what waited is sent then."
                .to_owned(),
        ],
        button: "Pause",
        is_dangerous: true,
        fields: vec![asked_end()],
        ..ActForm::new(frame, format!("{place}/pause"), back)
    }
}

/// The form to let a subscription go on.
pub(in crate::console) fn resume_form(frame: &Frame, id: &str, waiting: Option<u64>) -> ActForm {
    let place = place_of_subscription(id);
    ActForm {
        title: "Resume the subscription".to_owned(),
        said: vec![
            gathered(waiting),
            format!(
                "What waits for the subscription {id} is sent by itself, within its quota and requests a second, unless a pause \
                 of its reseller or of the lane holds it too. You can pause it again at any time."
            ),
        ],
        button: "Resume",
        ..ActForm::new(frame, format!("{place}/resume"), place)
    }
}

async fn pause_form_of(
    app: &Arc<App>,
    viewer: Viewer,
    frame: &Frame,
    (id, back): (Uuid, String),
) -> Result<ActForm, Problem> {
    let Json(it) = subscriptions::find(State(Arc::clone(app)), viewer, Id(id)).await?;
    Ok(pause_form(frame, &it, back))
}

async fn ask_to_pause(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<impl IntoResponse, Problem> {
    let asked = frame.asked("back");
    let back = back_to(Some(&*asked).filter(|back| !back.is_empty()), id);
    let form = pause_form_of(&app, viewer, &frame, (id, back)).await?;
    Ok(form.page(frame))
}

async fn ask_to_resume(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    let id = id.to_string();
    let waiting = waiting_for(&app, viewer, ("subscription", &id)).await?;
    Ok(resume_form(&frame, &id, waiting).page(frame))
}

async fn pause(
    State(app): State<Arc<App>>,
    operator: Operator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let viewer = operator.viewer();
    let asked = pausing(&fields, app.now())?;
    let back = back_to(fields.get("back"), id);
    match pauses::pause_subscription(operator, Id(id), asked).await {
        Ok(Json(change)) => Ok(done_if(
            change.changed,
            &back,
            &paused("The subscription", &change),
        )),
        Err(problem) => pause_form_of(&app, viewer, &frame, (id, back))
            .await?
            .again(frame, &fields, problem),
    }
}

async fn resume(operator: Operator, frame: Frame, Id(id): Id, fields: Fields) -> Result<Response, Problem> {
    let (app, viewer) = (Arc::clone(&operator.app), operator.viewer());
    match pauses::resume_subscription(operator, Id(id), note(&fields)).await {
        Ok(Json(change)) => Ok(done_if(
            change.changed,
            &place_of_subscription(id),
            &resumed("The subscription", &change),
        )),
        Err(problem) => {
            let id = id.to_string();
            let waiting = waiting_for(&app, viewer, ("subscription", &id)).await?;
            resume_form(&frame, &id, waiting).again(frame, &fields, problem)
        }
    }
}
/// The form for both limits; what is empty is the default.
fn limits_form(frame: &Frame, id: Uuid, quota: Option<&Quota>, app: &App) -> ActForm {
    let defaults = &app.config.reseller.subscription;
    let written = |limit: Option<u32>| limit.map(|limit| limit.to_string()).unwrap_or_default();
    let of_its_own = quota.filter(|quota| !quota.is_default).map(|quota| quota.daily);
    let a_second = quota.and_then(|quota| quota.per_second_of_its_own);
    let no_limit = || "no limit".to_owned();
    let default_a_second = defaults
        .requests_per_second
        .map_or_else(no_limit, |limit| frame.number(limit));
    let form = ActForm {
        id: "limits".to_owned(),
        title: "Limits of the subscription".to_owned(),
        said: vec![
            format!("1 subscription: {id}."),
            "They hold at once, for what waits as for what comes, the oldest first, whatever was asked for. They can be changed at any time."
                .to_owned(),
        ],
        button: "Set the limits",
        fields: vec![
            Asked {
                name: "dailyQuota",
                label: "Notifications a day",
                hint: format!("The default when it is empty: {}.", frame.number(defaults.daily_quota)),
                value: written(of_its_own),
                shown: Some(written(of_its_own)),
                ..Asked::default()
            },
            Asked {
                name: "requestsPerSecond",
                label: "Attempts a second",
                hint: format!("The default when it is empty: {default_a_second}."),
                value: written(a_second),
                shown: Some(written(a_second)),
                ..Asked::default()
            },
        ],
        ..ActForm::new(
            frame,
            format!("{}/limits", place_of_subscription(id)),
            place_of_subscription(id),
        )
    };
    form.of_administrators(frame)
}

async fn limits_of(app: &Arc<App>, viewer: Viewer, frame: &Frame, id: Uuid) -> Result<ActForm, Problem> {
    let it = subscriptions::find(State(Arc::clone(app)), viewer, Id(id))
        .await?
        .0;
    let quota = quota(app, viewer, (&it.reseller_id, id)).await?;
    Ok(limits_form(frame, id, quota.as_ref(), app))
}

async fn ask_for_limits(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    Ok(limits_of(&app, viewer, &frame, id).await?.page(frame))
}

async fn limit(
    State(app): State<Arc<App>>,
    admin: Administrator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let viewer = admin.viewer();
    const MUST: &str = "a number, or empty for the default";
    // What another person has changed since the form was shown stays.
    let changed = |name: &'static str| match is_as_shown(&fields, name) {
        true => Ok(None),
        false => fields.parse(name, MUST).map(Some),
    };
    let payload = || {
        let (daily_quota, requests_per_second) = (changed("dailyQuota")?, changed("requestsPerSecond")?);
        if daily_quota.is_none() && requests_per_second.is_none() {
            let detail = "both limits are as they were shown: there is nothing to set";
            return Err(Problem::fields(vec![FieldProblem::new("dailyQuota", detail)]));
        }
        Ok(LimitsPayload {
            daily_quota,
            requests_per_second,
            note: fields.get("note").map(str::to_owned),
        })
    };
    let set = match payload() {
        Ok(payload) => subscriptions::limit(State(Arc::clone(&app)), admin, Id(id), Payload(payload)).await,
        Err(problem) => Err(problem),
    };
    match set {
        Ok(_) => Ok(done(
            &place_of_subscription(id),
            "The limits are set. They hold for what waits, too.",
        )),
        Err(problem) => {
            let form = limits_of(&app, viewer, &frame, id).await?;
            form.again(frame, &fields, problem)
        }
    }
}
