//! `/console/waiting`: what waits longest and why, and cancelling one of it. With the filters every push and notification is found.

mod cancel;

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use chrono::{DateTime, LocalResult, NaiveDateTime, TimeZone as _, Utc};
use chrono_tz::Tz;
use domain::notification::NotificationStatus;
use domain::reason::NotificationReason;
use http::StatusCode;
use http_api::{FieldProblem, Params, Problem, ProblemKind};
use serde::Deserialize;
use store::PauseView;
use store::push::{HoldView, SWRVE};
use tokio::time::Instant;
use uuid::Uuid;

use super::act::ActForm;
use super::frame::{Frame, Page, segment};
use crate::app::App;
use crate::examined::Part;
use crate::notifications::{self, NotificationDocument, NotificationParams};
use crate::pauses;
use crate::pushes::{self, PushDocument, PushParams};
use crate::request::Viewer;

pub(super) use cancel::cancel_form;

/// How long a list goes on looking when what it has looked at holds too little of what is wanted.
const LOOKING: Duration = Duration::from_millis(300);
/// How many of each status are shown while no status is chosen.
const FIRST: usize = 10;
/// How many are shown of one status.
const SHOWN: usize = 50;
/// Status that leaves out none.
const ANY: &str = "ANY";

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/console/waiting", get(page))
        .merge(cancel::routes())
}

/// What is in the address. Has no `Debug`: it holds a device.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WaitingParams {
    lane: Option<String>,
    status: Option<String>,
    reason: Option<String>,
    device: Option<String>,
    prototype: Option<String>,
    platform: Option<String>,
    reseller: Option<String>,
    subscription: Option<String>,
    event_id: Option<String>,
    event_type: Option<String>,
    value: Option<String>,
    since: Option<String>,
    until: Option<String>,
    cursor: Option<String>,
}

impl WaitingParams {
    fn is_push(&self) -> bool {
        self.lane.as_deref() != Some("reseller")
    }

    /// The one status that is shown; `None` shows the first of each that waits. Of a device or an event everything is shown.
    fn one_status(&self) -> Option<&str> {
        let of_one = self.device.is_some() || self.event_id.is_some();
        self.status.as_deref().or(of_one.then_some(ANY))
    }

    fn filters(&self) -> bool {
        let texts = [
            &self.reason,
            &self.device,
            &self.prototype,
            &self.platform,
            &self.reseller,
            &self.subscription,
            &self.event_id,
            &self.event_type,
            &self.value,
            &self.since,
            &self.until,
        ];
        texts.iter().any(|text| text.is_some())
    }
}

#[derive(Template)]
#[template(path = "waiting.html")]
struct Waiting {
    frame: Frame,
    params: WaitingParams,
    sections: Vec<Section>,
    /// A pause of the lane.
    pause: Option<PauseView>,
    /// What is held because what it goes to is out of order.
    holds: Vec<HoldView>,
    errors: Vec<FieldProblem>,
}

/// Those of one status.
struct Section {
    status: String,
    rows: Vec<Row>,
    next: Option<String>,
    examined: u64,
    /// When the last one that was looked at was accepted.
    back_to: Option<DateTime<Utc>>,
}

/// A push or a notification.
struct Row {
    id: Uuid,
    status: &'static str,
    reason: Option<String>,
    /// Why it is where it is, and until when.
    why: String,
    at: Option<DateTime<Utc>>,
    accepted_at: DateTime<Utc>,
    attempts: u32,
    about: About,
    /// To cancel it, unless it has ended.
    form: Option<ActForm>,
}

enum About {
    Push {
        prototype: Option<String>,
        platform: &'static str,
    },
    Notification {
        event: Uuid,
        event_id: Option<String>,
        event_type: String,
        reseller: String,
        subscription: Uuid,
        endpoint: String,
    },
}

impl Waiting {
    fn is_push(&self) -> bool {
        self.params.is_push()
    }

    fn noun(&self) -> &'static str {
        if self.is_push() { "push" } else { "notification" }
    }

    fn value(&self, text: &Option<String>) -> String {
        text.clone().unwrap_or_default()
    }

    /// A time as a field for times takes it.
    fn moment(&self, text: &Option<String>) -> String {
        let Some(text) = text else { return String::new() };
        let zone = self.frame.preferences.zone;
        let at = DateTime::parse_from_rfc3339(text);
        at.map_or(text.clone(), |at| {
            at.with_timezone(&zone).format("%Y-%m-%dT%H:%M:%S").to_string()
        })
    }

    fn chosen(&self, chosen: &Option<String>, one: &str) -> bool {
        chosen.as_deref() == Some(one)
    }

    /// Statuses that wait, then those that have ended.
    fn statuses(&self) -> [(&'static str, &'static str); 9] {
        [
            ("", "What waits, the first of each"),
            ("SCHEDULED", "Scheduled"),
            ("PENDING", "Pending"),
            ("IN_MEMORY", "In the queue or being sent"),
            ("RETRY", "To be retried"),
            (ANY, "Any status"),
            ("SENT", "Sent"),
            ("FAILED", "Failed"),
            ("GIVEN_UP", "Given up"),
        ]
    }

    fn reasons(&self) -> Vec<String> {
        if self.is_push() {
            return vec!["REPLAYED".to_owned(), "CANCELLED".to_owned()];
        }
        NotificationReason::all()
            .map(|reason| reason.to_string())
            .collect()
    }

    /// How it is, in a sentence.
    fn sentence(&self) -> String {
        let many = if self.is_push() { "pushes" } else { "notifications" };
        if !self.errors.is_empty() {
            return "The filter cannot be read, so nothing is shown.".to_owned();
        }
        if self.params.one_status().is_some() {
            return match self.params.device {
                Some(_) => format!("The {many} of one device, the newest first."),
                None => format!("The {many} that match, those that wait longest or are newest first."),
            };
        }
        let shown = self
            .sections
            .iter()
            .map(|section| section.rows.len())
            .sum::<usize>();
        if shown == 0 {
            format!(
                "No {} waits.",
                if self.params.filters() {
                    "matching one"
                } else {
                    self.noun()
                }
            )
        } else {
            format!("The {many} that wait longest, and why each does.")
        }
    }

    fn is_empty(&self) -> bool {
        self.errors.is_empty()
            && self
                .sections
                .iter()
                .all(|section| section.rows.is_empty() && section.next.is_none())
    }

    fn forms(&self) -> impl Iterator<Item = &ActForm> {
        let rows = self.sections.iter().flat_map(|section| &section.rows);
        rows.filter_map(|row| row.form.as_ref())
    }
}

impl Section {
    /// Whether fewer were found than are shown although the list goes on.
    fn is_short(&self) -> bool {
        self.next.is_some() && self.rows.len() < SHOWN
    }
}

async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Params(params): Params<WaitingParams>,
) -> Result<Response, Problem> {
    let pauses = pauses::list(State(Arc::clone(&app)), viewer).await?.0.items;
    let lane = if params.is_push() { "push" } else { "reseller" };
    let pause = pauses
        .into_iter()
        .find(|pause| pause.scope == "lane" && pause.key == lane);
    let mut holds = http_api::by(viewer.deadline, ("the holds", "read"), app.store.list_holds()).await?;
    holds.retain(|hold| (hold.class == SWRVE) == params.is_push() && hold.answered_at.is_none());
    let (sections, errors) = match sections(&app, viewer, &frame, &params).await {
        Ok(sections) => (sections, Vec::new()),
        Err(problem) if problem.kind() == ProblemKind::INVALID_QUERY => {
            (Vec::new(), problem.errors().to_vec())
        }
        Err(problem) => return Err(problem),
    };
    let status = if errors.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::BAD_REQUEST
    };
    let page = Page(Waiting {
        frame,
        params,
        sections,
        pause,
        holds,
        errors,
    });
    Ok((status, page).into_response())
}

async fn sections(
    app: &Arc<App>,
    viewer: Viewer,
    frame: &Frame,
    params: &WaitingParams,
) -> Result<Vec<Section>, Problem> {
    if let Some(lane) = params.lane.as_deref()
        && !["push", "reseller"].contains(&lane)
    {
        return Err(Problem::query("lane", "must be push or reseller"));
    }
    let until = Instant::now() + LOOKING;
    if let Some(status) = params.one_status() {
        return Ok(vec![
            section(app, viewer, frame, params, (status, SHOWN, until)).await?,
        ]);
    }
    let mut sections = Vec::new();
    for status in ["RETRY", "PENDING", "SCHEDULED", "IN_MEMORY"] {
        let section = section(app, viewer, frame, params, (status, FIRST, until)).await?;
        if !section.rows.is_empty() || section.next.is_some() {
            sections.push(section);
        }
    }
    Ok(sections)
}

/// Those of one status: parts of the list until there are enough, or looking has taken long enough.
async fn section(
    app: &Arc<App>,
    viewer: Viewer,
    frame: &Frame,
    params: &WaitingParams,
    (status, wanted, until): (&str, usize, Instant),
) -> Result<Section, Problem> {
    let mut section = Section {
        status: status.to_owned(),
        rows: Vec::new(),
        next: params.cursor.clone(),
        examined: 0,
        back_to: None,
    };
    loop {
        let cursor = section.next.take();
        let limit = u32::try_from(wanted - section.rows.len()).ok();
        let (rows, examined, next) = if params.is_push() {
            let part = of_pushes(app, viewer, frame, params, (status, limit, cursor)).await?;
            rows(part, |push| row_of_push(push, frame))
        } else {
            let part = of_notifications(app, viewer, frame, params, (status, limit, cursor)).await?;
            let wanted = |row: &Row| params.reason.is_none() || row.reason == params.reason;
            let (mut rows, examined, next) = rows(part, |it| row_of_notification(it, frame));
            rows.retain(wanted);
            (rows, examined, next)
        };
        section.rows.extend(rows);
        section.examined += examined;
        section.next = next;
        section.back_to = section.next.as_deref().and_then(time_of);
        if section.next.is_none() || section.rows.len() >= wanted || Instant::now() >= until {
            return Ok(section);
        }
    }
}

fn rows<T>(part: Part<T>, row: impl Fn(T) -> Row) -> (Vec<Row>, u64, Option<String>) {
    (
        part.items.into_iter().map(row).collect(),
        part.examined,
        part.next,
    )
}

/// The time that a cursor stands at.
fn time_of(cursor: &str) -> Option<DateTime<Utc>> {
    let at = http_api::paging::read_at(Some(cursor)).ok()??;
    Some(at.0)
}

async fn of_pushes(
    app: &Arc<App>,
    viewer: Viewer,
    frame: &Frame,
    params: &WaitingParams,
    (status, limit, cursor): (&str, Option<u32>, Option<String>),
) -> Result<Part<PushDocument>, Problem> {
    let zone = frame.preferences.zone;
    let params = PushParams {
        device: params.device.clone(),
        prototype: params.prototype.clone(),
        platform: params.platform.clone(),
        status: one(status),
        reason: params.reason.clone(),
        since: moment("since", params.since.as_deref(), zone)?,
        until: moment("until", params.until.as_deref(), zone)?,
        limit,
        cursor,
    };
    Ok(pushes::list(State(Arc::clone(app)), viewer, Params(params))
        .await?
        .0)
}

async fn of_notifications(
    app: &Arc<App>,
    viewer: Viewer,
    frame: &Frame,
    params: &WaitingParams,
    (status, limit, cursor): (&str, Option<u32>, Option<String>),
) -> Result<Part<NotificationDocument>, Problem> {
    let zone = frame.preferences.zone;
    let subscription = params.subscription.as_deref().map(str::parse).transpose();
    let params = NotificationParams {
        reseller: params.reseller.clone(),
        subscription: subscription
            .map_err(|_| Problem::query("subscription", "must be the identifier of a subscription"))?,
        event_id: params.event_id.clone(),
        status: one(status),
        event_type: params.event_type.clone(),
        value: params.value.clone(),
        since: moment("since", params.since.as_deref(), zone)?,
        until: moment("until", params.until.as_deref(), zone)?,
        limit,
        cursor,
    };
    Ok(
        notifications::list(State(Arc::clone(app)), viewer, Params(params))
            .await?
            .0,
    )
}

fn one(status: &str) -> Option<String> {
    (status != ANY).then(|| status.to_owned())
}

/// A time of the address: as the API has it, or as a field for times sends it, in the viewer's zone.
fn moment(name: &'static str, given: Option<&str>, zone: Tz) -> Result<Option<DateTime<Utc>>, Problem> {
    let Some(text) = given else { return Ok(None) };
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(Some(at.to_utc()));
    }
    let formats = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
    let read = formats
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let local = read.map_or(LocalResult::None, |at| zone.from_local_datetime(&at));
    // Of an hour that is there twice the first one is meant, so that nothing is left out.
    let at = local.earliest().map(|at| at.to_utc());
    let wrong = || {
        Problem::query(
            name,
            "must be a time such as 2026-11-23T14:05, or 2026-11-23T12:05:00Z",
        )
    };
    at.map(Some).ok_or_else(wrong)
}

fn row_of_push(push: PushDocument, frame: &Frame) -> Row {
    let (why, at) = why_push(&push, frame.now);
    let subject = format!(
        "One push: {}, {}, of the prototype {}.",
        push.id,
        push.status,
        push.prototype.as_deref().unwrap_or("none")
    );
    Row {
        form: waits(push.status, push.claimed)
            .then(|| cancel_form(("push", push.id), subject, frame.address.clone(), true, frame)),
        id: push.id,
        status: push.status,
        reason: push.reason.map(str::to_owned),
        why,
        at,
        accepted_at: push.created_at,
        attempts: push.attempts,
        about: About::Push {
            prototype: push.prototype,
            platform: push.platform,
        },
    }
}

fn why_push(push: &PushDocument, now: DateTime<Utc>) -> (String, Option<DateTime<Utc>>) {
    let failure = push.last_failure.as_ref().map(|failure| {
        let code = failure.code.map_or(String::new(), |code| format!(" {code}"));
        let error = failure
            .error
            .as_deref()
            .map_or(String::new(), |error| format!(" ({error})"));
        format!(
            "attempt {} failed: {}{code}{error}",
            push.attempts, failure.error_type
        )
    });
    let due = push.next_attempt_at;
    match push.status {
        "SCHEDULED" if due.is_some_and(|at| at > now) => {
            let cron = push.cron_expression.as_deref().unwrap_or_default();
            (format!("Waits for its sending window, {cron}; it opens"), due)
        }
        "SCHEDULED" => (
            "Its sending window is open; it waits for room in the queue, due".to_owned(),
            due,
        ),
        "PENDING" => (said("Waits for room in the queue", failure), None),
        "IN_MEMORY" if push.claimed => (format!("Is being sent: attempt {}.", push.attempts), None),
        "IN_MEMORY" => (said("Is in the queue", failure), None),
        "RETRY" => (said("Waits to be tried again", failure), due),
        "SENT" => ("Swrve accepted it".to_owned(), push.finished_at),
        "GIVEN_UP" if push.reason == Some("CANCELLED") => {
            ("An operator cancelled it".to_owned(), push.finished_at)
        }
        _ => (said("Will not be sent", failure), push.finished_at),
    }
}

fn said(what: &str, failure: Option<String>) -> String {
    failure.map_or(what.to_owned(), |failure| format!("{what}; {failure}"))
}

fn row_of_notification(it: NotificationDocument, frame: &Frame) -> Row {
    let (why, at) = why_notification(&it);
    let subject = format!(
        "One notification: {}, {}, of {} ({}) for {}.",
        it.id,
        it.status,
        it.event_id.as_deref().unwrap_or("an event that is forgotten"),
        it.event_type,
        it.reseller_id
    );
    Row {
        form: waits(it.status, false).then(|| {
            cancel_form(
                ("notification", it.id),
                subject,
                frame.address.clone(),
                true,
                frame,
            )
        }),
        id: it.id,
        status: it.status,
        reason: it.reason,
        why,
        at,
        accepted_at: it.accepted_at,
        attempts: it.attempts,
        about: About::Notification {
            event: it.event,
            event_id: it.event_id,
            event_type: it.event_type,
            reseller: it.reseller_id,
            subscription: it.subscription_id,
            endpoint: it.url,
        },
    }
}

fn why_notification(it: &NotificationDocument) -> (String, Option<DateTime<Utc>>) {
    let failure = match (it.response_status, &it.error) {
        (Some(code), _) if it.attempts > 0 => {
            Some(format!("attempt {}: the endpoint answered {code}", it.attempts))
        }
        (None, Some(error)) => Some(format!("attempt {} failed: {error}", it.attempts)),
        _ => None,
    };
    if it.paused && it.status != "IN_MEMORY" {
        return (said("Waits because its subscription is paused", failure), None);
    }
    let due = it.next_attempt_at;
    let reason = it.reason.as_ref().and_then(|reason| reason.parse().ok());
    match (it.status, reason) {
        ("SCHEDULED", Some(NotificationReason::Quota)) => (
            "Waits in line: its subscription's daily quota is used up. In line since".to_owned(),
            due,
        ),
        ("SCHEDULED", Some(NotificationReason::Rate)) => (
            "Waits in line for its subscription's requests per second, since".to_owned(),
            due,
        ),
        ("SCHEDULED", Some(NotificationReason::Postponed)) => (
            "Was put off for want of something of our own, since".to_owned(),
            due,
        ),
        ("SCHEDULED", _) => ("Waits in line, since".to_owned(), due),
        ("PENDING" | "RETRY", Some(NotificationReason::Withheld)) => (
            "Is held back: most endpoints fail in one way at once, its own among them".to_owned(),
            due,
        ),
        ("PENDING", Some(NotificationReason::Busy)) => (
            "Waits because as many of its subscription are being sent as may be at once".to_owned(),
            None,
        ),
        ("PENDING" | "RETRY", Some(NotificationReason::Unverified)) => {
            ("Is held back: its endpoint is not verified".to_owned(), None)
        }
        ("PENDING", _) => (said("Waits for room in the queue", failure), None),
        ("IN_MEMORY", _) => (said("Is in the queue or being sent", failure), None),
        ("RETRY", _) => (said("Waits to be tried again", failure), due),
        ("SENT", _) => (said("The endpoint accepted it", failure), it.finished_at),
        ("GIVEN_UP", Some(NotificationReason::Cancelled)) => {
            ("An operator cancelled it".to_owned(), it.finished_at)
        }
        ("GIVEN_UP", Some(NotificationReason::Expired)) => {
            ("It had waited for too long".to_owned(), it.finished_at)
        }
        ("GIVEN_UP", Some(NotificationReason::SubscriptionDeleted)) => {
            ("Its subscription was deleted".to_owned(), it.finished_at)
        }
        ("GIVEN_UP", Some(NotificationReason::SubscriptionDeactivated)) => {
            ("Its subscription was deactivated".to_owned(), it.finished_at)
        }
        _ => (said("Will not be sent again", failure), it.finished_at),
    }
}

/// Whether something of this status can still be cancelled, as far as is known.
fn waits(status: &str, claimed: bool) -> bool {
    let ended = status.parse().is_ok_and(NotificationStatus::is_terminal);
    !ended && !claimed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_in_the_zone_of_the_viewer() {
        let riga = chrono_tz::Europe::Riga;
        let read = |text| {
            moment("since", Some(text), riga)
                .ok()
                .flatten()
                .map(|at| at.to_rfc3339())
        };
        let noon = Some("2026-11-23T12:05:00+00:00".to_owned());
        for text in [
            "2026-11-23T14:05",
            "2026-11-23T14:05:00",
            "2026-11-23T12:05:00Z",
            "2026-11-23T13:05:00+01:00",
        ] {
            assert_eq!(read(text), noon, "{text}");
        }
        // The clocks go back: this hour is there twice.
        assert_eq!(
            read("2026-10-25T03:30"),
            Some("2026-10-25T00:30:00+00:00".to_owned())
        );
        for text in ["yesterday", "2026-11-23", "2026-03-29T03:30"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
