//! `/console/quota-requests`: what resellers ask for, beside what they have and use, and deciding it.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use chrono::Days;
use domain::quota::{day_of, start_of};
use domain::subscription::QuotaRequestStatus;
use explain::words;
use http_api::paging::{self, List};
use http_api::{FieldProblem, Id, Params, Payload, Problem, ProblemKind, ReadParams, TakesBodies as _};
use serde::Deserialize;
use store::webhook::QuotaRequestView;
use uuid::Uuid;

use super::act::{self, ActForm};
use super::export::{self, Column, Rows};
use super::frame::{Frame, Page, done};
use super::markup::{self, Markup};
use super::resellers::subscription::{Quota, quota};
use super::visit::Fields;
use crate::app::App;
use crate::note::NotePayload;
use crate::quota_requests::{self, ApprovalPayload, DenialPayload, ListedDocument, QuotaRequestParams};
use crate::request::{Administrator, Viewer};

const HERE: &str = "/console/quota-requests";
/// The status of the requests that are shown when nothing is said.
const OPEN: &str = "REQUESTED";
/// How many requests a page has: what each subscription has now is read one by one.
const PART: u32 = 25;
/// Of how many days the use is shown beside a request, the present one included.
const DAYS: u64 = 28;

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(HERE, get(page))
        .route("/console/quota-requests/export", get(export))
        .route(
            "/console/quota-requests/{id}/approve",
            get(ask_to_approve).post(approve),
        )
        .route("/console/quota-requests/{id}/deny", get(ask_to_deny).post(deny))
}

/// Which requests; the open ones when nothing is said, and all of them for `ALL`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Chosen {
    status: Option<String>,
    cursor: Option<String>,
}

/// A request, and what its subscription has now; none of one that was deleted.
struct Asked {
    request: QuotaRequestView,
    /// What a grant would be of all that is sent on a day; none of what is decided.
    percent_of_sends: Option<u64>,
    quota: Option<Quota>,
    /// What was used on each of the last days, or ended on it where the use was not kept. The present day is the last one, with what waits
    /// for a coming day, so that the busiest is the number that the reseller sees.
    days: Vec<u64>,
}

impl Asked {
    /// With what its subscription has and has used.
    async fn of(app: &App, viewer: Viewer, listed: ListedDocument) -> Result<Self, Problem> {
        let request = listed.request;
        let quota = quota(app, viewer, (&request.reseller, request.subscription)).await?;
        let days = match &quota {
            Some(quota) => days(app, viewer, (request.subscription, quota.used + quota.waiting)).await?,
            None => Vec::new(),
        };
        Ok(Self {
            request,
            percent_of_sends: listed.percent_of_sends,
            quota,
            days,
        })
    }

    /// The most of the days.
    fn busiest(&self) -> u64 {
        self.days.iter().copied().max().unwrap_or_default()
    }

    /// The days as bars.
    fn bars(&self) -> Markup {
        let said = format!("{} on the busiest of 28 days", words::number(self.busiest()));
        markup::small_bars(&self.days, "wait", &said)
    }

    fn is_open(&self) -> bool {
        self.request.status == QuotaRequestStatus::Requested
    }

    /// What is asked for in relation to what there is: `3 times`, `1.5 times`; none of what is decided.
    fn times(&self) -> Option<String> {
        let now = self.quota.as_ref().filter(|_| self.is_open())?.daily;
        let tenths = (u64::from(self.request.requested) * 10).checked_div(u64::from(now))?;
        Some(match tenths % 10 {
            0 => format!("{} times", tenths / 10),
            rest => format!("{}.{rest} times", tenths / 10),
        })
    }

    /// The same in relation to all that is sent on a day: `12 % of all sends`.
    fn of_all_sends(&self) -> Option<String> {
        Some(match self.percent_of_sends? {
            0 => "less than 1 % of all sends".to_owned(),
            percent => format!("{} % of all sends", words::number(percent)),
        })
    }
}

/// What a subscription has used day by day, and last what today needs.
async fn days(
    app: &App,
    viewer: Viewer,
    (subscription, needed_today): (Uuid, u64),
) -> Result<Vec<u64>, Problem> {
    let zone = app.config.reseller.quota.time_zone;
    let today = day_of(app.now(), zone);
    let first = today.checked_sub_days(Days::new(DAYS - 1)).unwrap_or(today);
    let reading = app.store.quota_days(subscription, first, start_of(first, zone));
    let kept = http_api::by(viewer.deadline, ("the quota", "read"), reading).await?;
    let used = |day| {
        let kept = kept.iter().find(|kept| kept.day == day);
        kept.map_or(0, |kept| kept.used.unwrap_or(kept.ended))
    };
    let before = first.iter_days().take_while(|day| *day < today).map(used);
    Ok(before.chain([needed_today]).collect())
}

#[derive(Template)]
#[template(path = "quota_requests.html")]
struct QuotaRequests {
    frame: Frame,
    status: String,
    asked: Vec<Asked>,
    next: Option<String>,
}

/// What a file of quota requests has.
const COLUMNS: [Column; 14] = [
    ("id", "/id"),
    ("resellerId", "/resellerId"),
    ("subscriptionId", "/subscriptionId"),
    ("status", "/status"),
    ("dailyQuota", "/dailyQuota"),
    ("requestsPerSecond", "/requestsPerSecond"),
    ("percentOfSends", "/percentOfSends"),
    ("reason", "/reason"),
    ("granted", "/granted"),
    ("grantedPerSecond", "/grantedPerSecond"),
    ("note", "/note"),
    ("decidedBy", "/decidedBy"),
    ("createdAt", "/createdAt"),
    ("decidedAt", "/decidedAt"),
];

/// Of which status the operation lists requests when the page is asked for those of this one.
fn of_status(asked: &str) -> Option<String> {
    Some(asked.to_owned()).filter(|status| status != "ALL")
}

/// The list as a file.
async fn export(State(app): State<Arc<App>>, _: Viewer, frame: Frame) -> Result<Response, Problem> {
    let asked = frame.clone();
    let part = move |cursor: Option<String>| {
        let (app, frame) = (Arc::clone(&app), asked.clone());
        async move {
            let Params(params) = export::params::<QuotaRequestParams>(&frame, cursor.as_deref()).await?;
            let params = QuotaRequestParams {
                status: of_status(params.status.as_deref().unwrap_or(OPEN)),
                ..params
            };
            let deadline = app.deadline();
            let list = quota_requests::list(State(app), Viewer { deadline }, ReadParams::of(params)).await?;
            Ok(Rows::from(list.0))
        }
    };
    export::file(&frame, "quota-requests", &COLUMNS, part).await
}

impl QuotaRequests {
    /// Where the list is as a file.
    fn file(&self, format: &str) -> String {
        export::link(&self.frame, "/console/quota-requests/export", format)
    }

    fn tabs(&self) -> [(&'static str, &'static str); 4] {
        [
            ("REQUESTED", "Open"),
            ("APPROVED", "Approved"),
            ("DENIED", "Denied"),
            ("ALL", "All"),
        ]
    }
}

async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Params(chosen): Params<Chosen>,
) -> Result<impl IntoResponse, Problem> {
    let status = chosen.status.unwrap_or_else(|| OPEN.to_owned());
    let params = QuotaRequestParams {
        status: of_status(&status),
        limit: Some(PART),
        cursor: chosen.cursor,
    };
    let list: List<_> = quota_requests::list(State(Arc::clone(&app)), viewer, ReadParams::of(params))
        .await?
        .0;
    let mut asked = Vec::with_capacity(list.items.len());
    for listed in list.items {
        // What it has now says nothing of a request that was decided under another quota.
        asked.push(match listed.request.status {
            QuotaRequestStatus::Requested => Asked::of(&app, viewer, listed).await?,
            _ => Asked {
                request: listed.request,
                percent_of_sends: None,
                quota: None,
                days: Vec::new(),
            },
        });
    }
    Ok(Page(QuotaRequests {
        frame,
        status,
        asked,
        next: list.next,
    }))
}

/// The page to decide a request.
#[derive(Template)]
#[template(path = "quota_request.html")]
struct Decide {
    frame: Frame,
    asked: Asked,
    title: String,
    /// The form; none of a request that is decided.
    form: Option<ActForm>,
}

impl Decide {
    fn new(frame: Frame, asked: Asked, approves: bool) -> Self {
        let verb = if approves { "Approve" } else { "Deny" };
        let form = form(&frame, &asked.request, approves);
        Self {
            title: format!("{verb} the quota request of {}", asked.request.reseller),
            form: asked.is_open().then_some(form),
            frame,
            asked,
        }
    }
}

fn form(frame: &Frame, request: &QuotaRequestView, approves: bool) -> ActForm {
    let verb = if approves { "approve" } else { "deny" };
    let blank = ActForm::new(frame, format!("{HERE}/{}/{verb}", request.id), HERE.to_owned());
    let said = if approves {
        "The quota of this one subscription holds at once, for what waits as for what comes, the oldest first. The reseller is told by \
         mail, with your note. A lower one is set on the page of the subscription."
    } else {
        "The quota stays as it is, and the reseller is told by mail, with your note. It can ask again."
    };
    let granted = request.asks_daily.then(|| act::Asked {
        name: "granted",
        label: "Notifications a day",
        hint: format!(
            "{} were asked for. Another number is told to the reseller.",
            frame.number(request.requested)
        ),
        value: request.requested.to_string(),
        ..act::Asked::default()
    });
    let per_second = request.requests_per_second.map(|asked| act::Asked {
        name: "grantedPerSecond",
        label: "Attempts a second",
        hint: format!(
            "{} were asked for. Another number is told to the reseller.",
            frame.number(asked)
        ),
        value: asked.to_string(),
        ..act::Asked::default()
    });
    let asked = granted.into_iter().chain(per_second);
    ActForm {
        id: "decide".to_owned(),
        title: "Decision".to_owned(),
        said: vec![said.to_owned()],
        button: if approves { "Approve" } else { "Deny" },
        is_dangerous: !approves,
        fields: if approves { asked.collect() } else { Vec::new() },
        ..blank.of_administrators(frame)
    }
}

/// The request with this identifier.
async fn find(app: &Arc<App>, viewer: Viewer, id: Uuid) -> Result<Asked, Problem> {
    // The list goes down from a cursor that it leaves out, so that the one asked for comes first behind the next greater identifier.
    let params = QuotaRequestParams {
        status: None,
        limit: Some(1),
        cursor: Some(paging::write_id(Uuid::from_u128(id.as_u128().saturating_add(1)))),
    };
    let Json(list) = quota_requests::list(State(Arc::clone(app)), viewer, ReadParams::of(params)).await?;
    let found = list.items.into_iter().find(|listed| listed.request.id == id);
    let unknown = || Problem::new(ProblemKind::NOT_FOUND, "no quota request has this identifier");
    Asked::of(app, viewer, found.ok_or_else(unknown)?).await
}

async fn ask_to_approve(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<impl IntoResponse, Problem> {
    Ok(Page(Decide::new(frame, find(&app, viewer, id).await?, true)))
}

async fn ask_to_deny(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<impl IntoResponse, Problem> {
    Ok(Page(Decide::new(frame, find(&app, viewer, id).await?, false)))
}

async fn approve(
    State(app): State<Arc<App>>,
    admin: Administrator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let viewer = admin.viewer();
    const MUST: &str = "a number of notifications a day";
    const MUST_SECOND: &str = "a number of attempts a second";
    // The operation grants what was asked for where no number is given; a form that shows none must not.
    let given = |name, must| {
        let missing = || Problem::fields(vec![FieldProblem::new(name, format!("must be {must}"))]);
        fields
            .parse(name, must)
            .and_then(|given: Option<i64>| given.ok_or_else(missing))
    };
    let shown = |name, must| fields.get(name).map(|_| given(name, must)).transpose();
    let granted = match shown("grantedPerSecond", MUST_SECOND) {
        // A form of a request for attempts a second alone has no daily quota.
        Ok(Some(per_second)) => shown("granted", MUST).map(|granted| (granted, Some(per_second))),
        Ok(None) => given("granted", MUST).map(|granted| (Some(granted), None)),
        Err(problem) => Err(problem),
    };
    let payload = granted.map(|(granted, granted_per_second)| ApprovalPayload {
        granted,
        granted_per_second,
        note: fields.get("note").map(str::to_owned),
    });
    let decided = match payload {
        Ok(payload) => {
            quota_requests::approve(State(Arc::clone(&app)), admin, Id(id), Payload(payload)).await
        }
        Err(problem) => Err(problem),
    };
    match decided {
        Ok(Json(view)) => {
            let daily = view
                .granted
                .map(|granted| format!("{} a day", frame.of(granted, "notification", "notifications")));
            let rate = view.granted_per_second;
            let rate = rate.map(|rate| format!("{} a second", frame.of(rate, "attempt", "attempts")));
            let granted: Vec<String> = daily.into_iter().chain(rate).collect();
            let said = format!(
                "{} may get {} now, and is told by mail. It holds for what waits, too.",
                view.reseller,
                granted.join(", ")
            );
            Ok(done(HERE, &said))
        }
        Err(problem) => again(&app, viewer, (frame, id, true), &fields, problem).await,
    }
}

async fn deny(
    State(app): State<Arc<App>>,
    admin: Administrator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let viewer = admin.viewer();
    let decided = match act::needed_note(&fields) {
        Ok(Payload(NotePayload { note })) => {
            let payload = Payload(DenialPayload { note });
            quota_requests::deny(State(Arc::clone(&app)), admin, Id(id), payload).await
        }
        Err(problem) => Err(problem),
    };
    match decided {
        Ok(Json(view)) => {
            let said = format!(
                "The request of {} is denied. Its quota stays, and it is told by mail.",
                view.reseller
            );
            Ok(done(HERE, &said))
        }
        Err(problem) => again(&app, viewer, (frame, id, false), &fields, problem).await,
    }
}

/// The page again with what was typed, when that is what is wrong; any other problem as it is.
async fn again(
    app: &Arc<App>,
    viewer: Viewer,
    (frame, id, approves): (Frame, Uuid, bool),
    fields: &Fields,
    problem: Problem,
) -> Result<Response, Problem> {
    if problem.kind() != ProblemKind::VALIDATION {
        return Err(problem);
    }
    let asked = find(app, viewer, id).await?;
    let (form, problem) = form(&frame, &asked.request, approves).filled(fields, problem)?;
    let page = Decide {
        form: Some(form),
        ..Decide::new(frame, asked, approves)
    };
    Ok(act::answered(Page(page), problem))
}
