//! R5, all at once: sending everything again that matches, counted first, of one subscription or of all of them. Of all, each is asked for
//! by itself, as the API does it, and one that refuses leaves the others as they are.

use std::sync::Arc;

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{MappedLocalTime, TimeDelta};
use chrono_tz::Tz;
use domain::subscription::SubscriptionState;
use http_api::{Draft, FieldProblem, Id, Problem, Wrong, last_answer};
use pages::{Fields, Page, TYPED_ABOVE, done, see_other};
use store::webhook::RESENT_MAX;
use uuid::Uuid;

use super::deliveries::WEEK;
use super::frame::Frame;
use super::{Route, confirm, words};
use crate::app::App;
use crate::problems;
use crate::request::{Reseller, Resender};
use crate::resends::{self, ResendPayload, ResendsDocument};
use crate::subscriptions::SubscriptionDocument;

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page("/app/s/{id}/resend", ask),
        super::act("/app/s/{id}/resend", resend),
        super::page("/app/resend", ask_of_all),
        super::act("/app/resend", resend_of_all),
    ]
}

/// What was typed, as it was typed, and what came of it.
#[derive(Default)]
struct Typed {
    statuses: Vec<String>,
    event_types: String,
    code: String,
    hours: String,
    since: String,
    until: String,
    ended_hours: String,
    ended_since: String,
    ended_until: String,
    per_second: String,
    errors: Vec<FieldProblem>,
    preview: Option<Ran>,
}

/// What was counted or sent again.
struct Ran {
    sum: ResendsDocument,
    /// How many of which endpoint.
    each: Vec<(String, u64)>,
    /// Why one subscription refused after others had taken theirs.
    refused: Option<String>,
}

/// A field for a time, or for the last hours.
struct TimeField<'a> {
    name: &'static str,
    label: String,
    hint: &'static str,
    value: &'a str,
    is_hours: bool,
    /// Whether a field for times can show it: it would show nothing of what is none.
    is_time: bool,
}

#[derive(Template)]
#[template(path = "resend_all.html")]
struct ResendAll {
    frame: Frame,
    /// The one that it is about; none for all of them.
    subscription: Option<SubscriptionDocument>,
    per_second_max: u32,
    typed: Typed,
}

impl ResendAll {
    fn heading(&self) -> String {
        let one = self.subscription.as_ref();
        one.map_or_else(|| "All subscriptions".to_owned(), |one| words::host(&one.url))
    }

    /// Where its form goes, and where its list is.
    fn addresses(&self) -> (String, String) {
        let of = self.subscription.as_ref().map(|one| one.id);
        (place(of, "resend"), place(of, "deliveries"))
    }

    fn has(&self, status: &str) -> bool {
        self.typed.statuses.iter().any(|known| known == status)
    }

    fn wrong(&self, field: &str) -> Option<&str> {
        confirm::wrong(&self.typed.errors, field)
    }

    /// The fields for the times: each with its name, its label, what it means and what it holds.
    fn times(&self) -> [TimeField<'_>; 6] {
        let (zone, typed) = (self.frame.preferences.zone, &self.typed);
        let hours = |name, label: &str, hint, value| TimeField {
            name,
            label: label.to_owned(),
            hint,
            value,
            is_hours: true,
            is_time: false,
        };
        let time = |name, label: &str, hint, value| {
            let field = hours(name, &format!("{label} ({})", zone.name()), hint, value);
            let is_time =
                field.value.is_empty() || words::time(field.value, zone, MappedLocalTime::earliest).is_some();
            TimeField {
                is_hours: false,
                is_time,
                ..field
            }
        };
        [
            hours(
                "hours",
                "Accepted in the last hours",
                "Empty: 168, which are 7 days",
                &typed.hours,
            ),
            time(
                "since",
                "From",
                "Accepted then or later; empty: as far back as the hours say",
                &typed.since,
            ),
            time(
                "until",
                "Until",
                "Accepted before; empty: until now",
                &typed.until,
            ),
            hours(
                "endedHours",
                "Ended in the last hours",
                "Delivered, failed or given up; empty: whenever that was",
                &typed.ended_hours,
            ),
            time(
                "endedSince",
                "Ended from",
                "Ended then or later; empty: as far back as those hours say",
                &typed.ended_since,
            ),
            time(
                "endedUntil",
                "Ended until",
                "Ended before; empty: until now",
                &typed.ended_until,
            ),
        ]
    }

    /// What a field of the form is called above it, where it is wrong.
    fn called(&self, field: &str) -> &'static str {
        match field {
            "code" => "The last answer",
            "since" => "From",
            "until" => "Until",
            "hours" => "The time",
            "endedSince" => "Ended from",
            "endedUntil" => "Ended until",
            "endedHours" => "The time of the end",
            "perSecond" => "The rate",
            "number" => "The number",
            "counted" => "The count",
            "statuses" => "The status",
            _ => "The event types",
        }
    }

    fn is_typed(&self, preview: &Ran) -> bool {
        preview.sum.count > TYPED_ABOVE
    }
}

fn place(of: Option<Uuid>, part: &str) -> String {
    of.map_or_else(|| format!("/app/{part}"), |id| format!("/app/s/{id}/{part}"))
}

async fn form(
    app: &Arc<App>,
    reseller: &Reseller,
    frame: Frame,
    of: Option<Uuid>,
    typed: Typed,
) -> Result<Response, Problem> {
    let status = confirm::status(&typed.errors);
    let subscription = match of {
        Some(id) => Some(super::subscription(app, reseller, id).await?),
        None => None,
    };
    let page = ResendAll {
        subscription,
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
    let typed = Typed::asked(&frame);
    form(&app, &reseller, frame, Some(id), typed).await
}

async fn ask_of_all(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
) -> Result<Response, Problem> {
    // The list of all can be filtered by a subscription: what is left of all is then the page of that one.
    let chosen = frame.asked("subscription");
    if !chosen.is_empty() {
        let chosen: Uuid = chosen.parse().map_err(|_| problems::no_subscription())?;
        return Ok(see_other(&frame.of_one(chosen, "resend")));
    }
    let typed = Typed::asked(&frame);
    form(&app, &reseller, frame, None, typed).await
}

impl Typed {
    fn asked(frame: &Frame) -> Self {
        let listed = frame.asked("status");
        let (statuses, others) = resends::resendable(&listed);
        // Left out, they would let through what the list does not have: with no status chosen it is of all that have ended.
        let others: Vec<_> = others.into_iter().map(|status| frame.word(status)).collect();
        let mut errors = Vec::new();
        if !others.is_empty() {
            let detail = format!(
                "cannot be {}: that has not ended, and is sent anyhow. Choose here what is to be sent again",
                others.join(", ")
            );
            errors.push(FieldProblem::new("statuses", detail));
        }
        // What is no time stays as it is and is refused: left out, it would let through what it was to leave out.
        let time = |name| {
            let asked = frame.asked(name);
            let read = words::field(&asked, frame.preferences.zone);
            if read.is_empty() { asked } else { read }
        };
        Self {
            statuses: statuses.into_iter().map(str::to_owned).collect(),
            event_types: frame.asked("eventType"),
            code: frame.asked("code"),
            hours: frame.asked("hours"),
            since: time("since"),
            until: time("until"),
            ended_hours: frame.asked("endedHours"),
            ended_since: time("endedSince"),
            ended_until: time("endedUntil"),
            errors,
            ..Self::default()
        }
    }

    fn of(fields: &Fields) -> Self {
        let text = |name| fields.get(name).unwrap_or_default().trim().to_owned();
        Self {
            statuses: fields.all("status"),
            event_types: text("eventTypes"),
            code: text("code"),
            hours: text("hours"),
            since: text("since"),
            until: text("until"),
            ended_hours: text("endedHours"),
            ended_since: text("endedSince"),
            ended_until: text("endedUntil"),
            per_second: text("perSecond"),
            ..Self::default()
        }
    }

    fn payload(&self, app: &App, (zone, dry_run): (Tz, bool)) -> Result<ResendPayload, Vec<FieldProblem>> {
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
        let hours = number("hours", &self.hours, WEEK);
        let ended_hours = number("endedHours", &self.ended_hours, WEEK);
        let per_second = number(
            "perSecond",
            &self.per_second,
            app.config.reseller.replay.per_second,
        );
        let code = Some(self.code.clone()).filter(|code| !code.is_empty());
        if code.is_some() && last_answer::status_codes(&self.code).is_none() {
            errors.push(FieldProblem::new("code", last_answer::NO_CODE));
        }
        let week = app.now() - TimeDelta::hours(WEEK.into());
        let within = |hours: Option<u32>| hours.map(|hours| app.now() - TimeDelta::hours(hours.into()));
        let earliest = |text: &str| words::time(text, zone, MappedLocalTime::earliest);
        let latest = |text: &str| words::time(text, zone, MappedLocalTime::latest);
        let times = [
            ("since", &self.since, earliest(&self.since)),
            ("until", &self.until, latest(&self.until)),
            ("endedSince", &self.ended_since, earliest(&self.ended_since)),
            ("endedUntil", &self.ended_until, latest(&self.ended_until)),
        ];
        for (field, text, time) in times {
            if time.is_none() && !text.is_empty() {
                errors.push(FieldProblem::new(
                    field,
                    "must be a time such as 2026-11-21T12:00",
                ));
            }
        }
        let [since, until, ended_since, ended_until] = times.map(|(_, _, time)| time);
        if !errors.is_empty() {
            return Err(errors);
        }
        let types = self.event_types.split([',', ' ', '\n']);
        let types: Vec<_> = types.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Ok(ResendPayload {
            ids: None,
            statuses: Some(self.statuses.clone()).filter(|statuses| !statuses.is_empty()),
            event_types: Some(types).filter(|types| !types.is_empty()),
            code,
            // Both hold, so that the later one does.
            since: Some(since.max(within(hours)).unwrap_or(week)),
            until,
            ended_since: ended_since.max(within(ended_hours)),
            ended_until,
            dry_run: Some(dry_run),
            per_second,
        })
    }
}

/// The subscriptions that it is of. Of all, those that nothing is sent to are left out.
async fn targets(
    app: &Arc<App>,
    reseller: &Reseller,
    of: Option<Uuid>,
) -> Result<Vec<SubscriptionDocument>, Problem> {
    let Some(id) = of else {
        let mut all = super::subscriptions_of(app, reseller).await?;
        let is_sent_to = |state| matches!(state, SubscriptionState::Active | SubscriptionState::Degraded);
        all.retain(|subscription| is_sent_to(subscription.state));
        return Ok(all);
    };
    Ok(vec![super::subscription(app, reseller, id).await?])
}

async fn run(
    app: &Arc<App>,
    resender: &Resender,
    targets: &[SubscriptionDocument],
    (typed, zone, dry_run): (&Typed, Tz, bool),
) -> Result<Result<Ran, Vec<FieldProblem>>, Problem> {
    let mut ran: Option<Ran> = None;
    for target in targets {
        let payload = match typed.payload(app, (zone, dry_run)) {
            Ok(payload) => payload,
            Err(errors) => return Ok(Err(errors)),
        };
        let draft = Draft(payload, Wrong::default());
        let resend = resends::resend(State(Arc::clone(app)), resender.clone(), Id(target.id), draft);
        let endpoint = words::place(&target.url);
        match resend.await {
            Ok((_, Json(document))) => {
                let one = (endpoint, document.count);
                if let Some(ran) = &mut ran {
                    ran.each.push(one);
                    ran.sum.add(document);
                } else {
                    ran = Some(Ran {
                        sum: document,
                        each: vec![one],
                        refused: None,
                    });
                }
            }
            Err(problem) => match &mut ran {
                Some(ran) if !dry_run => ran.refused = Some(format!("{endpoint}: {}", problem.detail())),
                _ => return confirm::mendable(problem).map(Err),
            },
        }
    }
    let detail = "is of no subscription: nothing is sent to any of yours now";
    Ok(ran.ok_or_else(|| vec![FieldProblem::new("counted", detail)]))
}

async fn resend(
    State(app): State<Arc<App>>,
    resender: Resender,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    carry_out(&app, &resender, frame, (Some(id), &fields)).await
}

async fn resend_of_all(
    State(app): State<Arc<App>>,
    resender: Resender,
    frame: Frame,
    fields: Fields,
) -> Result<Response, Problem> {
    carry_out(&app, &resender, frame, (None, &fields)).await
}

/// What keeps so many from being sent again. Of a count that is not to be sent it is only that there are too many.
fn objection(frame: &Frame, fields: &Fields, count: u64) -> Option<FieldProblem> {
    let number = fields.get("number").map(str::trim).unwrap_or_default();
    if count > u64::from(RESENT_MAX) {
        let most = frame.number(u64::from(RESENT_MAX));
        let detail = format!("is more than {most} of all subscriptions together, which is the most at once");
        Some(FieldProblem::new("counted", detail))
    } else if fields.get("count").is_some() || count == 0 {
        None
    } else if fields.get("counted") != Some(count.to_string().as_str()) {
        // What was agreed to is the number that was shown.
        let now = frame.number(count);
        let detail = format!("is not the one that was shown: {now} match now, look and send again");
        Some(FieldProblem::new("counted", detail))
    } else if count > TYPED_ABOVE && number.replace([',', ' '], "") != count.to_string() {
        Some(FieldProblem::new("number", format!("must be {count}")))
    } else {
        None
    }
}

async fn carry_out(
    app: &Arc<App>,
    resender: &Resender,
    frame: Frame,
    (of, fields): (Option<Uuid>, &Fields),
) -> Result<Response, Problem> {
    let (typed, zone) = (Typed::of(fields), frame.preferences.zone);
    let targets = targets(app, resender, of).await?;
    let preview = match run(app, resender, &targets, (&typed, zone, true)).await? {
        Ok(preview) => preview,
        Err(errors) => return form(app, resender, frame, of, Typed { errors, ..typed }).await,
    };
    let objection = objection(&frame, fields, preview.sum.count);
    if fields.get("count").is_some() || preview.sum.count == 0 || objection.is_some() {
        let typed = Typed {
            errors: objection.into_iter().collect(),
            preview: Some(preview),
            ..typed
        };
        return form(app, resender, frame, of, typed).await;
    }
    match run(app, resender, &targets, (&typed, zone, false)).await? {
        Ok(sent) => {
            let (count, rate) = (frame.number(sent.sum.count), frame.number(sent.sum.per_second));
            let each = if of.is_none() { " to each endpoint" } else { "" };
            let said = match sent.refused {
                None => {
                    format!("{count} are sent again, at most {rate} a second{each}, the oldest event first.")
                }
                Some(refused) => format!("{count} are sent again, and others are not. {refused}."),
            };
            Ok(done(&place(of, "deliveries"), &said))
        }
        Err(errors) => form(app, resender, frame, of, Typed { errors, ..typed }).await,
    }
}
