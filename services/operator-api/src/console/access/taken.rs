//! Taking access: revoking keys, and ending visits to the console and to dashboards of resellers.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http_api::{Id, Problem};
use uuid::Uuid;

use super::named::{key, portal_visit, visit};
use super::{HERE, why};
use crate::app::App;
use crate::console::act::ActForm;
use crate::console::frame::{Frame, done};
use crate::console::visit::Fields;
use crate::request::{Administrator, Viewer};
use crate::{keys, portal_links, visits};

/// The form to revoke a key.
fn revoke_form(frame: &Frame, id: Uuid, named: &str) -> ActForm {
    let form = ActForm {
        id: "revoke".to_owned(),
        title: "Revoke a key".to_owned(),
        said: vec![
            format!(
                "1 key: {named}. Services refuse it within seconds, and the visits that began with it are over."
            ),
            "This cannot be undone: another key has to be made.".to_owned(),
        ],
        button: "Revoke",
        is_dangerous: true,
        ..ActForm::new(frame, format!("{HERE}/keys/{id}/revoke"), HERE.to_owned())
    };
    form.of_administrators(frame)
}

pub(super) async fn ask_to_revoke(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    let named = key(&app, viewer, id).await?;
    Ok(revoke_form(&frame, id, &named).page(frame))
}

pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    admin: Administrator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let viewer = admin.viewer();
    let revoked = match why(&fields) {
        Ok(why) => keys::revoke(State(Arc::clone(&app)), admin, Id(id), why).await,
        Err(problem) => Err(problem),
    };
    match revoked {
        Ok(_) => Ok(done(
            HERE,
            "The key is revoked. Services that remember it refuse it within seconds.",
        )),
        Err(problem) => {
            let named = key(&app, viewer, id).await?;
            revoke_form(&frame, id, &named).again(frame, &fields, problem)
        }
    }
}

/// The form to end a visit.
fn end_form(frame: &Frame, id: Uuid, named: &str) -> ActForm {
    let form = ActForm {
        id: "end".to_owned(),
        title: "End a visit".to_owned(),
        said: vec![format!(
            "1 visit: {named}. Its person has to sign in again, and can: to keep a person away, revoke the key, or take the role at the provider."
        )],
        button: "End the visit",
        is_dangerous: true,
        ..ActForm::new(frame, format!("{HERE}/visits/{id}/end"), HERE.to_owned())
    };
    form.of_administrators(frame)
}

pub(super) async fn ask_to_end(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    let named = visit(&app, viewer, id).await?;
    Ok(end_form(&frame, id, &named).page(frame))
}

pub(super) async fn end(
    State(app): State<Arc<App>>,
    admin: Administrator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let viewer = admin.viewer();
    let ended = match why(&fields) {
        Ok(why) => visits::end(State(Arc::clone(&app)), admin, Id(id), why).await,
        Err(problem) => Err(problem),
    };
    match ended {
        Ok(_) => Ok(done(
            HERE,
            "The visit is over. Its person has to sign in again within seconds.",
        )),
        Err(problem) => {
            let named = visit(&app, viewer, id).await?;
            end_form(&frame, id, &named).again(frame, &fields, problem)
        }
    }
}

/// The form to end a visit to the dashboard of a reseller.
fn end_portal_form(frame: &Frame, id: Uuid, named: &str) -> ActForm {
    let form = ActForm {
        id: "end-portal".to_owned(),
        title: "End a visit to a dashboard".to_owned(),
        said: vec![format!(
            "1 visit: {named}. Its open pages are refused within seconds. Its person can come again with another link: to prevent that, revoke the key that makes them."
        )],
        button: "End the visit",
        is_dangerous: true,
        ..ActForm::new(frame, format!("{HERE}/portal-visits/{id}/end"), HERE.to_owned())
    };
    form.of_administrators(frame)
}

pub(super) async fn ask_to_end_portal(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    let named = portal_visit(&app, viewer, id).await?;
    Ok(end_portal_form(&frame, id, &named).page(frame))
}

pub(super) async fn end_portal(
    State(app): State<Arc<App>>,
    admin: Administrator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let viewer = admin.viewer();
    let ended = match why(&fields) {
        Ok(why) => portal_links::end(State(Arc::clone(&app)), admin, Id(id), why).await,
        Err(problem) => Err(problem),
    };
    match ended {
        Ok(_) => Ok(done(
            HERE,
            "The visit is over. Its open pages are refused within seconds.",
        )),
        Err(problem) => {
            let named = portal_visit(&app, viewer, id).await?;
            end_portal_form(&frame, id, &named).again(frame, &fields, problem)
        }
    }
}
