//! What resellers' dashboards are opened with: `/portal-links`; and who is in them: `/portal-visits`.
//!
//! An operator makes a link to see what the reseller sees. It deliberately allows nothing beside looking: what a reseller keeps to itself, such as
//! the bodies of its notifications, is opened by the reseller's own key and by an embedder's alone.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use domain::capability::Capability;
use domain::key::{KeyDigest, format_token};
use domain::reseller::{RESELLER_ID_FORM, is_reseller_id};
use http::{HeaderName, StatusCode, header};
use http_api::paging::{self, List};
use http_api::{Id, Name, Params, Payload, Problem, ProblemKind, ReadParams};
use serde::{Deserialize, Serialize};
use store::{EndVisits, NewPortalLink, PortalLinkView, PortalVisit};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::examined::text;
use crate::note::{self, Note, NotePayload};
use crate::request::{Administrator, Operator, Viewer};
use crate::visits::Why;

/// How long a link can be used, in minutes, and how long its visit lasts.
pub(crate) const LINK_MINUTES: i64 = 5;
pub(crate) const VISIT_MINUTES: u32 = 60;
/// What operators are called in a dashboard: to a reseller they have no names.
const PERSON: (&str, &str) = ("operator", "the operators of the platform");
/// Where a visit begins.
const LANDING: &str = "/app";

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(create))
        .routes(routes!(list))
        .routes(routes!(revoke))
        .routes(routes!(visits))
        .routes(routes!(end))
}

/// A link that was made.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PortalLink)]
pub(crate) struct LinkDocument {
    /// Its identifier.
    pub(crate) id: Uuid,
    /// What to open. It is shown once, and opens one visit.
    #[schema(example = "https://notifications.example/app/enter#t=prl_5f0c81a9")]
    pub(crate) url: String,
    /// Until when it can be used: 5 minutes.
    pub(crate) expires_at: DateTime<Utc>,
    /// How long the visit lasts that it opens, in minutes.
    #[schema(example = 60)]
    pub(crate) visit_minutes: u32,
}

/// Makes a link that opens the dashboard of a reseller once, to see what the reseller sees.
///
/// The visit may look and nothing else; bodies and secrets stay closed to it. It lasts 60 minutes, and ends sooner with the API key that made the link
/// or by `DELETE /portal-visits/{id}`. The reseller finds in its activity that the operators made a link, and the visit in its list of visits.
///
/// The link begins with `portal.publicUrl`; without one there is none to make.
#[utoipa::path(
    post, path = "/resellers/{reseller}/portal-links", tag = "portal visits", operation_id = "createPortalLink",
    security(("apiKey" = [])),
    params(("reseller" = String, Path, description = "Whose dashboard it opens.", example = "acme")),
    request_body = NotePayload,
    responses((status = 201, description = "The link.", body = LinkDocument))
)]
pub(crate) async fn create(
    operator: Operator,
    Name(reseller): Name,
    Payload(body): Note,
) -> Result<(StatusCode, [(HeaderName, &'static str); 1], Json<LinkDocument>), Problem> {
    let note = body.required()?;
    if !is_reseller_id(&reseller) {
        let detail = format!("no reseller is called so: an identifier is {RESELLER_ID_FORM}");
        return Err(Problem::new(ProblemKind::NOT_FOUND, detail));
    }
    let app = &operator.app;
    let base = base(app)?;
    let act = operator.act(Some(note));
    let link = link(reseller, operator.key(), &act);
    let token = format_token("prl_", &rand::random());
    let digest = KeyDigest::of(&token);
    let creating = app.store.create_portal_link(&link, &digest, act);
    http_api::by(operator.deadline, ("the link", "stored"), creating).await?;
    let document = LinkDocument {
        id: link.id,
        url: format!("{base}/app/enter#t={token}"),
        expires_at: link.expires_at,
        visit_minutes: link.visit_minutes,
    };
    let not_kept = [(header::CACHE_CONTROL, "no-store")];
    Ok((StatusCode::CREATED, not_kept, Json(document)))
}

/// Where browsers reach the dashboards. This service knows it by the configuration alone.
fn base(app: &App) -> Result<&str, Problem> {
    let portal = &app.config.portal;
    let refused = |detail: &'static str| Err(Problem::new(ProblemKind::CONFLICT, detail));
    match &portal.public_url {
        _ if !portal.app => refused("the dashboards of resellers are switched off by portal.app"),
        Some(base) => Ok(base.as_str()),
        None => refused(
            "portal.publicUrl is not set: a link begins with where browsers reach the reseller portal",
        ),
    }
}

fn link(reseller: String, key: Option<Uuid>, act: &store::Act<'_>) -> NewPortalLink {
    let (person_id, person_name) = PERSON;
    NewPortalLink {
        id: Uuid::now_v7(),
        reseller_id: reseller,
        person_id: person_id.to_owned(),
        person_name: person_name.to_owned(),
        capabilities: Vec::new(),
        key,
        operator: Some(act.by.to_owned()),
        expires_at: act.at + TimeDelta::minutes(LINK_MINUTES),
        visit_minutes: VISIT_MINUTES,
        landing: LANDING.to_owned(),
        parent_origin: None,
        return_url: None,
        theme: None,
        locale: None,
        time_zone: None,
        authenticated_at: None,
    }
}

/// Of whom, and which part of the list.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PortalParams {
    /// Of this reseller; of all when it is left out.
    #[param(example = "acme")]
    pub(crate) reseller: Option<String>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// Whom a link is for, as the one calls it who made the link.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PortalPerson)]
pub(crate) struct PersonDocument {
    /// What tells the person from others of the reseller.
    #[schema(example = "user-17")]
    pub(crate) id: String,
    /// What the person is called.
    #[schema(example = "Anna Ozola")]
    pub(crate) name: String,
}

/// A link that was made, without what opens it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PortalLinkListed)]
pub(crate) struct LinkListed {
    /// Its identifier.
    pub(crate) id: Uuid,
    /// Whose dashboard it opens.
    #[schema(example = "acme")]
    pub(crate) reseller_id: String,
    /// Whom it is for.
    pub(crate) person: PersonDocument,
    /// What its visit may do beside looking.
    pub(crate) capabilities: Vec<Capability>,
    /// The operator who made it, as the audit log calls it; null of a reseller's own and of an embedder's.
    #[schema(example = "ada (019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d)")]
    pub(crate) operator: Option<String>,
    /// The key that made it; null of an operator who had signed in with a provider.
    pub(crate) key_id: Option<Uuid>,
    /// When it was made.
    pub(crate) created_at: DateTime<Utc>,
    /// Until when it can be used.
    pub(crate) expires_at: DateTime<Utc>,
    /// When it was used, which it is once; null when it was not.
    pub(crate) used_at: Option<DateTime<Utc>>,
}

impl LinkListed {
    /// Who made it, in words.
    pub(crate) fn maker(&self) -> String {
        maker(self.operator.as_deref(), self.key_id)
    }
}

/// An operator, or the key of a reseller or of an embedder.
fn maker(operator: Option<&str>, key: Option<Uuid>) -> String {
    match (operator, key) {
        (Some(operator), _) => operator.to_owned(),
        (None, Some(key)) => format!("the key {key}"),
        (None, None) => String::new(),
    }
}

impl From<PortalLinkView> for LinkListed {
    fn from(link: PortalLinkView) -> Self {
        Self {
            id: link.id,
            reseller_id: link.reseller_id,
            person: PersonDocument {
                id: link.person_id,
                name: link.person_name,
            },
            capabilities: link.capabilities,
            operator: link.operator,
            key_id: link.key,
            created_at: link.created_at,
            expires_at: link.expires_at,
            used_at: link.used_at,
        }
    }
}

/// Lists the links to resellers' dashboards that operators, resellers and embedders have made, the newest first. They are kept for a week after they end.
#[utoipa::path(
    get, path = "/portal-links", tag = "portal visits", operation_id = "listPortalLinks", security(("apiKey" = [])),
    params(PortalParams),
    responses((status = 200, description = "A part of the list.", body = List<LinkListed>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    ReadParams(params, mut wrong): ReadParams<PortalParams>,
) -> Result<Json<List<LinkListed>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let before = wrong.take(paging::read_id(params.cursor.as_deref()));
    let reseller = wrong.take(text("reseller", params.reseller.as_deref()));
    wrong.end()?;
    let listing = app
        .store
        .list_portal_links(reseller.as_deref(), before, limit + 1);
    let found = http_api::by(viewer.deadline, ("the links", "read"), listing).await?;
    Ok(Json(List::by_id(found, limit, |link| link.id, LinkListed::from)))
}

/// The links to the dashboard of a reseller that can still be used.
pub(crate) async fn usable(app: &App, viewer: Viewer, reseller: &str) -> Result<Vec<LinkListed>, Problem> {
    let listing = app.store.list_usable_portal_links(reseller, app.now());
    let found = http_api::by(viewer.deadline, ("the links", "read"), listing).await?;
    Ok(found.into_iter().map(LinkListed::from).collect())
}

/// Revokes a link to the dashboard of a reseller that can still be used.
///
/// A visit that a link has begun is ended by `DELETE /portal-visits/{id}`. Another link can be made at any time: to prevent that, revoke the key that makes them.
#[utoipa::path(
    delete, path = "/portal-links/{id}", tag = "portal visits", operation_id = "revokePortalLink",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The link."), Why),
    responses((status = 204, description = "It opens nothing any more."))
)]
pub(crate) async fn revoke(
    operator: Operator,
    Id(id): Id,
    Params(why): Params<Why>,
) -> Result<StatusCode, Problem> {
    let act = operator.act(note::optional(why.note.as_deref())?);
    let revoking = operator.app.store.revoke_portal_link(id, act);
    if http_api::by(operator.deadline, ("the link", "revoked"), revoking).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    let detail = "no link that can still be used has this identifier";
    Err(Problem::new(ProblemKind::NOT_FOUND, detail))
}

/// A visit to the dashboard of a reseller that goes on.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PortalVisit)]
pub(crate) struct PortalVisitDocument {
    /// Its identifier.
    pub(crate) id: Uuid,
    /// Whose dashboard it is in.
    #[schema(example = "acme")]
    pub(crate) reseller_id: String,
    /// Who visits.
    pub(crate) person: PersonDocument,
    /// What it may do beside looking.
    pub(crate) capabilities: Vec<Capability>,
    /// The operator who looks, as the audit log calls it; null of a person of the reseller.
    #[schema(example = "ada (019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d)")]
    pub(crate) operator: Option<String>,
    /// The key that made its link; null of an operator who had signed in with a provider.
    pub(crate) key_id: Option<Uuid>,
    /// When it began.
    pub(crate) began_at: DateTime<Utc>,
    /// When a page was last asked for, to the minute.
    pub(crate) last_seen_at: DateTime<Utc>,
    /// When it ends at the latest.
    pub(crate) ends_at: DateTime<Utc>,
}

impl PortalVisitDocument {
    /// Who made its link, in words.
    pub(crate) fn link_maker(&self) -> String {
        maker(self.operator.as_deref(), self.key_id)
    }
}

impl From<PortalVisit> for PortalVisitDocument {
    fn from(visit: PortalVisit) -> Self {
        Self {
            id: visit.id,
            reseller_id: visit.reseller_id,
            person: PersonDocument {
                id: visit.person_id,
                name: visit.person_name,
            },
            capabilities: visit.capabilities,
            operator: visit.operator,
            key_id: visit.key,
            began_at: visit.began_at,
            last_seen_at: visit.last_seen_at,
            ends_at: visit.ends_at,
        }
    }
}

/// Lists the visits to resellers' dashboards that go on, the newest first.
#[utoipa::path(
    get, path = "/portal-visits", tag = "portal visits", operation_id = "listPortalVisits", security(("apiKey" = [])),
    params(PortalParams),
    responses((status = 200, description = "A part of the list.", body = List<PortalVisitDocument>))
)]
pub(crate) async fn visits(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    ReadParams(params, mut wrong): ReadParams<PortalParams>,
) -> Result<Json<List<PortalVisitDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let before = wrong.take(paging::read_id(params.cursor.as_deref()));
    let reseller = wrong.take(text("reseller", params.reseller.as_deref()));
    wrong.end()?;
    let of = (reseller.as_deref(), None);
    let listing = app.store.list_portal_visits(of, before, limit + 1, app.now());
    let found = http_api::by(viewer.deadline, ("the visits", "read"), listing).await?;
    let document = PortalVisitDocument::from;
    Ok(Json(List::by_id(found, limit, |visit| visit.id, document)))
}

/// Ends a visit to the dashboard of a reseller. Pages that are open are refused within 5 seconds.
///
/// It does not keep the person from coming again with another link: for that, revoke the key that makes them.
#[utoipa::path(
    delete, path = "/portal-visits/{id}", tag = "portal visits", operation_id = "endPortalVisit",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The visit."), Why),
    responses((status = 204, description = "It is over."))
)]
pub(crate) async fn end(
    State(app): State<Arc<App>>,
    admin: Administrator,
    Id(id): Id,
    Params(why): Params<Why>,
) -> Result<StatusCode, Problem> {
    let act = admin.act(note::optional(why.note.as_deref())?, app.now());
    let ending = app.store.end_portal_visits(None, EndVisits::One(id), act);
    if http_api::by(admin.deadline, ("the visit", "ended"), ending).await? > 0 {
        return Ok(StatusCode::NO_CONTENT);
    }
    let detail = "no visit that goes on has this identifier";
    Err(Problem::new(ProblemKind::NOT_FOUND, detail))
}
