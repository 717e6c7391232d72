//! `/keys`: who has access to the APIs. Administrators give it and take it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::key::{KeyDigest, Role, RoleConflict, format_key};
use domain::reseller::{RESELLER_ID_FORM, is_reseller_id};
use http::StatusCode;
use http::header::LOCATION;
use http_api::paging::{self, List};
use http_api::{FieldProblem, Id, Params, Payload, Problem, ProblemKind};
use rand::TryRng as _;
use rand::rngs::SysRng;
use serde::{Deserialize, Serialize};
use store::{ApiKey, KeyRevoked};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::dead_letters::filter::names;
use crate::examined::{text, word};
use crate::note;
use crate::request::{Administrator, Viewer};
use crate::visits::Why;

/// Longest name, in bytes.
const NAME_MAX_BYTES: usize = 200;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(revoke))
}

/// Which keys.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct KeyParams {
    /// With this role: ingest, viewer, operator, admin or reseller.
    pub(crate) role: Option<String>,
    /// Of this reseller.
    #[param(example = "acme")]
    pub(crate) reseller: Option<String>,
    /// Revoked ones too.
    #[param(default = false)]
    pub(crate) revoked: Option<bool>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// An API key; the key itself is not stored.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ApiKey)]
pub(crate) struct KeyDocument {
    /// Its identifier.
    pub(crate) id: Uuid,
    /// What its makers call it.
    #[schema(example = "ada")]
    pub(crate) name: String,
    /// What it allows: ingest, viewer, operator, admin or reseller.
    #[schema(example = json!(["operator"]))]
    pub(crate) roles: Vec<&'static str>,
    /// Whose it is, when its role is reseller.
    #[schema(example = "acme")]
    pub(crate) reseller_id: Option<String>,
    /// When it was made.
    pub(crate) created_at: DateTime<Utc>,
    /// When it was revoked.
    pub(crate) revoked_at: Option<DateTime<Utc>>,
}

impl From<ApiKey> for KeyDocument {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id,
            name: key.name,
            roles: key.roles.into_iter().map(Role::as_str).collect(),
            reseller_id: key.reseller_id,
            created_at: key.created_at,
            revoked_at: key.revoked_at,
        }
    }
}

/// A key that was made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ApiKeyMade)]
pub(crate) struct MadeDocument {
    /// What its holder sends as `Authorization: Bearer …`. It is answered this once, and not stored.
    #[schema(example = "pr_5b1c…")]
    pub(crate) key: String,
    /// What else is to be said of it.
    #[serde(flatten)]
    pub(crate) made: KeyDocument,
}

/// A key to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = NewApiKey)]
pub(crate) struct NewKeyPayload {
    /// Who it is for; at most 200 bytes.
    #[schema(value_type = String, max_length = 200, example = "ada")]
    pub(crate) name: Option<String>,
    /// What it allows: ingest, viewer, operator and admin, in any combination; or reseller alone.
    #[serde(default)]
    #[schema(example = json!(["operator"]))]
    pub(crate) roles: Vec<String>,
    /// Whose it is; with the role reseller, and needed there.
    #[schema(example = "acme")]
    pub(crate) reseller_id: Option<String>,
    /// Why; at most 2,000 bytes.
    #[schema(max_length = 2_000)]
    pub(crate) note: Option<String>,
}

/// Lists the API keys, the newest first.
#[utoipa::path(
    get, path = "/keys", tag = "keys", operation_id = "listKeys", security(("apiKey" = [])),
    params(KeyParams),
    responses((status = 200, description = "A part of the list.", body = List<KeyDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Params(params): Params<KeyParams>,
) -> Result<Json<List<KeyDocument>>, Problem> {
    let limit = paging::limit(params.limit)?;
    let before = paging::read_id(params.cursor.as_deref())?;
    let roles = names(&Role::ALL, Role::as_str);
    let role = word("role", params.role.as_deref(), &roles)?;
    let reseller = text("reseller", params.reseller.as_deref())?;
    let which = (role, reseller.as_deref(), params.revoked.unwrap_or_default());
    let listing = app.store.list_keys(which, before, limit + 1);
    let found = http_api::by(viewer.deadline, ("the keys", "read"), listing).await?;
    Ok(Json(List::by_id(found, limit, |key| key.id, KeyDocument::from)))
}

/// Makes an API key. The answer is the only one that holds it.
#[utoipa::path(
    post, path = "/keys", tag = "keys", operation_id = "createKey", security(("apiKey" = [])),
    request_body(content = NewKeyPayload, example = json!({"name": "ada", "roles": ["operator"]})),
    responses(
        (status = 201, description = "The key.", body = MadeDocument,
            headers(("Location" = String, description = "Where it can be revoked."))),
    )
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    admin: Administrator,
    Payload(payload): Payload<NewKeyPayload>,
) -> Result<(StatusCode, [(http::HeaderName, String); 1], Json<MadeDocument>), Problem> {
    let note = note::optional(payload.note.as_deref())?;
    let made = read(&payload, app.now())?;
    let key = generate()?;
    let digest = KeyDigest::of(&key);
    let creating = app
        .store
        .create_api_key(&made, &digest, admin.act(note, made.created_at));
    http_api::by(admin.deadline, ("the key", "made"), creating).await?;
    let location = format!("/keys/{}", made.id);
    let document = MadeDocument {
        key,
        made: made.into(),
    };
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(document)))
}

/// Revokes an API key. Services that remember it refuse it within 5 seconds.
///
/// The last key of an administrator cannot be revoked here: `postrider keys revoke` on the database does that.
#[utoipa::path(
    delete, path = "/keys/{id}", tag = "keys", operation_id = "revokeKey", security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The key's identifier."), Why),
    responses((status = 204, description = "It is revoked."))
)]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    admin: Administrator,
    Id(id): Id,
    Params(why): Params<Why>,
) -> Result<StatusCode, Problem> {
    let act = admin.act(note::optional(why.note.as_deref())?, app.now());
    let revoking = app.store.revoke_key_of_several(id, act);
    match http_api::by(admin.deadline, ("the key", "revoked"), revoking).await? {
        KeyRevoked::Done => Ok(StatusCode::NO_CONTENT),
        KeyRevoked::LastAdministrator => Err(Problem::new(
            ProblemKind::CONFLICT,
            "it is the last key of an administrator: make another one first",
        )),
        KeyRevoked::Unknown => Err(Problem::new(
            ProblemKind::NOT_FOUND,
            "no key that could be revoked has this identifier",
        )),
    }
}

fn read(payload: &NewKeyPayload, now: DateTime<Utc>) -> Result<ApiKey, Problem> {
    let mut wrong = Vec::new();
    let name = payload.name.as_deref().unwrap_or_default().trim();
    if name.is_empty() || name.len() > NAME_MAX_BYTES || name.contains(char::is_control) {
        let detail = format!("is needed: 1 to {NAME_MAX_BYTES} bytes without control characters");
        wrong.push(FieldProblem::new("name", detail));
    }
    let mut roles = Vec::new();
    for role in &payload.roles {
        match role.parse::<Role>() {
            Ok(role) => roles.push(role),
            Err(error) => wrong.push(FieldProblem::new("roles", error.to_string())),
        }
    }
    if payload.roles.is_empty() {
        let detail = format!("is needed: one or more of {}", names(&Role::ALL, Role::as_str));
        wrong.push(FieldProblem::new("roles", detail));
    }
    roles.sort_unstable();
    roles.dedup();
    let reseller = payload.reseller_id.as_deref();
    if reseller.is_some_and(|id| !is_reseller_id(id)) {
        let detail = format!("must be {RESELLER_ID_FORM}");
        wrong.push(FieldProblem::new("resellerId", detail));
    }
    let conflict = RoleConflict::of(&roles, reseller.is_some()).filter(|_| wrong.is_empty());
    wrong.extend(conflict.map(conflicting));
    if !wrong.is_empty() {
        return Err(Problem::fields(wrong));
    }
    Ok(ApiKey {
        id: Uuid::now_v7(),
        name: name.to_owned(),
        roles,
        reseller_id: reseller.map(str::to_owned),
        created_at: now,
        revoked_at: None,
    })
}

fn conflicting(conflict: RoleConflict) -> FieldProblem {
    let (field, detail) = match conflict {
        RoleConflict::WithoutReseller => ("resellerId", "is needed with the role reseller: whose key it is"),
        RoleConflict::WithoutRole => ("resellerId", "goes with the role reseller only"),
        RoleConflict::NotAlone => (
            "roles",
            "reseller cannot be combined with another role: make two keys",
        ),
    };
    FieldProblem::new(field, detail)
}

fn generate() -> Result<String, Problem> {
    let mut random = [0; 32];
    SysRng.try_fill_bytes(&mut random).map_err(|error| {
        tracing::error!(%error, "failed to get random bytes from the operating system");
        Problem::new(ProblemKind::INTERNAL, "the key could not be made")
    })?;
    Ok(format_key(&random))
}
