//! How the one thing is called to which an act takes access: a person does not know it by its identifier, which stands behind.
//!
//! What is there no more has its identifier alone: the act says so by itself.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http_api::paging::{List, write_id};
use http_api::{Problem, ReadParams};
use uuid::Uuid;

use crate::app::App;
use crate::keys::{self, KeyParams};
use crate::portal_links::{self, PortalParams};
use crate::request::Viewer;
use crate::visits::{self, VisitParams};

/// The lists go down from a cursor that they leave out: what is asked for comes first behind the next greater identifier.
fn behind(id: Uuid) -> Option<String> {
    Some(write_id(Uuid::from_u128(id.as_u128().saturating_add(1))))
}

/// What is said of the first of a list, if that is what was asked for.
fn said<T>(list: List<T>, id: Uuid, own: impl Fn(&T) -> Uuid, words: impl Fn(T) -> String) -> String {
    let found = list.items.into_iter().find(|it| own(it) == id);
    found.map_or_else(|| id.to_string(), |it| format!("{}, {id}", words(it)))
}

/// An API key: its name, what it allows, and whose it is.
pub(super) async fn key(app: &Arc<App>, viewer: Viewer, id: Uuid) -> Result<String, Problem> {
    let params = KeyParams {
        role: None,
        reseller: None,
        revoked: Some(true),
        limit: Some(1),
        cursor: behind(id),
    };
    let Json(list) = keys::list(State(Arc::clone(app)), viewer, ReadParams::of(params)).await?;
    Ok(said(
        list,
        id,
        |key| key.id,
        |key| {
            let of = key.reseller_id.map(|reseller| format!(" of {reseller}"));
            format!(
                "{} ({}{})",
                key.name,
                key.roles.join(", "),
                of.unwrap_or_default()
            )
        },
    ))
}

/// A visit to the console: whose, and what it may.
pub(super) async fn visit(app: &Arc<App>, viewer: Viewer, id: Uuid) -> Result<String, Problem> {
    let params = VisitParams {
        limit: Some(1),
        cursor: behind(id),
    };
    let Json(list) = visits::list(State(Arc::clone(app)), viewer, ReadParams::of(params)).await?;
    let words = |visit: visits::VisitDocument| format!("{} ({})", visit.name, visit.roles.join(", "));
    Ok(said(list, id, |visit| visit.id, words))
}

/// A visit to the dashboard of a reseller.
pub(super) async fn portal_visit(app: &Arc<App>, viewer: Viewer, id: Uuid) -> Result<String, Problem> {
    let read = portal_links::visits(State(Arc::clone(app)), viewer, one(id));
    let Json(list) = read.await?;
    let words = |visit: portal_links::PortalVisitDocument| person(&visit.person.name, &visit.reseller_id);
    Ok(said(list, id, |visit| visit.id, words))
}

/// A link to the dashboard of a reseller.
pub(in crate::console) async fn link(app: &Arc<App>, viewer: Viewer, id: Uuid) -> Result<String, Problem> {
    let Json(list) = portal_links::list(State(Arc::clone(app)), viewer, one(id)).await?;
    let words = |link: portal_links::LinkListed| person(&link.person.name, &link.reseller_id);
    Ok(said(list, id, |link| link.id, words))
}

fn one(id: Uuid) -> ReadParams<PortalParams> {
    ReadParams::of(PortalParams {
        reseller: None,
        limit: Some(1),
        cursor: behind(id),
    })
}

fn person(name: &str, reseller: &str) -> String {
    format!("{name}, to the dashboard of {reseller}")
}
