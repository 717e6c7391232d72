//! `/console/lanes`: how each lane goes, and pausing and resuming it.

mod earlier;
mod pace;

use std::sync::Arc;

use askama::Template;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use explain::words;
use http_api::{Name, Params, Problem};
use store::push::{HoldView, SWRVE};

use self::earlier::{Earlier, earlier};
use self::pace::Pace;
use super::act::{ActForm, note, typed};
use super::frame::{Frame, Page, done_if, see_other};
use super::pauses::{asked_end, paused, pausing};
use super::retries::lane_form;
use super::visit::Fields;
use crate::app::App;
use crate::history::{self, HistoryParams, MinuteDocument};
use crate::pauses::{self, PauseChangeDocument, pause_lane, resume_lane};
use crate::request::{Operator, Viewer};
use crate::status::{
    self, Finding, LaneDocument, LeaderDocument, PauseDocument, QueueDocument, Severity, StatusDocument,
};

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/console/lanes", get(page))
        .route("/console/lanes/{lane}", get(place))
        .route("/console/lanes/{lane}/pause", get(ask_to_pause).post(pause))
        .route("/console/lanes/{lane}/resume", get(ask_to_resume).post(resume))
}

#[derive(Template)]
#[template(path = "lanes.html")]
struct Lanes {
    frame: Frame,
    /// None while the database is away.
    lanes: Option<Vec<Lane>>,
    findings: Vec<Finding>,
    broker: &'static str,
}

/// A lane with all that is known of it.
struct Lane {
    document: LaneDocument,
    pause: Option<PauseDocument>,
    /// Holds because what it goes to is out of order; none when they could not be read.
    holds: Option<Vec<HoldView>>,
    leader: Option<LeaderDocument>,
    queues: Vec<QueueDocument>,
    /// The minutes that were asked for, the last hour by default; none when they could not be read.
    minutes: Vec<MinuteDocument>,
    /// What had stopped it in these minutes and is over.
    earlier: Vec<Earlier>,
    /// The pace of the push lane; none when it could not be read.
    pace: Option<Pace>,
    /// To pause it, or to resume it.
    form: ActForm,
    /// To retry now what waits for a retry, if anything does.
    retry: Option<ActForm>,
}

/// What is said of both lanes beside their numbers.
pub(super) const OF_LANES: [&str; 13] = [
    "swrve-held",
    "swrve-catching-up",
    "swrve-fails",
    "deliveries-held",
    "queue-not-consumed",
    "queue-full",
    "reseller-lane-off",
    "pushes-overdue",
    "notifications-overdue",
    "quotas-used-up",
    "lane-stalled",
    "not-rescued",
    "no-leader",
];

impl Lanes {
    fn tone(&self, severity: &Severity) -> &'static str {
        super::now::tone(*severity)
    }

    /// How the lanes are, in a sentence.
    fn sentence(&self) -> String {
        let Some(lanes) = &self.lanes else {
            return "What the lanes do could not be found out: the database is away.".to_owned();
        };
        let stopped = lanes.iter().filter_map(Lane::stopped);
        let stopped: Vec<_> = stopped.collect();
        if stopped.is_empty() {
            "Both lanes are open: what is due is sent.".to_owned()
        } else {
            stopped.join(" ")
        }
    }
}

/// A bar of a minute, in a picture of 4 for each minute by 48.
struct Bar {
    x: usize,
    delivered: (u64, u64),
    failed: (u64, u64),
}

impl Lane {
    /// What became of notifications or pushes in each minute, as bars that stand on each other.
    fn bars(&self) -> Vec<Bar> {
        let most = self
            .minutes
            .iter()
            .map(|it| it.delivered + it.failed)
            .max()
            .unwrap_or(0)
            .max(1);
        let height = |count: u64| (count * 48).div_ceil(most).min(48);
        let bar = |(at, minute): (usize, &MinuteDocument)| {
            let (all, delivered) = (height(minute.delivered + minute.failed), height(minute.delivered));
            Bar {
                x: at * 4,
                delivered: (48 - delivered, delivered),
                failed: (48 - all, all - delivered),
            }
        };
        self.minutes.iter().enumerate().map(bar).collect()
    }

    fn sum(&self, count: fn(&MinuteDocument) -> u64) -> u64 {
        self.minutes.iter().map(count).sum()
    }

    /// What the last hour was, or as many minutes as were asked for, in a sentence.
    fn hour(&self) -> String {
        let sums = [
            ("accepted", self.sum(|it| it.accepted)),
            ("delivered", self.sum(|it| it.delivered)),
            ("failed", self.sum(|it| it.failed)),
            ("to be retried", self.sum(|it| it.retried)),
        ];
        let sums = sums.map(|(what, count)| format!("{} {what}", words::number(count)));
        let time = match self.minutes.len() {
            60 => "hour".to_owned(),
            minutes => words::of(minutes as u64, "minute", "minutes"),
        };
        format!("The last {time}: {}.", sums.join(", "))
    }

    /// How full the slots were at most, and how many notifications found none, in a sentence; none of a lane without slots.
    fn slots(&self) -> Option<String> {
        let with_slots = self.minutes.iter().filter(|it| it.slots > 0);
        let fullest = with_slots.max_by(|one, other| {
            let (one, other) = (
                (one.in_flight * other.slots, one.minute),
                (other.in_flight * one.slots, other.minute),
            );
            one.cmp(&other)
        })?;
        let put_back = self.sum(|it| it.put_back);
        let rest = match put_back {
            0 => "none was put back".to_owned(),
            put_back => format!(
                "{} put back, because their subscription had its share",
                words::number_of(put_back, "notification was", "notifications were")
            ),
        };
        Some(format!(
            "At most {} of {} slots were taken at once; {rest}.",
            words::number(fullest.in_flight),
            words::number(fullest.slots)
        ))
    }

    /// The epochs of the last hour, the present one last.
    fn epochs(&self) -> Vec<String> {
        let mut epochs: Vec<i64> = self
            .minutes
            .iter()
            .flat_map(|it| it.epochs.iter().copied())
            .collect();
        epochs.sort_unstable();
        epochs.dedup();
        epochs.iter().map(i64::to_string).collect()
    }

    fn is_push(&self) -> bool {
        self.document.lane == "push"
    }

    fn title(&self) -> &'static str {
        title(self.document.lane)
    }

    /// What keeps it from sending all that is due.
    fn stopped(&self) -> Option<String> {
        if self.pause.is_some() {
            return Some(format!("The {} is paused.", self.title().to_lowercase()));
        }
        let mut holds = self
            .holds
            .iter()
            .flatten()
            .filter(|hold| hold.answered_at.is_none());
        let hold = holds.next()?;
        Some(if hold.class == SWRVE {
            "The push lane is held because Swrve is out of order.".to_owned()
        } else {
            format!("Deliveries that fail in the class {} are held.", hold.class)
        })
    }

    fn state(&self) -> &'static str {
        match (&self.pause, self.stopped()) {
            (Some(_), _) => "PAUSED",
            (None, Some(_)) => "HELD",
            (None, None) => "ACTIVE",
        }
    }

    /// What is due and not being sent, counted up to a bound.
    fn gathered(&self) -> u64 {
        gathered(&self.document)
    }

    /// Statuses that wait: what they are called, how many, how long the first waits, and the list of them.
    fn waiting(&self) -> [Waiting; 6] {
        let lane = &self.document;
        let list = |status: &str| Some(format!("/console/waiting?lane={}&status={status}", lane.lane));
        let row = |status, meaning, count, oldest, list| Waiting {
            status,
            meaning,
            count,
            oldest,
            list,
        };
        [
            row(
                "SCHEDULED",
                "waits for its time",
                lane.scheduled,
                None,
                list("SCHEDULED"),
            ),
            row(
                "PENDING",
                "waits for room in the queue",
                lane.pending,
                lane.oldest_pending_seconds,
                list("PENDING"),
            ),
            row("QUEUED", "is in the queue", lane.queued, None, list("IN_MEMORY")),
            row(
                "SENDING",
                "is being sent",
                lane.in_flight,
                None,
                list("IN_MEMORY"),
            ),
            row(
                "RETRY",
                "waits to be tried again",
                lane.retry,
                None,
                list("RETRY"),
            ),
            row(
                "LOST",
                "its lease ran out; it is rescued within seconds",
                lane.lost,
                lane.oldest_lost_seconds,
                None,
            ),
        ]
    }
}

struct Waiting {
    status: &'static str,
    meaning: &'static str,
    count: u64,
    oldest: Option<u64>,
    list: Option<String>,
}

pub(super) fn title(lane: &str) -> &'static str {
    if lane == "push" {
        "Push lane"
    } else {
        "Reseller lane"
    }
}

pub(super) fn noun(lane: &str) -> (&'static str, &'static str) {
    if lane == "push" {
        ("push", "pushes")
    } else {
        ("notification", "notifications")
    }
}

fn gathered(lane: &LaneDocument) -> u64 {
    lane.pending + lane.queued + lane.retry
}

async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Params(asked): Params<HistoryParams>,
) -> Result<impl IntoResponse, Problem> {
    // What else goes wrong with the history leaves the rest of the page as it is.
    let minutes = Some(asked.checked()?);
    let minutes = |lane: &str| {
        let params = Params(HistoryParams { minutes });
        history::history(State(Arc::clone(&app)), viewer, Name(lane.to_owned()), params)
    };
    let (status, push, reseller, pace, holds) = tokio::join!(
        status::status(State(Arc::clone(&app)), viewer),
        minutes("push"),
        minutes("reseller"),
        history::pace(State(Arc::clone(&app)), viewer),
        http_api::by(viewer.deadline, ("the holds", "read"), app.store.list_holds())
    );
    let (mut status, holds) = (status.0, holds.ok());
    let mut findings = std::mem::take(&mut status.findings);
    findings.retain(|finding| OF_LANES.contains(&finding.id));
    let broker = status.broker.state;
    let histories = [push, reseller].map(|history| match history {
        Ok(Json(history)) => (history.items, earlier(history.holds, history.pauses)),
        Err(_) => (Vec::new(), Vec::new()),
    });
    let mut pace = pace.ok().map(|pace| Pace(pace.0));
    let lanes = status.lanes.take().map(|lanes| {
        // The operation has the push lane first as well.
        let lanes = lanes.into_iter().zip(histories);
        let lane = |(lane, (minutes, earlier))| {
            let lane = of(lane, minutes, &mut status, holds.as_deref(), &frame);
            let pace = pace.take_if(|_| lane.is_push());
            Lane {
                pace,
                earlier,
                ..lane
            }
        };
        lanes.map(lane).collect()
    });
    Ok(Page(Lanes {
        lanes,
        findings,
        broker,
        frame,
    }))
}

fn of(
    document: LaneDocument,
    minutes: Vec<MinuteDocument>,
    status: &mut StatusDocument,
    holds: Option<&[HoldView]>,
    frame: &Frame,
) -> Lane {
    let is_push = document.lane == "push";
    let pauses = status.pauses.iter_mut().flatten();
    let mut own = pauses.filter(|pause| pause.scope == "lane" && pause.key == document.lane);
    let pause = own.next().map(|pause| PauseDocument {
        note: std::mem::take(&mut pause.note),
        paused_by: std::mem::take(&mut pause.paused_by),
        scope: pause.scope.clone(),
        key: pause.key.clone(),
        ..*pause
    });
    let of_it = |queue: &QueueDocument| queue.name.split('.').next() == Some(document.lane);
    let queues = std::mem::take(&mut status.broker.queues);
    let (queues, others) = queues.into_iter().partition(of_it);
    status.broker.queues = others;
    let holds = holds.map(|holds| {
        let of_it = holds.iter().filter(|hold| (hold.class == SWRVE) == is_push);
        of_it.cloned().collect()
    });
    let form = form(document.lane, pause.is_some(), Some(&document), frame);
    let retry = (document.retry > 0).then(|| lane_form(document.lane, Some(&document), frame).in_dialog());
    Lane {
        retry,
        leader: if is_push { status.leader.take() } else { None },
        form: form.in_dialog(),
        document,
        pause,
        holds,
        queues,
        minutes,
        earlier: Vec::new(),
        pace: None,
    }
}

/// The form to pause a lane, or to resume it; numbers are missing while they cannot be found out.
fn form(lane: &'static str, is_paused: bool, document: Option<&LaneDocument>, frame: &Frame) -> ActForm {
    let ((one, many), name) = (noun(lane), title(lane).to_lowercase());
    let waits = document.map_or(format!("How many {many} wait could not be found out."), |lane| {
        let waits = words::of(gathered(lane), &format!("{one} waits"), &format!("{many} wait"));
        format!(
            "{waits} now, and {} sent.",
            words::of(lane.in_flight, "is being", "are being")
        )
    });
    let takes = document
        .and_then(|lane| lane.backlog_seconds)
        .map(|seconds| format!(" At the present rate that takes {}.", frame.length(seconds)));
    let effect = match (is_paused, lane) {
        (false, _) => {
            "Nothing more is sent once it is paused; what is being sent ends. What comes in is accepted and waits. Resuming \
             it undoes this: nothing is lost, but it will be late."
                .to_owned()
        }
        (true, "push") => format!(
            "What has gathered is sent, the oldest first, 250 in a second at most.{} Pushes whose sending window has passed wait for \
             the next one. What is sent cannot be undone; the lane can be paused again.",
            takes.unwrap_or_default()
        ),
        (true, _) => format!(
            "What has gathered is sent, each subscription in its turn and at its own rate.{} What is sent cannot be undone; the lane \
             can be paused again.",
            takes.unwrap_or_default()
        ),
    };
    let verb = if is_paused { "resume" } else { "pause" };
    ActForm {
        id: format!("{verb}-{lane}"),
        title: format!("{} the {name}", if is_paused { "Resume" } else { "Pause" }),
        said: vec![waits, effect],
        button: if is_paused { "Resume" } else { "Pause" },
        is_dangerous: !is_paused,
        expected: Some(lane.to_owned()),
        fields: if is_paused { Vec::new() } else { vec![asked_end()] },
        ..ActForm::new(
            frame,
            format!("/console/lanes/{lane}/{verb}"),
            "/console/lanes".to_owned(),
        )
    }
}

/// The address of one lane leads to its place on the page of both.
async fn place(Name(lane): Name, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let lane = known(&lane)?;
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    Ok(see_other(&format!("/console/lanes{query}#{lane}")))
}

pub(super) fn known(lane: &str) -> Result<&'static str, Problem> {
    Ok(pauses::known(lane)?.as_str())
}

async fn ask_to_pause(
    app: State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Name(lane): Name,
) -> Result<Response, Problem> {
    let form = asked(app, viewer, known(&lane)?, false, &frame).await;
    Ok(form.page(frame))
}

async fn ask_to_resume(
    app: State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Name(lane): Name,
) -> Result<Response, Problem> {
    let form = asked(app, viewer, known(&lane)?, true, &frame).await;
    Ok(form.page(frame))
}

async fn asked(
    app: State<Arc<App>>,
    viewer: Viewer,
    lane: &'static str,
    is_paused: bool,
    frame: &Frame,
) -> ActForm {
    let status = status::status(app, viewer).await.0;
    let document = status
        .lanes
        .iter()
        .flatten()
        .find(|document| document.lane == lane);
    form(lane, is_paused, document, frame)
}

async fn pause(
    operator: Operator,
    frame: Frame,
    Name(lane): Name,
    fields: Fields,
) -> Result<Response, Problem> {
    let lane = known(&lane)?;
    let (app, viewer) = (State(Arc::clone(&operator.app)), operator.viewer());
    let answer = match checked(&fields, lane, true) {
        Ok(()) => {
            let until = pausing(&fields, operator.app.now())?;
            pause_lane(operator, Name(lane.to_owned()), until).await
        }
        Err(problem) => Err(problem),
    };
    let what = format!("The {}", title(lane).to_lowercase());
    match answer {
        Ok(Json(change)) => Ok(done_if(change.changed, "/console/lanes", &paused(&what, &change))),
        Err(problem) => {
            let again = asked(app, viewer, lane, false, &frame).await;
            again.again(frame, &fields, problem)
        }
    }
}

async fn resume(
    operator: Operator,
    frame: Frame,
    Name(lane): Name,
    fields: Fields,
) -> Result<Response, Problem> {
    let lane = known(&lane)?;
    let (app, viewer) = (State(Arc::clone(&operator.app)), operator.viewer());
    let answer = match checked(&fields, lane, false) {
        Ok(()) => resume_lane(operator, Name(lane.to_owned()), note(&fields)).await,
        Err(problem) => Err(problem),
    };
    let said = ["goes on. What has gathered is sent now.", "was not paused."];
    match told(lane, answer, said) {
        Ok(done) => Ok(done),
        Err(problem) => {
            let again = asked(app, viewer, lane, true, &frame).await;
            again.again(frame, &fields, problem)
        }
    }
}

/// Leads back to the lanes, which say what was changed, or that it was so before.
fn told(
    lane: &str,
    answer: Result<Json<PauseChangeDocument>, Problem>,
    [changed, unchanged]: [&str; 2],
) -> Result<Response, Problem> {
    let has_changed = answer?.changed;
    let said = if has_changed { changed } else { unchanged };
    let lane = title(lane).to_lowercase();
    Ok(done_if(
        has_changed,
        "/console/lanes",
        &format!("The {lane} {said}"),
    ))
}

/// All that is wrong at once: the name that was typed, and the note.
fn checked(fields: &Fields, lane: &str, needs_note: bool) -> Result<(), Problem> {
    let noted = if needs_note {
        note(fields).0.required().map(drop)
    } else {
        note(fields).0.optional().map(drop)
    };
    match (typed(fields, lane), noted) {
        (Err(name), Err(note)) => Err(name.and(note)),
        (name, noted) => name.and(noted),
    }
}
