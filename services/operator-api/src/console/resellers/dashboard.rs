//! Opening the dashboard of a reseller, to see what the reseller sees, and revoking links to it that were not used yet.
//!
//! The link is on the page that answers the form and nowhere else: no redirect could carry it without it being logged, and it works once.

use std::sync::Arc;

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use http::header;
use http_api::{Id, Name, Problem};
use uuid::Uuid;

use super::place_of_reseller;
use crate::app::App;
use crate::console::access::{named, why};
use crate::console::act::{ActForm, note};
use crate::console::frame::{Frame, Page, done, segment};
use crate::console::visit::{Fields, onward};
use crate::portal_links::{self, LINK_MINUTES, VISIT_MINUTES};
use crate::request::{Operator, Viewer};

/// The page with a link that was made.
#[derive(Template)]
#[template(path = "portal_link.html")]
struct Made {
    frame: Frame,
    name: String,
    place: String,
    url: String,
    expires_at: DateTime<Utc>,
    visit_minutes: u32,
}

/// The form that makes a link.
pub(super) fn form(frame: &Frame, reseller: &str) -> ActForm {
    let place = place_of_reseller(reseller);
    ActForm {
        id: "dashboard".to_owned(),
        title: format!("See what {reseller} sees"),
        said: vec![
            format!(
                "A link to the dashboard of {reseller} is made, and shown once, on the page that follows. It works once, within {LINK_MINUTES} minutes; the visit \
                 lasts {VISIT_MINUTES} minutes."
            ),
            "The visit may look and change nothing; bodies of notifications and secrets stay closed to it. The reseller finds in its activity that the operators made a link."
                .to_owned(),
        ],
        button: "See its dashboard",
        needs_note: true,
        ..ActForm::new(frame, format!("{place}/dashboard"), place)
    }
}

pub(super) async fn ask(_: Viewer, frame: Frame, Name(name): Name) -> impl IntoResponse {
    form(&frame, &name).page(frame)
}

pub(super) async fn make(
    operator: Operator,
    frame: Frame,
    Name(name): Name,
    fields: Fields,
) -> Result<Response, Problem> {
    let made = match portal_links::create(operator, Name(name.clone()), note(&fields)).await {
        Ok((_, _, Json(made))) => made,
        Err(problem) => return form(&frame, &name).again(frame, &fields, problem),
    };
    let page = Page(Made {
        frame,
        place: place_of_reseller(&name),
        name,
        url: made.url,
        expires_at: made.expires_at,
        visit_minutes: made.visit_minutes,
    });
    Ok(([(header::CACHE_CONTROL, "no-store")], page).into_response())
}

/// Where a link is revoked, and from there back to a page.
pub(super) fn place_to_revoke(link: &Uuid, back: &str) -> String {
    format!("/console/portal-links/{link}/revoke?back={}", segment(back))
}

/// The form that revokes a link. It leads back to the page that offered it, or to all links.
fn revoke_form(frame: &Frame, id: Uuid, named: &str, back: &str) -> ActForm {
    let back = match back {
        "" => "/console/access".to_owned(),
        back => onward(Some(back)),
    };
    ActForm {
        id: "revoke".to_owned(),
        title: "Revoke a link to a dashboard".to_owned(),
        said: vec![
            format!("1 link: {named}. It opens nothing any more, which cannot be undone; another one can be made at any time."),
            "A link that was used meanwhile has begun a visit, which is ended on the page Access. The reseller finds in its activity that the link was revoked."
                .to_owned(),
        ],
        button: "Revoke the link",
        needs_note: true,
        ..ActForm::new(frame, format!("/console/portal-links/{id}/revoke"), back)
    }
}

pub(super) async fn ask_to_revoke(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    let named = named::link(&app, viewer, id).await?;
    Ok(revoke_form(&frame, id, &named, &frame.asked("back")).page(frame))
}

pub(super) async fn revoke(
    operator: Operator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let named = named::link(&operator.app, operator.viewer(), id).await?;
    let form = revoke_form(&frame, id, &named, fields.get("back").unwrap_or_default());
    let revoked = match why(&fields) {
        Ok(why) => portal_links::revoke(operator, Id(id), why).await,
        Err(problem) => Err(problem),
    };
    match revoked {
        Ok(_) => Ok(done(
            &form.back,
            "The link is revoked. It opens nothing any more.",
        )),
        Err(problem) => form.again(frame, &fields, problem),
    }
}
