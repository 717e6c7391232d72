//! `/visits`: who is signed in to the console. Administrators end the visits of others.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::key::Role;
use http::StatusCode;
use http_api::paging::{self, List};
use http_api::{FieldCode, FieldProblem, Id, Params, Problem, ProblemKind, ReadParams};
use serde::{Deserialize, Serialize};
use store::VisitView;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::note;
use crate::request::{Administrator, Viewer};

/// Longest name of a person, in bytes: a name, a subject and an issuer.
const PERSON_MAX_BYTES: usize = 2_000;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list, end_all))
        .routes(routes!(end))
}

/// Which part of the list.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct VisitParams {
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// A visit to the console that goes on.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Visit)]
pub(crate) struct VisitDocument {
    /// Its identifier.
    pub(crate) id: Uuid,
    /// How the key or the person is called.
    #[schema(example = "ada")]
    pub(crate) name: String,
    /// What it may: viewer, operator or admin.
    #[schema(example = json!(["operator"]))]
    pub(crate) roles: Vec<&'static str>,
    /// The key that it began with.
    pub(crate) key: Option<Uuid>,
    /// The provider that it began with.
    #[schema(example = "https://id.example.com")]
    pub(crate) issuer: Option<String>,
    /// Whether it began with a key although people sign in with a provider.
    pub(crate) breaks_glass: bool,
    /// When it began.
    pub(crate) began_at: DateTime<Utc>,
    /// When its person last asked for something, to the minute.
    pub(crate) last_seen_at: DateTime<Utc>,
    /// When it ends at the latest.
    pub(crate) ends_at: DateTime<Utc>,
}

impl From<VisitView> for VisitDocument {
    fn from(visit: VisitView) -> Self {
        Self {
            id: visit.id,
            name: visit.name,
            roles: visit.roles.into_iter().map(Role::as_str).collect(),
            key: visit.key,
            issuer: visit.issuer,
            breaks_glass: visit.breaks_glass,
            began_at: visit.began_at,
            last_seen_at: visit.last_seen_at,
            ends_at: visit.ends_at,
        }
    }
}

/// Lists the visits to the console that go on, the newest first.
#[utoipa::path(
    get, path = "/visits", tag = "keys", operation_id = "listVisits", security(("apiKey" = [])),
    params(VisitParams),
    responses((status = 200, description = "A part of the list.", body = List<VisitDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    ReadParams(params, mut wrong): ReadParams<VisitParams>,
) -> Result<Json<List<VisitDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let before = wrong.take(paging::read_id(params.cursor.as_deref()));
    wrong.end()?;
    let listing = app.store.list_visits(app.now(), before, limit + 1);
    let found = http_api::by(viewer.deadline, ("the visits", "read"), listing).await?;
    Ok(Json(List::by_id(
        found,
        limit,
        |visit| visit.id,
        VisitDocument::from,
    )))
}

/// Why access is taken.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Why {
    /// Why; at most 2,000 bytes.
    #[param(max_length = 2_000)]
    pub(crate) note: Option<String>,
}

/// Ends a visit. Its person has to sign in again; replicas that remember it notice within 5 seconds.
#[utoipa::path(
    delete, path = "/visits/{id}", tag = "keys", operation_id = "endVisit", security(("apiKey" = [])),
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
    let ending = app.store.end_visit_of(id, act);
    if http_api::by(admin.deadline, ("the visit", "ended"), ending).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    let detail = "no visit that goes on has this identifier";
    Err(Problem::new(ProblemKind::NOT_FOUND, detail))
}

/// Whose visits.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PersonParams {
    /// The person: the subject at the provider, the subject and the issuer with `@` between them, or the actor as the audit log has it.
    #[param(value_type = String, example = "7f3a@https://id.example")]
    pub(crate) person: Option<String>,
    /// Why; at most 2,000 bytes.
    pub(crate) note: Option<String>,
}

/// What was ended.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = VisitsEnded)]
pub(crate) struct EndedDocument {
    /// How many visits.
    pub(crate) ended: u64,
}

/// Ends every visit of a person to the console, within 5 seconds everywhere.
///
/// It does not keep the person from signing in again: that is for the provider, or for `operator.oidc.roles`. A visit that began with a key
/// ends with that key.
#[utoipa::path(
    delete, path = "/visits", tag = "keys", operation_id = "endVisits", security(("apiKey" = [])),
    params(PersonParams),
    responses((status = 200, description = "They are over.", body = EndedDocument))
)]
pub(crate) async fn end_all(
    State(app): State<Arc<App>>,
    admin: Administrator,
    Params(params): Params<PersonParams>,
) -> Result<Json<EndedDocument>, Problem> {
    let person = params.person.as_deref().map(str::trim).unwrap_or_default();
    if person.is_empty() || person.len() > PERSON_MAX_BYTES || person.contains(char::is_control) {
        let detail = format!("is needed: 1 to {PERSON_MAX_BYTES} bytes without control characters");
        return Err(Problem::fields(vec![
            FieldProblem::new("person", detail).coded(FieldCode::WrongFormat),
        ]));
    }
    let note = note::optional(params.note.as_deref())?;
    let ending = app.store.end_visits_of(person, admin.act(note, app.now()));
    let ended = http_api::by(admin.deadline, ("the visits", "ended"), ending).await?;
    app.visits.forget_all();
    Ok(Json(EndedDocument { ended }))
}
