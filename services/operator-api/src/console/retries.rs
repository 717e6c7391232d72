//! Making retries due at once that wait for their time: of a lane, of a subscription, of one push or notification. The forms, as pages and
//! inside of others, and the acts.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use explain::words;
use http_api::{Id, Name, Problem};
use uuid::Uuid;

use super::act::{ActForm, note};
use super::frame::{Frame, done_if};
use super::lanes;
use super::resellers::{place_of_subscription, subscription};
use super::visit::Fields;
use super::waiting::{place_of, subject_of};
use crate::app::App;
use crate::request::{Operator, Viewer};
use crate::retry_now::{self, RetriesNowDocument};
use crate::status::{self, LaneDocument};

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/console/lanes/{lane}/retry-now", get(ask_lane).post(lane))
        .route(
            "/console/subscriptions/{id}/retry-now",
            get(ask_subscription).post(of_subscription),
        )
        .route("/console/pushes/{id}/retry-now", get(ask_push).post(push))
        .route(
            "/console/notifications/{id}/retry-now",
            get(ask_notification).post(notification),
        )
}

/// The form about retries of what is at `place`, of which `said` tells how much it is and what becomes of it.
fn form(frame: &Frame, place: &str, said: Vec<String>, back: String) -> ActForm {
    ActForm {
        id: "retry-now".to_owned(),
        title: "Retry now".to_owned(),
        said,
        button: "Retry now",
        ..ActForm::new(frame, format!("{place}/retry-now"), back)
    }
}

/// The form for all retries of a lane; their number is missing while it cannot be found out.
pub(super) fn lane_form(lane: &'static str, document: Option<&LaneDocument>, frame: &Frame) -> ActForm {
    let ((one, many), name) = (lanes::noun(lane), lanes::title(lane).to_lowercase());
    let waits = document.map_or_else(
        || format!("How many {many} wait for a retry could not be found out."),
        |it| {
            let waits = words::of(it.retry, &format!("{one} waits"), &format!("{many} wait"));
            format!("{waits} for a retry now.")
        },
    );
    let effect = "Those that are due first are due at once, at most 1,000 of them, and sent at the pace of the lane. Each uses up one of the \
                  attempts that it has left: while what they go to is out of order, wait. What is sent cannot be undone."
        .to_owned();
    let form = form(
        frame,
        &format!("/console/lanes/{lane}"),
        vec![waits, effect],
        "/console/lanes".to_owned(),
    );
    ActForm {
        id: format!("retry-now-{lane}"),
        title: format!("Retry now on the {name}"),
        ..form
    }
}

/// The form for all retries of a subscription: how many there are, and whether there are more.
pub(super) fn subscription_form((count, more): (usize, bool), id: Uuid, frame: &Frame) -> ActForm {
    let waits = words::of(count as u64, "notification waits", "notifications wait");
    let more = if more { "More than " } else { "" };
    let said = vec![
        format!("{more}{waits} for a retry now, of the subscription {id}."),
        "Those that are due first are due at once, at most 1,000 of them, and sent at the pace of the subscription. Each uses up one of the \
         attempts that it has left. What is sent cannot be undone."
            .to_owned(),
    ];
    let place = place_of_subscription(id);
    form(frame, &place, said, place.clone())
}

/// The form for the retry of one push or notification.
pub(super) fn one_form((kind, id): (&'static str, Uuid), subject: String, frame: &Frame) -> ActForm {
    let effect = "Its next attempt is due at once, in its turn. It is one of those that it has left; none is added. What is sent cannot be \
                  undone."
        .to_owned();
    let form = form(
        frame,
        &place_of(kind, id),
        vec![subject, effect],
        format!("/console/explain/{id}"),
    );
    ActForm {
        title: format!("Retry the {kind} now"),
        ..form
    }
}

async fn ask_lane(
    app: State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Name(lane): Name,
) -> Result<Response, Problem> {
    let form = asked_lane(app, viewer, lanes::known(&lane)?, &frame).await;
    Ok(form.page(frame))
}

/// The form for all retries of a lane, with their number as it is now.
async fn asked_lane(app: State<Arc<App>>, viewer: Viewer, lane: &'static str, frame: &Frame) -> ActForm {
    let lanes = status::status(app, viewer).await.0.lanes;
    let document = lanes.iter().flatten().find(|document| document.lane == lane);
    lane_form(lane, document, frame)
}

async fn ask_subscription(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    let (_, retries) = subscription::waiting(&app, viewer, id).await?;
    Ok(subscription_form(retries, id, &frame).page(frame))
}

async fn ask_push(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    ask(&app, viewer, frame, ("push", id)).await
}

async fn ask_notification(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    ask(&app, viewer, frame, ("notification", id)).await
}

async fn ask(
    app: &App,
    viewer: Viewer,
    frame: Frame,
    (kind, id): (&'static str, Uuid),
) -> Result<Response, Problem> {
    let subject = subject_of(app, viewer, (kind, id)).await?;
    Ok(one_form((kind, id), subject, &frame).page(frame))
}

async fn lane(
    operator: Operator,
    frame: Frame,
    Name(lane): Name,
    fields: Fields,
) -> Result<Response, Problem> {
    let lane = lanes::known(&lane)?;
    let (app, viewer) = (State(Arc::clone(&operator.app)), operator.viewer());
    let answer = retry_now::lane(operator, Name(lane.to_owned()), note(&fields)).await;
    let form = match &answer {
        Ok(_) => lane_form(lane, None, &frame),
        Err(_) => asked_lane(app, viewer, lane, &frame).await,
    };
    told(form, frame, &fields, answer)
}

async fn of_subscription(
    State(app): State<Arc<App>>,
    operator: Operator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let viewer = operator.viewer();
    match retry_now::subscription(operator, Id(id), note(&fields)).await {
        Ok(Json(now)) => Ok(done_if(now.retries > 0, &place_of_subscription(id), &said(&now))),
        Err(problem) => {
            let (_, retries) = subscription::waiting(&app, viewer, id).await?;
            subscription_form(retries, id, &frame).again(frame, &fields, problem)
        }
    }
}

async fn push(operator: Operator, frame: Frame, Id(id): Id, fields: Fields) -> Result<Response, Problem> {
    let answer = retry_now::push(operator, Id(id), note(&fields)).await;
    let form = one_form(("push", id), format!("One push: {id}."), &frame);
    told(form, frame, &fields, answer)
}

async fn notification(
    operator: Operator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let answer = retry_now::notification(operator, Id(id), note(&fields)).await;
    let form = one_form(("notification", id), format!("One notification: {id}."), &frame);
    told(form, frame, &fields, answer)
}

/// Leads back to where the form was, which says what was done; or shows the form with what is wrong.
fn told(
    form: ActForm,
    frame: Frame,
    fields: &Fields,
    answer: Result<Json<RetriesNowDocument>, Problem>,
) -> Result<Response, Problem> {
    match answer {
        Ok(Json(now)) => Ok(done_if(now.retries > 0, &form.back, &said(&now))),
        Err(problem) => form.again(frame, fields, problem),
    }
}

/// What was made due, in sentences.
fn said(now: &RetriesNowDocument) -> String {
    let mut said = match now.retries {
        0 => "Nothing waits for a retry that is not due already. Nothing was changed.".to_owned(),
        1 => "1 retry is due now.".to_owned(),
        retries => format!("{} retries are due now.", words::number(retries)),
    };
    if now.more {
        said.push_str(" Others may be left: the same once more makes the next ones due.");
    }
    if now.last_attempt == Some(true) {
        said.push_str(" The attempt is its last.");
    }
    if !now.still_paused.is_empty() {
        said.push_str(&format!(
            " It waits all the same: {}.",
            now.still_paused.join(", and ")
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_due_is_said_with_what_keeps_it_from_being_sent() {
        let now = |retries, more, last_attempt, paused: &[&str]| RetriesNowDocument {
            retries,
            more,
            still_paused: paused.iter().map(|pause| (*pause).to_owned()).collect(),
            last_attempt,
        };
        assert_eq!(
            said(&now(1_000, true, None, &[])),
            "1,000 retries are due now. Others may be left: the same once more makes the next ones due."
        );
        assert_eq!(
            said(&now(1, false, Some(true), &["the lane is paused", "so is acme"])),
            "1 retry is due now. The attempt is its last. It waits all the same: the lane is paused, and so is acme."
        );
        assert!(said(&now(0, false, None, &[])).ends_with("Nothing was changed."));
    }
}
