//! R5, all at once: sending everything again that matches, counted first.

use std::sync::Arc;

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::TimeDelta;
use http_api::{Draft, FieldProblem, Id, Problem, Wrong};
use pages::{Fields, Page, done};
use uuid::Uuid;

use super::frame::Frame;
use super::{Route, confirm, words};
use crate::app::App;
use crate::request::{Reseller, Resender};
use crate::resends::{self, ResendPayload, ResendsDocument};
use crate::subscriptions::SubscriptionDocument;

/// From so many on the number has to be typed.
const TYPED_FROM: u64 = 1_000;
/// How far back notifications are listed, in hours.
const WEEK: u32 = 168;

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page("/app/s/{id}/resend", ask),
        super::act("/app/s/{id}/resend", resend),
    ]
}

/// What was typed, as it was typed, and what came of it.
#[derive(Default)]
struct Typed {
    statuses: Vec<String>,
    event_types: String,
    code: String,
    hours: String,
    per_second: String,
    errors: Vec<FieldProblem>,
    preview: Option<ResendsDocument>,
}

#[derive(Template)]
#[template(path = "resend_all.html")]
struct ResendAll {
    frame: Frame,
    subscription: SubscriptionDocument,
    per_second_max: u32,
    typed: Typed,
}

impl ResendAll {
    fn heading(&self) -> String {
        words::host(&self.subscription.url)
    }

    fn has(&self, status: &str) -> bool {
        self.typed.statuses.iter().any(|known| known == status)
    }

    fn wrong(&self, field: &str) -> Option<&str> {
        confirm::wrong(&self.typed.errors, field)
    }

    fn is_typed(&self, preview: &ResendsDocument) -> bool {
        preview.count > TYPED_FROM
    }
}

async fn form(
    app: &Arc<App>,
    reseller: &Reseller,
    frame: Frame,
    id: Uuid,
    typed: Typed,
) -> Result<Response, Problem> {
    let status = confirm::status(&typed.errors);
    let page = ResendAll {
        subscription: super::subscription(app, reseller, id).await?,
        per_second_max: app.config.reseller.replay.per_second,
        frame,
        typed,
    };
    Ok((status, Page(page)).into_response())
}

/// The filter of the list is the one that the form begins with.
async fn ask(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    let ended = ["SENT", "FAILED", "GIVEN_UP"];
    let statuses = frame.asked("status");
    let typed = Typed {
        statuses: statuses
            .split(',')
            .filter(|status| ended.contains(status))
            .map(str::to_owned)
            .collect(),
        event_types: frame.asked("eventType"),
        code: frame.asked("code"),
        hours: frame.asked("hours"),
        ..Typed::default()
    };
    form(&app, &reseller, frame, id, typed).await
}

impl Typed {
    fn of(fields: &Fields) -> Self {
        let text = |name| fields.get(name).unwrap_or_default().trim().to_owned();
        Self {
            statuses: fields.all("status"),
            event_types: text("eventTypes"),
            code: text("code"),
            hours: text("hours"),
            per_second: text("perSecond"),
            ..Self::default()
        }
    }

    fn payload(&self, app: &App, dry_run: bool) -> Result<ResendPayload, Vec<FieldProblem>> {
        let mut errors = Vec::new();
        let mut number = |field: &'static str, text: &str, most: u32| -> Option<u32> {
            let parsed = text.parse().ok().filter(|number| (1..=most).contains(number));
            if parsed.is_none() && !text.is_empty() {
                errors.push(FieldProblem::new(
                    field,
                    format!("must be a number from 1 to {most}"),
                ));
            }
            parsed
        };
        let code = number("code", &self.code, 599);
        let hours = number("hours", &self.hours, WEEK);
        let per_second = number(
            "perSecond",
            &self.per_second,
            app.config.reseller.replay.per_second,
        );
        if !errors.is_empty() {
            return Err(errors);
        }
        let types = self.event_types.split([',', ' ', '\n']);
        let types: Vec<_> = types.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Ok(ResendPayload {
            ids: None,
            statuses: Some(self.statuses.clone()).filter(|statuses| !statuses.is_empty()),
            event_types: Some(types).filter(|types| !types.is_empty()),
            code: code.and_then(|code| u16::try_from(code).ok()),
            since: hours.map(|hours| app.now() - TimeDelta::hours(hours.into())),
            until: None,
            dry_run: Some(dry_run),
            per_second,
        })
    }
}

async fn run(
    app: &Arc<App>,
    resender: &Resender,
    id: Uuid,
    typed: &Typed,
    dry_run: bool,
) -> Result<Result<ResendsDocument, Vec<FieldProblem>>, Problem> {
    let payload = match typed.payload(app, dry_run) {
        Ok(payload) => payload,
        Err(errors) => return Ok(Err(errors)),
    };
    let draft = Draft(payload, Wrong::default());
    match resends::resend(State(Arc::clone(app)), resender.clone(), Id(id), draft).await {
        Ok((_, Json(document))) => Ok(Ok(document)),
        Err(problem) => confirm::mendable(problem).map(Err),
    }
}

async fn resend(
    State(app): State<Arc<App>>,
    resender: Resender,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let typed = Typed::of(&fields);
    let preview = match run(&app, &resender, id, &typed, true).await? {
        Ok(preview) => preview,
        Err(errors) => return form(&app, &resender, frame, id, Typed { errors, ..typed }).await,
    };
    let is_count = fields.get("count").is_some();
    let number = fields.get("number").map(str::trim).unwrap_or_default();
    let is_confirmed =
        preview.count <= TYPED_FROM || number.replace([',', ' '], "") == preview.count.to_string();
    // What was agreed to is the number that was shown.
    let is_as_shown = fields.get("counted") == Some(preview.count.to_string().as_str());
    if is_count || preview.count == 0 || !is_confirmed || !is_as_shown {
        let mut errors = Vec::new();
        if !is_count && preview.count > 0 && !is_as_shown {
            let now = frame.number(preview.count);
            let detail = format!("is not the one that was shown: {now} match now, look and send again");
            errors.push(FieldProblem::new("counted", detail));
        } else if !is_count && !is_confirmed {
            errors.push(FieldProblem::new("number", format!("must be {}", preview.count)));
        }
        let preview = Some(preview);
        let typed = Typed {
            errors,
            preview,
            ..typed
        };
        return form(&app, &resender, frame, id, typed).await;
    }
    match run(&app, &resender, id, &typed, false).await? {
        Ok(sent) => {
            let (count, rate) = (frame.number(sent.count), frame.number(sent.per_second));
            let said = format!("{count} are sent again, at most {rate} a second, the oldest event first.");
            Ok(done(&format!("/app/s/{id}/deliveries"), &said))
        }
        Err(errors) => form(&app, &resender, frame, id, Typed { errors, ..typed }).await,
    }
}
