//! `/console/access`: who has access, by keys and by visits, and giving it and taking it.
//!
//! A key is shown once, on the page that answers the form: no redirect could carry it, and nothing keeps it.

mod export;
pub(super) mod named;
mod taken;

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use chrono::{DateTime, TimeDelta, Utc};
use domain::key::Role;
use domain::lane::Lane;
use domain::scope::Scope;
use http::{HeaderValue, header};
use http_api::paging::List;
use http_api::{FieldProblem, Id, Params, Payload, Problem, ReadParams};
use uuid::Uuid;

use super::act::{ActForm, Asked, needed_note};
use super::frame::{Frame, Page};
use super::visit::Fields;
use crate::app::App;
use crate::keys::{self, KeyDocument, KeyParams, MadeDocument, NewKeyPayload, RotationPayload};
use crate::portal_links::{self, LinkListed, PortalParams, PortalVisitDocument};
use crate::request::{Administrator, Viewer};
use crate::visits::{self, VisitDocument, VisitParams, Why};

const HERE: &str = "/console/access";
/// The fields of the form that filters keys.
const FIELDS: [&str; 2] = ["role", "reseller"];
/// How many links and visits to resellers' dashboards are shown.
const OF_RESELLERS: u32 = 50;
/// What each role may do here.
const ROLES: [(&str, &str); 3] = [
    (
        "viewer",
        "Look at everything: status, dead letters, jobs, subscriptions, the audit log.",
    ),
    (
        "operator",
        "The same, and mend it: replay, discard, pause, resume, cancel, rescue, rebuild.",
    ),
    (
        "admin",
        "Everything of the house: the same, decide quota requests, set limits, give and take access.",
    ),
];

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(HERE, get(page))
        .route("/console/access/keys", get(ask_for_key).post(make))
        .route("/console/access/keys/export", get(export::of_keys))
        .route("/console/access/visits/export", get(export::of_visits))
        .route(
            "/console/access/portal-visits/export",
            get(export::of_portal_visits),
        )
        .route(
            "/console/access/portal-links/export",
            get(export::of_portal_links),
        )
        .route(
            "/console/access/keys/{id}/rotate",
            get(ask_to_rotate).post(rotate),
        )
        .merge(taken::routes())
}

#[derive(Template)]
#[template(path = "access.html")]
struct Access {
    frame: Frame,
    keys: List<KeyDocument>,
    visits: List<VisitDocument>,
    /// Those to the dashboards of resellers.
    portal_visits: List<PortalVisitDocument>,
    links: List<LinkListed>,
    form: ActForm,
}

impl Access {
    fn roles(&self) -> &'static [(&'static str, &'static str)] {
        &ROLES
    }

    /// The lists of the page as files.
    fn files(&self) -> [export::Written; 4] {
        export::files(&self.frame)
    }

    /// Whether keys that were revoked or have expired are shown as well.
    fn shows_ended(&self) -> bool {
        self.frame.asked("revoked") == "true"
    }

    /// The roles that a key may have.
    fn key_roles(&self) -> [&'static str; Role::ALL.len()] {
        Role::ALL.map(Role::as_str)
    }

    /// Whether keys are left out by what they allow or by whose they are.
    fn is_filtered(&self) -> bool {
        FIELDS.iter().any(|field| !self.frame.asked(field).is_empty())
    }

    /// The page with no key left out for that.
    fn unfiltered(&self) -> String {
        self.frame.without(&FIELDS)
    }
}

/// The page that shows a key that was made.
#[derive(Template)]
#[template(path = "access_key.html")]
struct Made {
    frame: Frame,
    key: String,
    name: String,
    roles: String,
}

async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    mut frame: Frame,
    Params(params): Params<KeyParams>,
) -> Result<impl IntoResponse, Problem> {
    let first = ReadParams::of(VisitParams {
        limit: Some(200),
        cursor: None,
    });
    let of_resellers = || {
        ReadParams::of(PortalParams {
            limit: Some(OF_RESELLERS),
            ..PortalParams::default()
        })
    };
    let app = || State(Arc::clone(&app));
    // What is wrong with a filter is said at its field, beside the other lists.
    let listed = async { Ok::<_, Problem>(keys::list(app(), viewer, ReadParams::of(params)).await) };
    let (listed, Json(visits), Json(portal_visits), Json(links)) = tokio::try_join!(
        listed,
        visits::list(app(), viewer, first),
        portal_links::visits(app(), viewer, of_resellers()),
        portal_links::list(app(), viewer, of_resellers()),
    )?;
    let keys = frame.filtered(listed.map(|list| list.0), &FIELDS)?;
    let answered = frame.list_status();
    let page = Access {
        form: key_form(&frame).in_dialog(),
        keys: keys.unwrap_or_else(|| List::new(Vec::new(), None)),
        visits,
        portal_visits,
        links,
        frame,
    };
    Ok((answered, Page(page)))
}

fn key_form(frame: &Frame) -> ActForm {
    let roles = Role::ALL.iter().map(|role| {
        let name = role.as_str();
        (name.to_owned(), name.to_owned())
    });
    let both = (String::new(), "both".to_owned());
    let lanes = Lane::ALL.iter().map(|lane| {
        let name = lane.as_str();
        (name.to_owned(), name.to_owned())
    });
    let form = ActForm {
        id: "key".to_owned(),
        title: "Make a key".to_owned(),
        said: vec![
            "The key is shown once, on the page that follows.".to_owned(),
            "A key of the role ingest alone can be limited to a lane, prototypes, resellers, event types and a pace; what is empty limits nothing.".to_owned(),
        ],
        button: "Make a key",
        fields: vec![
            Asked {
                name: "called",
                label: "Who it is for",
                hint: "A name, which the audit log shows with what is done with it.".to_owned(),
                ..Asked::default()
            },
            Asked {
                name: "roles",
                label: "What it allows",
                choices: roles.collect(),
                is_several: true,
                ..Asked::default()
            },
            Asked {
                name: "resellerId",
                label: "Reseller",
                hint: "With the role reseller or reseller-viewer: whose key it is.".to_owned(),
                ..Asked::default()
            },
            Asked {
                name: "days",
                label: "Days",
                hint: "After so many days it ends by itself; without a number it does not.".to_owned(),
                ..Asked::default()
            },
            Asked {
                name: "lane",
                label: "Lane",
                choices: std::iter::once(both).chain(lanes).collect(),
                ..Asked::default()
            },
            Asked {
                name: "prototypes",
                label: "Prototypes",
                hint: "Pushes of these message prototypes, with commas between them.".to_owned(),
                ..Asked::default()
            },
            Asked {
                name: "resellers",
                label: "Resellers",
                hint: "Events of these resellers, with commas between them.".to_owned(),
                ..Asked::default()
            },
            Asked {
                name: "eventTypes",
                label: "Event types",
                hint: "Events of these types, such as domain.created or domain.*, with commas between them."
                    .to_owned(),
                ..Asked::default()
            },
            Asked {
                name: "perSecond",
                label: "Pace",
                hint: "So many pushes and events together a second, at each replica of ingest-api.".to_owned(),
                ..Asked::default()
            },
        ],
        ..ActForm::new(frame, "/console/access/keys".to_owned(), HERE.to_owned())
    };
    form.of_administrators(frame)
}

async fn ask_for_key(_: Viewer, frame: Frame) -> Response {
    key_form(&frame).page(frame)
}

async fn make(
    State(app): State<Arc<App>>,
    admin: Administrator,
    frame: Frame,
    fields: Fields,
) -> Result<Response, Problem> {
    let field = |name| fields.get(name).map(str::to_owned);
    let asked = || {
        Ok(NewKeyPayload {
            name: field("called"),
            roles: fields.all("roles"),
            reseller_id: field("resellerId"),
            expires_at: after_days(&app, &fields)?,
            scope: scope(&fields)?,
            per_second: fields.parse("perSecond", "a number")?,
            note: field("note"),
        })
    };
    let payload = match asked() {
        Ok(payload) => payload,
        Err(problem) => return key_form(&frame).again(frame, &fields, problem),
    };
    match keys::create(State(app), admin, Payload(payload)).await {
        Ok((_, _, Json(made))) => Ok(shown_once(frame, made)),
        Err(problem) => {
            let wrong = problem.errors().iter().cloned().map(|mut wrong| {
                let called = match &*wrong.field {
                    // The form's field of a name is for what has to be typed.
                    "name" => Some("called"),
                    "scope" => Some("lane"),
                    field => field.strip_prefix("scope."),
                };
                if let Some(called) = called.map(str::to_owned) {
                    wrong.field = called.into();
                }
                wrong
            });
            let problem = match problem.errors() {
                [] => problem,
                _ => Problem::fields(wrong.collect()),
            };
            key_form(&frame).again(frame, &fields, problem)
        }
    }
}

/// What a key is limited to.
fn scope(fields: &Fields) -> Result<Scope, Problem> {
    let list = |name| {
        let entries = fields.get(name).unwrap_or_default().split(',').map(str::trim);
        let entries = entries.filter(|entry| !entry.is_empty());
        entries.map(str::to_owned).collect()
    };
    Ok(Scope {
        lane: fields.parse("lane", "push or reseller")?,
        prototypes: list("prototypes"),
        resellers: list("resellers"),
        event_types: list("eventTypes"),
    })
}

/// The page with a key that was made.
fn shown_once(frame: Frame, made: MadeDocument) -> Response {
    let page = Page(Made {
        frame,
        key: made.key,
        name: made.made.name,
        roles: made.made.roles.join(", "),
    });
    let mut response = page.into_response();
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, no_store);
    response
}

/// When a key ends that is to last so many days.
fn after_days(app: &App, fields: &Fields) -> Result<Option<DateTime<Utc>>, Problem> {
    const MUST: &str = "a number of days from 1 to 3,650";
    let days: Option<u16> = fields.parse("days", MUST)?;
    match days {
        Some(days) if !(1..=3_650).contains(&days) => {
            let detail = format!("must be {MUST}");
            Err(Problem::fields(vec![FieldProblem::new("days", detail)]))
        }
        days => Ok(days.map(|days| app.now() + TimeDelta::days(i64::from(days)))),
    }
}

/// What is chosen for a new key that does not end by itself, though the old one may.
const NEVER: &str = "never";

/// The form to rotate a key.
fn rotate_form(frame: &Frame, id: Uuid, named: &str) -> ActForm {
    let form = ActForm {
        id: "rotate".to_owned(),
        title: "Rotate a key".to_owned(),
        said: vec![
            format!(
                "1 key: {named}. One of the same name, roles, limits and length of life is made, and shown once, on the page that follows."
            ),
            "The old one ends after the overlap, and with it the visits that began with it.".to_owned(),
        ],
        button: "Rotate",
        fields: vec![
            Asked {
                name: "overlapHours",
                label: "Overlap",
                hint: "For how many hours the old key works beside the new one: 0 to 8,760.".to_owned(),
                value: "24".to_owned(),
                ..Asked::default()
            },
            Asked {
                name: "days",
                label: "Days",
                hint: "After so many days the new key ends by itself, instead.".to_owned(),
                ..Asked::default()
            },
            Asked {
                name: "end",
                label: "End",
                hint: "Where no number of days is given.".to_owned(),
                choices: vec![
                    (
                        String::new(),
                        "it lasts as long as the old one was made to".to_owned(),
                    ),
                    (NEVER.to_owned(), "it does not end by itself".to_owned()),
                ],
                ..Asked::default()
            },
        ],
        ..ActForm::new(frame, format!("{HERE}/keys/{id}/rotate"), HERE.to_owned())
    };
    form.of_administrators(frame)
}

async fn ask_to_rotate(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
    Id(id): Id,
) -> Result<Response, Problem> {
    let named = named::key(&app, viewer, id).await?;
    Ok(rotate_form(&frame, id, &named).page(frame))
}

async fn rotate(
    State(app): State<Arc<App>>,
    admin: Administrator,
    frame: Frame,
    Id(id): Id,
    fields: Fields,
) -> Result<Response, Problem> {
    let viewer = admin.viewer();
    let asked = || {
        Ok(RotationPayload {
            overlap_hours: fields.parse("overlapHours", "a number of hours")?,
            expires_at: match after_days(&app, &fields)? {
                None if fields.get("end") != Some(NEVER) => None,
                at => Some(at),
            },
            note: fields.get("note").map(str::to_owned),
        })
    };
    let payload = match asked() {
        Ok(payload) => payload,
        Err(problem) => {
            let named = named::key(&app, viewer, id).await?;
            return rotate_form(&frame, id, &named).again(frame, &fields, problem);
        }
    };
    match keys::rotate(State(Arc::clone(&app)), admin, Id(id), Payload(payload)).await {
        Ok((_, _, Json(rotated))) => Ok(shown_once(frame, rotated.made)),
        Err(problem) => {
            let named = named::key(&app, viewer, id).await?;
            rotate_form(&frame, id, &named).again(frame, &fields, problem)
        }
    }
}

/// Why access is taken.
pub(super) fn why(fields: &Fields) -> Result<Params<Why>, Problem> {
    let note = needed_note(fields)?.0.note;
    Ok(Params(Why { note }))
}
