//! R4: what a subscription is set to, and its state.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::subscription::SubscriptionState;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_api::paging::List;
use http_api::{Draft, FieldProblem, Id, Payload, Problem, ReadParams, Wrong};
use pages::{Fields, Page, done};
use uuid::Uuid;

use super::confirm::Confirm;
use super::frame::Frame;
use super::subscription_form::{SubscriptionForm, offered};
use super::{Route, confirm, replays, words};
use crate::activity::{self, StateDocument};
use crate::app::App;
use crate::problems::CHANGED_MEANWHILE;
use crate::quotas;
use crate::request::{Manager, PartParams, Reseller};
use crate::subscriptions::change::ChangePayload;
use crate::subscriptions::email::CodePayload;
use crate::subscriptions::{self, SubscriptionDocument};

pub(super) fn routes() -> Vec<Route> {
    use super::{act, page as at};
    vec![
        at("/app/s/{id}/settings", page),
        act("/app/s/{id}/settings", save),
        act("/app/s/{id}/pause", pause),
        act("/app/s/{id}/resume", resume),
        act("/app/s/{id}/activate", activate),
        at("/app/s/{id}/deactivate", ask_to_deactivate),
        act("/app/s/{id}/deactivate", deactivate),
        at("/app/s/{id}/delete", ask_to_delete),
        act("/app/s/{id}/delete", delete),
        act("/app/s/{id}/email/confirm", confirm_email),
        act("/app/s/{id}/email/resend", resend_code),
    ]
}

/// How many states of the past are shown at once.
const STATES: u32 = 10;

/// A subscription and which version of it that is.
type Versioned = (String, SubscriptionDocument);

#[derive(Template)]
#[template(path = "settings.html")]
struct Settings {
    frame: Frame,
    subscription: SubscriptionDocument,
    form: SubscriptionForm,
    /// What the form was filled in from.
    before: String,
    deactivate: Confirm,
    delete: Confirm,
    /// A code that was typed and is wrong.
    wrong_code: Option<String>,
    /// The last states that it came to have, the newest first.
    states: List<StateDocument>,
}

impl Settings {
    fn heading(&self) -> String {
        words::host(&self.subscription.url)
    }

    /// Why it came to have a state, and what held it back then.
    fn told(&self, entry: &StateDocument) -> String {
        let why = words::state_reason(entry.state_reason);
        let held_back = match (entry.paused, entry.held) {
            (true, true) => "; paused by you and by the operators",
            (true, false) => "; paused by you",
            (false, true) => "; paused by the operators",
            (false, false) => "",
        };
        format!("{why}{held_back}")
    }

    fn why(&self) -> &'static str {
        words::state_reason(self.subscription.state_reason)
    }

    /// Why no test event can be sent, if none can.
    fn not_tested(&self) -> Option<&'static str> {
        super::takes_nothing(self.subscription.state)
    }

    fn is_deactivated(&self) -> bool {
        self.subscription.state == SubscriptionState::Deactivated
    }
}

fn place(id: Uuid) -> String {
    format!("/app/s/{id}/settings")
}

/// A subscription, with its version as a form says it: without the quotes of the header.
async fn versioned(app: &Arc<App>, reseller: &Reseller, id: Uuid) -> Result<Versioned, Problem> {
    let found = subscriptions::find(State(Arc::clone(app)), reseller.clone(), Id(id)).await?;
    let ([(_, version)], subscription) = found;
    Ok((version.trim_matches('"').to_owned(), subscription.0))
}

/// What stands in `If-Match` for a version of a form; one that cannot stand there is none of a subscription.
fn if_match(version: &str) -> HeaderMap {
    let value = HeaderValue::try_from(format!("\"{version}\""));
    let value = value.unwrap_or(HeaderValue::from_static("\"\""));
    HeaderMap::from_iter([(header::IF_MATCH, value)])
}

async fn settings(
    app: &Arc<App>,
    reseller: &Reseller,
    frame: Frame,
    (before, subscription): Versioned,
    (form, wrong_code): (Option<SubscriptionForm>, Option<String>),
) -> Result<Response, Problem> {
    let form = match form {
        Some(form) => form,
        None => SubscriptionForm::of(&subscription, offered(app, reseller).await?),
    };
    let status = if form.errors.is_empty() && wrong_code.is_none() {
        StatusCode::OK
    } else {
        StatusCode::UNPROCESSABLE_ENTITY
    };
    let waiting = waiting(app, reseller, subscription.id).await?;
    let part = PartParams {
        limit: Some(STATES),
        cursor: Some(frame.asked("states")).filter(|cursor| !cursor.is_empty()),
    };
    let states = activity::states(
        State(Arc::clone(app)),
        reseller.clone(),
        Id(subscription.id),
        ReadParams::of(part),
    );
    let states = states.await?.0;
    let page = Settings {
        before,
        deactivate: deactivation(&frame, &subscription, waiting).in_dialog(),
        delete: deletion(&frame, &subscription, waiting).in_dialog(),
        frame,
        subscription,
        form,
        wrong_code,
        states,
    };
    Ok((status, Page(page)).into_response())
}

async fn waiting(app: &Arc<App>, reseller: &Reseller, id: Uuid) -> Result<u64, Problem> {
    let quota = quotas::show(State(Arc::clone(app)), reseller.clone(), Id(id)).await?;
    Ok(quota.0.scheduled)
}

async fn page(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    let subscription = versioned(&app, &reseller, id).await?;
    settings(&app, &reseller, frame, subscription, (None, None)).await
}

async fn save(
    State(app): State<Arc<App>>,
    manager: Manager,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let (present, subscription) = versioned(&app, &manager, id).await?;
    let before = fields.get("before").map_or(present, str::to_owned);
    let mut form = SubscriptionForm::typed(&fields, offered(&app, &manager).await?);
    let payload = changes(&form, &subscription);
    let is_moved = payload.url.is_some();
    let changed = subscriptions::change(
        State(Arc::clone(&app)),
        manager.clone(),
        Id(id),
        if_match(&before),
        Draft(payload, Wrong::default()),
    );
    match changed.await {
        Ok(_) if is_moved => Ok(done(
            &format!("/app/s/{id}/verify"),
            "The subscription is saved. Its new endpoint is challenged; nothing is sent to it until then.",
        )),
        Ok(_) => Ok(done(&place(id), "The subscription is saved.")),
        Err(problem) if problem.kind() == CHANGED_MEANWHILE => {
            let (present, subscription) = versioned(&app, &manager, id).await?;
            let detail = changed_meanwhile(&form, &subscription);
            form.errors = vec![FieldProblem::new("", detail)];
            settings(&app, &manager, frame, (present, subscription), (Some(form), None)).await
        }
        Err(problem) => {
            form.errors = confirm::mendable(problem)?;
            settings(&app, &manager, frame, (before, subscription), (Some(form), None)).await
        }
    }
}

/// What differs from the subscription; what was typed as it was is no change.
fn changes(form: &SubscriptionForm, now: &SubscriptionDocument) -> ChangePayload {
    let text = |typed: &String, now: &String| (typed != now).then(|| Some(typed.clone()));
    let timeout = form.timeout_millis();
    let is_same_time = timeout.is_some_and(|timeout| u64::try_from(timeout) == Ok(now.timeout_millis));
    let plan = form.retry_plan.parse().ok();
    ChangePayload {
        url: text(&form.url, &now.url),
        event_types: (form.event_types != now.event_types).then(|| Some(form.event_types.clone())),
        email: text(&form.email, &now.email),
        description: text(&form.description, &now.description),
        timeout_millis: (!is_same_time).then_some(timeout),
        resend_after_outage: (form.resend_after_outage != now.resend_after_outage)
            .then_some(Some(form.resend_after_outage)),
        retry_plan: (plan != Some(now.retry_plan)).then_some(plan),
        retry_client_errors: (form.retry_client_errors != now.retry_client_errors)
            .then_some(Some(form.retry_client_errors)),
        daily_quota: None,
        requests_per_second: None,
        secret: None,
        state: None,
    }
}

/// Both versions of what was changed meanwhile: what it is now, where something else was typed; that stands in the form.
fn changed_meanwhile(form: &SubscriptionForm, now: &SubscriptionDocument) -> String {
    let other = changes(form, now);
    let not = |is_so: bool| if is_so { "" } else { "not " };
    let facts = [
        (other.url.is_some(), format!("its URL is {}", now.url)),
        (
            other.event_types.is_some(),
            format!("its events are {}", now.event_types.join(", ")),
        ),
        (
            other.email.is_some(),
            format!("its e-mail address is {}", now.email),
        ),
        (
            other.description.is_some(),
            format!("its description is \"{}\"", now.description),
        ),
        (
            other.timeout_millis.is_some(),
            format!("its time for an answer is {} ms", now.timeout_millis),
        ),
        (
            other.retry_plan.is_some(),
            format!("its plan of retries is {}", now.retry_plan.as_str()),
        ),
        (
            other.retry_client_errors.is_some(),
            format!("400 to 499 are {}tried again", not(now.retry_client_errors)),
        ),
        (
            other.resend_after_outage.is_some(),
            format!(
                "after an outage it is {}sent again by itself",
                not(now.resend_after_outage)
            ),
        ),
    ];
    let facts = facts.into_iter().filter(|(differs, _)| *differs);
    let facts: Vec<_> = facts.map(|(_, fact)| fact).collect();
    if facts.is_empty() {
        return "The subscription was changed meanwhile, to what you typed.".to_owned();
    }
    format!(
        "The subscription was changed meanwhile. Now {}. What you typed stands below; saving it again puts it in place of that.",
        facts.join("; ")
    )
}

/// Where an act leads back to.
fn back(fields: &Fields, id: Uuid) -> String {
    let asked = fields.get("back").filter(|back| super::is_ours(back));
    asked.map_or_else(|| place(id), str::to_owned)
}

async fn pause(
    State(app): State<Arc<App>>,
    manager: Manager,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let found = subscriptions::pause(State(app), manager, Id(id)).await?.0;
    let said = format!(
        "{} is paused. Its events wait until you resume it.",
        words::host(&found.url)
    );
    Ok(done(&back(&fields, id), &said))
}

async fn resume(
    State(app): State<Arc<App>>,
    manager: Manager,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let found = subscriptions::resume(State(app), manager, Id(id)).await?.0;
    let host = words::host(&found.url);
    let said = if found.held_at.is_some() {
        format!(
            "{host} is resumed. The operators of the platform have paused it too: its events wait until they let it go on."
        )
    } else {
        format!("{host} is resumed. What waited is sent now.")
    };
    Ok(done(&back(&fields, id), &said))
}

/// Leads on to what it missed, for those who may have that sent.
async fn activate(
    State(app): State<Arc<App>>,
    manager: Manager,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    let found = subscriptions::activate(State(Arc::clone(&app)), manager.clone(), Id(id))
        .await?
        .0;
    let host = words::host(&found.url);
    if found.state == SubscriptionState::PendingVerification {
        let said = format!("{host} is challenged first. Events are sent to it once it has answered.");
        return Ok(done(&format!("/app/s/{id}/verify"), &said));
    }
    let said = format!("{host} is active. What it missed is not sent by itself: a replay does that.");
    let missed = match frame.may_resend() {
        true => replays::of_what_was_missed(&app, &manager, &frame, id).await?,
        false => None,
    };
    Ok(done(&missed.unwrap_or_else(|| place(id)), &said))
}

fn deactivation(frame: &Frame, subscription: &SubscriptionDocument, waiting: u64) -> Confirm {
    let host = words::host(&subscription.url);
    let given_up = match waiting {
        0 => "What waits for it is given up; a replay can send it later.".to_owned(),
        1 => {
            "1 notification that waits in line is given up, and so are retries; a replay can send them later."
                .to_owned()
        }
        _ => format!(
            "{} notifications that wait in line are given up, and so are retries; a replay can send them later.",
            frame.counted(waiting)
        ),
    };
    Confirm {
        id: "deactivate",
        title: format!("Deactivate {host}"),
        said: vec![
            format!("Nothing more is sent to {}.", subscription.url),
            given_up,
            "It can be activated again; what was not given up by then, which takes seconds, goes on. To make its events wait instead, pause it."
                .to_owned(),
        ],
        action: format!("/app/s/{}/deactivate", subscription.id),
        back: place(subscription.id),
        button: "Deactivate",
        is_dangerous: true,
        expected: None,
        needs: "manage",
        may: frame.may_manage(),
        in_dialog: false,
        typed: None,
    }
}

fn deletion(frame: &Frame, subscription: &SubscriptionDocument, waiting: u64) -> Confirm {
    let host = words::host(&subscription.url);
    let mut said = vec![format!(
        "Nothing more is sent to {}, what waits for it is given up, and its deliveries, attempts and numbers can no longer be seen. This cannot be \
         undone.",
        subscription.url
    )];
    match waiting {
        0 => {}
        1 => said.push("1 notification waits in line.".to_owned()),
        _ => said.push(format!("{} notifications wait in line.", frame.counted(waiting))),
    }
    said.push(
        "A replay of a subscription that is made again sends once more what this one has delivered, unless it begins at the deletion.".to_owned(),
    );
    Confirm {
        id: "delete",
        title: format!("Delete {host}"),
        said,
        action: format!("/app/s/{}/delete", subscription.id),
        back: place(subscription.id),
        button: "Delete",
        is_dangerous: true,
        expected: Some(host),
        needs: "manage",
        may: frame.may_manage(),
        in_dialog: false,
        typed: None,
    }
}

async fn ask_to_deactivate(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    let subscription = super::subscription(&app, &reseller, id).await?;
    let waiting = waiting(&app, &reseller, id).await?;
    Ok(deactivation(&frame, &subscription, waiting).page(frame))
}

async fn deactivate(State(app): State<Arc<App>>, manager: Manager, Id(id): Id) -> Result<Response, Problem> {
    let found = subscriptions::deactivate(State(app), manager, Id(id)).await?.0;
    let said = format!(
        "{} is deactivated. Nothing is sent to it.",
        words::host(&found.url)
    );
    Ok(done(&place(id), &said))
}

async fn ask_to_delete(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    let subscription = super::subscription(&app, &reseller, id).await?;
    let waiting = waiting(&app, &reseller, id).await?;
    Ok(deletion(&frame, &subscription, waiting).page(frame))
}

async fn delete(
    State(app): State<Arc<App>>,
    manager: Manager,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let subscription = super::subscription(&app, &manager, id).await?;
    let waiting = waiting(&app, &manager, id).await?;
    let mut form = deletion(&frame, &subscription, waiting);
    if !form.check(&fields) {
        return Ok(form.page(frame));
    }
    subscriptions::delete(State(app), manager, Id(id)).await?;
    let said = format!("{} is deleted.", words::host(&subscription.url));
    Ok(done(super::HOME, &said))
}

async fn confirm_email(
    State(app): State<Arc<App>>,
    manager: Manager,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let code = fields.get("code").unwrap_or_default().to_owned();
    let payload = Payload(CodePayload {
        code: Some(code.clone()),
    });
    match subscriptions::confirm_email(State(Arc::clone(&app)), manager.clone(), Id(id), payload).await {
        Ok(found) => Ok(done(&place(id), &format!("{} is confirmed.", found.0.email))),
        Err(problem) => {
            confirm::mendable(problem)?;
            let subscription = versioned(&app, &manager, id).await?;
            settings(&app, &manager, frame, subscription, (None, Some(code))).await
        }
    }
}

async fn resend_code(State(app): State<Arc<App>>, manager: Manager, Id(id): Id) -> Result<Response, Problem> {
    subscriptions::resend_code(State(app), manager, Id(id)).await?;
    Ok(done(&place(id), "The code is sent once more."))
}
