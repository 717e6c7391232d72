//! `/console/waiting`: what waits longest and why, and cancelling one of it. With the filters every push and notification is found.

mod cancel;
mod cancel_many;
mod export;
mod going_on;
mod rows;
mod sums;

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use chrono::{DateTime, Utc};
use domain::notification::ERROR_TYPES;
use domain::reason::{ENDED_FOR, NotificationReason};
use http_api::{Params, Problem, ReadParams, words};
use serde::Deserialize;
use store::PauseView;
use store::push::{HoldView, SWRVE};
use tokio::time::Instant;

use super::act::ActForm;
use super::frame::{Frame, Page, SHOWN, see_other, segment};
use super::times;
use crate::app::App;
use crate::examined::Part;
use crate::notifications::{self, NotificationDocument, NotificationParams};
use crate::pauses;
use crate::pushes::{self, PushDocument, PushParams};
use crate::request::Viewer;
use crate::status;

pub(super) use cancel::{cancel_form, place_of, subject_of};
use rows::{About, Row, row_of_notification, row_of_push};

/// How long a list goes on looking when what it has looked at holds too little of what is wanted.
const LOOKING: Duration = Duration::from_millis(300);
/// How many of each status are shown while no status is chosen.
const FIRST: usize = 10;
/// The statuses that wait, in the order in which they are shown.
const WAITING: [&str; 4] = ["RETRY", "PENDING", "SCHEDULED", "IN_MEMORY"];
/// The same as one list, which begins with the oldest.
const ALL_THAT_WAITS: &str = "SCHEDULED,PENDING,IN_MEMORY,RETRY";
/// Status that leaves out none.
const ANY: &str = "ANY";
/// The statuses of what has ended without being sent.
const UNDELIVERED: &str = "FAILED,GIVEN_UP";

/// The fields of the form of filters.
const FIELDS: [&str; 18] = [
    "status",
    "reason",
    "device",
    "prototype",
    "platform",
    "reseller",
    "subscription",
    "url",
    "eventId",
    "eventType",
    "value",
    "code",
    "error",
    "since",
    "until",
    "endedSince",
    "endedUntil",
    "lateBySeconds",
];

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/console/waiting", get(page))
        .route("/console/waiting/export", get(export::export))
        .merge(cancel::routes())
        .merge(cancel_many::routes())
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
    url: Option<String>,
    event_id: Option<String>,
    event_type: Option<String>,
    value: Option<String>,
    code: Option<String>,
    error: Option<String>,
    since: Option<String>,
    until: Option<String>,
    ended_since: Option<String>,
    ended_until: Option<String>,
    late_by_seconds: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
    #[expect(
        dead_code,
        reason = "what the frame says of it is looked at where files are written"
    )]
    format: Option<String>,
}

impl WaitingParams {
    fn is_push(&self) -> bool {
        self.lane.as_deref() != Some("reseller")
    }

    /// The status that is shown, or several with commas between them; `None` shows the first of each that waits. Of a device or an event
    /// everything is shown, and so is what ended in a time or late.
    fn one_status(&self) -> Option<&str> {
        let of_all = [
            &self.device,
            &self.event_id,
            &self.ended_since,
            &self.ended_until,
            &self.late_by_seconds,
        ];
        let is_of_all = of_all.iter().any(|word| word.is_some());
        self.status.as_deref().or(is_of_all.then_some(ANY))
    }

    fn filters(&self) -> bool {
        let texts = [
            &self.reason,
            &self.device,
            &self.prototype,
            &self.platform,
            &self.reseller,
            &self.subscription,
            &self.url,
            &self.event_id,
            &self.event_type,
            &self.value,
            &self.code,
            &self.error,
            &self.since,
            &self.until,
            &self.ended_since,
            &self.ended_until,
            &self.late_by_seconds,
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
    /// What all of the lane waits for, while nothing is filtered.
    sums: Option<String>,
}

/// Those of one status, or of several that are shown together.
struct Section {
    status: String,
    /// How many are shown, if there are so many.
    wanted: usize,
    rows: Vec<Row>,
    next: Option<String>,
    examined: u64,
    /// When the last one that was looked at was accepted.
    back_to: Option<DateTime<Utc>>,
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
        let at = DateTime::parse_from_rfc3339(text);
        at.map_or(text.clone(), |at| self.frame.local(at.to_utc()))
    }

    fn chosen(&self, chosen: &Option<String>, one: &str) -> bool {
        chosen.as_deref() == Some(one)
    }

    /// Statuses that wait, then those that have ended.
    fn statuses(&self) -> [(&'static str, &'static str); 11] {
        [
            ("", "What waits, the first of each"),
            (ALL_THAT_WAITS, "What waits, the oldest first"),
            ("SCHEDULED", "Scheduled"),
            ("PENDING", "Pending"),
            ("IN_MEMORY", "In the queue or being sent"),
            ("RETRY", "To be retried"),
            (ANY, "Any status"),
            ("SENT", "Sent"),
            ("FAILED", "Failed"),
            ("GIVEN_UP", "Given up"),
            (UNDELIVERED, "Failed or given up"),
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

    /// How the last attempt can have failed.
    fn error_types(&self) -> [&'static str; 8] {
        ERROR_TYPES
    }

    /// How it is, in a sentence.
    fn sentence(&self) -> String {
        let many = if self.is_push() { "pushes" } else { "notifications" };
        if !self.frame.is_readable() {
            return "The filter cannot be read, so nothing is shown.".to_owned();
        }
        if let Some(status) = self.params.one_status() {
            return match self.params.device {
                None if status == ALL_THAT_WAITS => format!("The {many} that wait, the oldest first."),
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
        self.frame.is_readable()
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

impl Waiting {
    /// Where the list is as a file.
    fn file(&self, format: &str) -> String {
        super::export::link(&self.frame, "/console/waiting/export", format)
    }

    /// Where all that wait and match are cancelled; none where the filter says what that does not know, or nothing.
    fn cancel_many(&self) -> Option<String> {
        cancel_many::place(&self.params)
    }
}

impl Section {
    /// Its statuses one by one.
    fn statuses(&self) -> impl Iterator<Item = &str> {
        words::listed(Some(&self.status))
    }

    /// Whether what it lists may have ended.
    fn has_ended(&self) -> bool {
        !self.statuses().all(|status| WAITING.contains(&status))
    }

    /// Whether fewer were found than are shown although the list goes on.
    fn is_short(&self) -> bool {
        self.next.is_some() && self.rows.len() < self.wanted
    }
}

async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    mut frame: Frame,
    Params(params): Params<WaitingParams>,
) -> Result<Response, Problem> {
    if let Some(address) = times::with_zones(&frame) {
        return Ok(see_other(&address));
    }
    let pauses = pauses::in_force(&app, viewer).await?;
    let lane = if params.is_push() { "push" } else { "reseller" };
    let pause = pauses
        .into_iter()
        .find(|pause| pause.scope == "lane" && pause.key == lane);
    let mut holds = http_api::by(viewer.deadline, ("the holds", "read"), app.store.list_holds()).await?;
    holds.retain(|hold| (hold.class == SWRVE) == params.is_push() && hold.answered_at.is_none());
    let is_whole = !params.filters() && params.one_status().is_none();
    let summed = async {
        if !is_whole {
            return None;
        }
        let reading = crate::waiting::read(&app, viewer);
        let waiting = app.status.waiting(reading).await.ok()?;
        let status = status::status(State(Arc::clone(&app)), viewer).await.0;
        sums::said(&waiting, &status, lane)
    };
    let (sections, sums) = tokio::join!(sections(&app, viewer, &frame, &params), summed);
    let sections = times::check(&frame).and(sections);
    let sections = frame.filtered(sections, &FIELDS)?.unwrap_or_default();
    let status = frame.list_status();
    let page = Page(Waiting {
        sums: sums.filter(|_| frame.is_readable()),
        frame,
        params,
        sections,
        pause,
        holds,
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
            section(
                app,
                viewer,
                frame,
                params,
                (status, params.limit.unwrap_or(SHOWN), until),
            )
            .await?,
        ]);
    }
    let mut sections = Vec::new();
    for status in WAITING {
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
        wanted,
        rows: Vec::new(),
        next: params.cursor.clone(),
        examined: 0,
        back_to: None,
    };
    loop {
        let cursor = section.next.take();
        let limit = u32::try_from(wanted - section.rows.len()).ok();
        let (rows, examined, next) = if params.is_push() {
            let part = of_pushes(app, viewer, params, (status, limit, cursor)).await?;
            rows(part, |push| row_of_push(push, frame))
        } else {
            let part = of_notifications(app, viewer, params, (status, limit, cursor)).await?;
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
    params: &WaitingParams,
    (status, limit, cursor): (&str, Option<u32>, Option<String>),
) -> Result<Part<PushDocument>, Problem> {
    let params = PushParams {
        device: params.device.clone(),
        prototype: params.prototype.clone(),
        platform: params.platform.clone(),
        status: one(status),
        reason: params.reason.clone(),
        since: moment("since", params.since.as_deref())?,
        until: moment("until", params.until.as_deref())?,
        // The form has these for notifications alone.
        ended_since: None,
        ended_until: None,
        late_by_seconds: seconds(params.late_by_seconds.as_deref())?,
        limit,
        cursor,
    };
    Ok(
        pushes::list(State(Arc::clone(app)), viewer, ReadParams::of(params))
            .await?
            .0,
    )
}

async fn of_notifications(
    app: &Arc<App>,
    viewer: Viewer,
    params: &WaitingParams,
    (status, limit, cursor): (&str, Option<u32>, Option<String>),
) -> Result<Part<NotificationDocument>, Problem> {
    let subscription = params.subscription.as_deref().map(str::parse).transpose();
    let params = NotificationParams {
        reseller: params.reseller.clone(),
        subscription: subscription
            .map_err(|_| Problem::query("subscription", "must be the identifier of a subscription"))?,
        url: params.url.clone(),
        event_id: params.event_id.clone(),
        status: one(status),
        // Other reasons are told by more than what is stored: they are looked for among what is told.
        reason: params
            .reason
            .clone()
            .filter(|it| ENDED_FOR.contains(&it.as_str())),
        event_type: params.event_type.clone(),
        value: params.value.clone(),
        code: params.code.clone(),
        error: params.error.clone(),
        since: moment("since", params.since.as_deref())?,
        until: moment("until", params.until.as_deref())?,
        ended_since: moment("endedSince", params.ended_since.as_deref())?,
        ended_until: moment("endedUntil", params.ended_until.as_deref())?,
        late_by_seconds: seconds(params.late_by_seconds.as_deref())?,
        limit,
        cursor,
    };
    Ok(
        notifications::list(State(Arc::clone(app)), viewer, ReadParams::of(params))
            .await?
            .0,
    )
}

fn one(status: &str) -> Option<String> {
    (status != ANY).then(|| status.to_owned())
}

fn seconds(given: Option<&str>) -> Result<Option<u32>, Problem> {
    let wrong = |_| Problem::query("lateBySeconds", "must be a number of seconds, such as 600");
    given.map(str::parse).transpose().map_err(wrong)
}

/// A time of the address, which stands there as it is everywhere: see [`times::with_zones`].
fn moment(name: &'static str, given: Option<&str>) -> Result<Option<DateTime<Utc>>, Problem> {
    let wrong = |_| Problem::query(name, times::NEEDED);
    let read = given.map(DateTime::parse_from_rfc3339).transpose();
    Ok(read.map_err(wrong)?.map(|at| at.to_utc()))
}
