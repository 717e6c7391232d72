//! `/keys`: who has access to the APIs. Administrators give it and take it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use domain::key::{KeyDigest, Role, RoleConflict, can_be_limited, format_key};
use domain::reseller::{RESELLER_ID_FORM, is_reseller_id};
use domain::scope::{self, Scope};
use http::StatusCode;
use http::header::LOCATION;
use http_api::paging::{self, List};
use http_api::{FieldCode, FieldProblem, Id, Params, Payload, Problem, ProblemKind, ReadParams};
use rand::TryRng as _;
use rand::rngs::SysRng;
use serde::{Deserialize, Serialize};
use store::{Act, ApiKey, KeyRevoked, KeyRotated, SuccessorEnd};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::dead_letter_jobs::given;
use crate::dead_letters::filter::names;
use crate::examined::{text, word};
use crate::note;
use crate::request::{Administrator, Viewer};
use crate::visits::Why;

/// Longest name, in bytes.
const NAME_MAX_BYTES: usize = 200;
/// Most that a key may be allowed to hand in a second.
const PER_SECOND_MAX: u32 = 1_000_000;
/// How long a key works beside the one that it was rotated into, in hours.
const OVERLAP_HOURS: u32 = 24;
const OVERLAP_MAX_HOURS: u32 = 365 * 24;

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(revoke))
        .routes(routes!(rotate))
}

/// Which keys.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct KeyParams {
    /// With this role: ingest, viewer, operator, admin, embedder, reseller or reseller-viewer.
    pub(crate) role: Option<String>,
    /// Of this reseller.
    #[param(example = "acme")]
    pub(crate) reseller: Option<String>,
    /// Those that were revoked or have expired, too.
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
    /// What it allows: ingest, viewer, operator, admin, embedder, reseller or reseller-viewer.
    #[schema(example = json!(["operator"]))]
    pub(crate) roles: Vec<&'static str>,
    /// Whose it is, when its role is reseller or reseller-viewer.
    #[schema(example = "acme")]
    pub(crate) reseller_id: Option<String>,
    /// When it was made.
    pub(crate) created_at: DateTime<Utc>,
    /// Who made it: the name and identifier of an API key, a person, or the user of the command line. Null where the audit log has no entry of
    /// it, or none any more.
    #[schema(example = "maria (019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d)")]
    pub(crate) created_by: Option<String>,
    /// When it was revoked.
    pub(crate) revoked_at: Option<DateTime<Utc>>,
    /// Who revoked it, in the same way.
    pub(crate) revoked_by: Option<String>,
    /// When it ends by itself, or has.
    pub(crate) expires_at: Option<DateTime<Utc>>,
    /// When it was last used, to about a minute. Pages of a visit that began with it do not count.
    pub(crate) used_at: Option<DateTime<Utc>>,
    /// What a key of the role ingest is limited to; empty when to nothing.
    #[schema(example = json!({"lane": "push", "prototypes": ["Hello"]}))]
    pub(crate) scope: Scope,
    /// How many pushes and events together it may hand in a second at each replica of ingest-api, when that is limited.
    #[schema(example = 200)]
    pub(crate) per_second: Option<u32>,
    /// The first key of those that were rotated into this one. Idempotency-Keys are known under it, whichever of them is used.
    pub(crate) successor_of: Option<Uuid>,
}

impl KeyDocument {
    /// Whether it opens nothing any more.
    pub(crate) fn has_ended(&self, now: &DateTime<Utc>) -> bool {
        self.revoked_at.is_some() || self.expires_at.is_some_and(|at| at <= *now)
    }

    /// What limits it, in words.
    pub(crate) fn limits(&self) -> String {
        scope::limits(&self.scope, self.per_second)
    }
}

impl From<ApiKey> for KeyDocument {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id,
            name: key.name,
            roles: key.roles.into_iter().map(Role::as_str).collect(),
            reseller_id: key.reseller_id,
            created_at: key.created_at,
            created_by: key.created_by,
            revoked_at: key.revoked_at,
            revoked_by: key.revoked_by,
            expires_at: key.expires_at,
            used_at: key.used_at,
            scope: key.scope,
            per_second: key.per_second,
            successor_of: key.successor_of,
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

/// A key that another was rotated into.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ApiKeyRotated)]
pub(crate) struct RotatedDocument {
    /// The new key.
    #[serde(flatten)]
    pub(crate) made: MadeDocument,
    /// When the old one ends: after the overlap, or before, when it was to end before by itself.
    pub(crate) old_expires_at: DateTime<Utc>,
}

/// A key to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = NewApiKey)]
pub(crate) struct NewKeyPayload {
    /// Who it is for; at most 200 bytes.
    #[schema(value_type = String, max_length = 200, example = "ada")]
    pub(crate) name: Option<String>,
    /// What it allows: ingest, viewer, operator, admin and embedder, in any combination; or reseller or reseller-viewer alone.
    #[serde(default)]
    #[schema(example = json!(["operator"]))]
    pub(crate) roles: Vec<String>,
    /// Whose it is; with the role reseller or reseller-viewer, and needed there.
    #[schema(example = "acme")]
    pub(crate) reseller_id: Option<String>,
    /// When it ends by itself; it does not when this is left out.
    pub(crate) expires_at: Option<DateTime<Utc>>,
    /// What it may hand in, with the role ingest alone; everything when this is left out.
    #[serde(default)]
    #[schema(required = false, example = json!({"lane": "push", "prototypes": ["Hello"]}))]
    pub(crate) scope: Scope,
    /// How many pushes and events together it may hand in a second at each replica of ingest-api, with the role ingest alone.
    #[schema(minimum = 1, maximum = 1_000_000, example = 200)]
    pub(crate) per_second: Option<u32>,
    /// Why; at most 2,000 bytes.
    #[schema(max_length = 2_000)]
    pub(crate) note: Option<String>,
}

/// How a key is rotated.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(
    rename_all = "camelCase",
    default,
    deny_unknown_fields,
    expecting = "an object"
)]
#[schema(as = KeyRotation)]
pub(crate) struct RotationPayload {
    /// For how many hours the old key works beside the new one; 24 when this is left out.
    #[schema(minimum = 0, maximum = 8_760, default = 24, example = 24)]
    pub(crate) overlap_hours: Option<u32>,
    /// When the new key ends by itself; null: it does not. When this is left out, it lasts as long as the old one was made to.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<DateTime<Utc>>)]
    pub(crate) expires_at: Option<Option<DateTime<Utc>>>,
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
    ReadParams(params, mut wrong): ReadParams<KeyParams>,
) -> Result<Json<List<KeyDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let before = wrong.take(paging::read_id(params.cursor.as_deref()));
    let roles = names(&Role::ALL, Role::as_str);
    let role = wrong.take(word("role", params.role.as_deref(), &roles));
    let reseller = wrong.take(text("reseller", params.reseller.as_deref()));
    wrong.end()?;
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
    let note = note::optional(payload.note.as_deref());
    let (note, made) = note::with(note, read(&payload, app.now()))?;
    let key = generate()?;
    let digest = KeyDigest::of(&key);
    let act = admin.act(note, made.created_at);
    let creating = app.store.create_api_key(&made, &digest, act);
    http_api::by(admin.deadline, ("the key", "made"), creating).await?;
    let made = made_by(act, key, made);
    Ok((StatusCode::CREATED, location(&made), Json(made)))
}

/// A key that was made just now, as its answer tells it.
fn made_by(act: Act<'_>, key: String, made: ApiKey) -> MadeDocument {
    let made = KeyDocument {
        created_by: Some(act.by.to_owned()),
        ..made.into()
    };
    MadeDocument { key, made }
}

fn location(made: &MadeDocument) -> [(http::HeaderName, String); 1] {
    [(LOCATION, format!("/keys/{}", made.made.id))]
}

/// Rotates an API key: makes one of the same name, roles, limits and length of life, and lets the old one end when the overlap is over. The
/// answer is the only one that holds the new key. A request that is repeated because its answer was lost makes no second one: revoke the one that
/// the 409 names, and rotate again.
///
/// The last key of an administrator is not rotated into one that ends earlier than it.
///
/// To the services both are one caller: an `Idempotency-Key` that was used with the old one is known with the new one, and what a second allows is
/// for both together.
#[utoipa::path(
    post, path = "/keys/{id}/rotate", tag = "keys", operation_id = "rotateKey", security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The identifier of the key that is to end.")),
    request_body(content = RotationPayload, example = json!({"overlapHours": 24})),
    responses(
        (status = 201, description = "The new key.", body = RotatedDocument,
            headers(("Location" = String, description = "Where it can be revoked."))),
    )
)]
pub(crate) async fn rotate(
    State(app): State<Arc<App>>,
    admin: Administrator,
    Id(id): Id,
    Payload(payload): Payload<RotationPayload>,
) -> Result<(StatusCode, [(http::HeaderName, String); 1], Json<RotatedDocument>), Problem> {
    let now = app.now();
    let overlap = payload.overlap_hours.unwrap_or(OVERLAP_HOURS);
    let mut wrong: Vec<FieldProblem> = ended(payload.expires_at.flatten(), now).into_iter().collect();
    if overlap > OVERLAP_MAX_HOURS {
        let detail = format!("must be 0 to {OVERLAP_MAX_HOURS}");
        wrong.push(FieldProblem::new("overlapHours", detail).between(0, OVERLAP_MAX_HOURS));
    }
    let is_right = wrong.is_empty().then_some(());
    let rest = is_right.ok_or_else(|| Problem::fields(wrong));
    let (note, ()) = note::with(note::optional(payload.note.as_deref()), rest)?;
    let until = now + TimeDelta::hours(i64::from(overlap));
    let end = match payload.expires_at {
        None => SuccessorEnd::SameLife,
        Some(None) => SuccessorEnd::Never,
        Some(Some(at)) => SuccessorEnd::At(at),
    };
    let key = generate()?;
    let digest = KeyDigest::of(&key);
    let act = admin.act(note, now);
    let rotating = app.store.rotate_api_key(id, &digest, (until, end), act);
    match http_api::by(admin.deadline, ("the key", "rotated"), rotating).await? {
        KeyRotated::Done { into, until } => {
            let made = made_by(act, key, *into);
            let location = location(&made);
            let rotated = RotatedDocument {
                made,
                old_expires_at: until,
            };
            Ok((StatusCode::CREATED, location, Json(rotated)))
        }
        KeyRotated::Before(into) => Err(Problem::new(
            ProblemKind::CONFLICT,
            format!(
                "it was rotated before, into the key {into}: rotate that one, or revoke it first if its holder has not got it"
            ),
        )),
        KeyRotated::LastAdministrator => Err(last_administrator()),
        KeyRotated::Unknown => Err(Problem::new(
            ProblemKind::NOT_FOUND,
            "no key that could be rotated has this identifier: one that was revoked or has expired is not",
        )),
    }
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
        KeyRevoked::LastAdministrator => Err(last_administrator()),
        KeyRevoked::Unknown => {
            let known = app.store.find_key(id);
            let known = http_api::by(admin.deadline, ("the key", "read"), known).await?;
            let was = known.as_ref().and_then(ApiKey::said_of_revocation);
            let detail = was.unwrap_or_else(|| "no key that could be revoked has this identifier".to_owned());
            Err(Problem::new(ProblemKind::NOT_FOUND, detail))
        }
    }
}

fn last_administrator() -> Problem {
    Problem::new(
        ProblemKind::CONFLICT,
        "no other key of an administrator lasts as long as it: make another one first",
    )
}

fn read(payload: &NewKeyPayload, now: DateTime<Utc>) -> Result<ApiKey, Problem> {
    let mut wrong = Vec::new();
    let name = payload.name.as_deref().unwrap_or_default().trim();
    if name.is_empty() || name.len() > NAME_MAX_BYTES || name.contains(char::is_control) {
        let detail = format!("is needed: 1 to {NAME_MAX_BYTES} bytes without control characters");
        wrong.push(FieldProblem::new("name", detail).coded(FieldCode::WrongFormat));
    }
    let mut roles = Vec::new();
    for role in &payload.roles {
        match role.parse::<Role>() {
            Ok(role) => roles.push(role),
            Err(error) => {
                wrong.push(FieldProblem::new("roles", error.to_string()).coded(FieldCode::UnknownValue))
            }
        }
    }
    if payload.roles.is_empty() {
        let detail = format!("is needed: one or more of {}", names(&Role::ALL, Role::as_str));
        wrong.push(FieldProblem::new("roles", detail).coded(FieldCode::Missing));
    }
    roles.sort_unstable();
    roles.dedup();
    let reseller = payload.reseller_id.as_deref();
    if reseller.is_some_and(|id| !is_reseller_id(id)) {
        let detail = format!("must be {RESELLER_ID_FORM}");
        wrong.push(FieldProblem::new("resellerId", detail).coded(FieldCode::WrongFormat));
    }
    wrong.extend(ended(payload.expires_at, now));
    let scope = payload.scope.wrong().into_iter();
    wrong.extend(scope.map(|(field, detail)| FieldProblem::new(format!("scope.{field}"), detail)));
    if payload
        .per_second
        .is_some_and(|rate| !(1..=PER_SECOND_MAX).contains(&rate))
    {
        wrong.push(
            FieldProblem::new("perSecond", format!("must be 1 to {PER_SECOND_MAX}"))
                .between(1, PER_SECOND_MAX),
        );
    }
    let conflict = RoleConflict::of(&roles, reseller.is_some()).filter(|_| wrong.is_empty());
    wrong.extend(conflict.map(conflicting));
    if wrong.is_empty() && !can_be_limited(&roles) {
        let limits = [
            ("scope", !payload.scope.is_open()),
            ("perSecond", payload.per_second.is_some()),
        ];
        let given = limits.into_iter().filter(|(_, is_given)| *is_given);
        wrong.extend(given.map(|(field, _)| {
            FieldProblem::new(field, "goes with the role ingest alone").coded(FieldCode::Conflict)
        }));
    }
    if !wrong.is_empty() {
        return Err(Problem::fields(wrong));
    }
    Ok(ApiKey {
        expires_at: payload.expires_at,
        scope: payload.scope.clone(),
        per_second: payload.per_second,
        ..ApiKey::new(name.to_owned(), roles, reseller.map(str::to_owned), now)
    })
}

/// What is wrong with the end of a key that is made now.
fn ended(expires_at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Option<FieldProblem> {
    expires_at
        .is_some_and(|at| at <= now)
        .then(|| FieldProblem::new("expiresAt", "must be in the future").coded(FieldCode::OutOfRange))
}

fn conflicting(conflict: RoleConflict) -> FieldProblem {
    let (field, detail) = match conflict {
        RoleConflict::WithoutReseller => (
            "resellerId",
            "is needed with the role reseller or reseller-viewer: whose key it is",
        ),
        RoleConflict::WithoutRole => (
            "resellerId",
            "goes with the role reseller or reseller-viewer only",
        ),
        RoleConflict::NotAlone => (
            "roles",
            "reseller and reseller-viewer cannot be combined with another role: make two keys",
        ),
    };
    FieldProblem::new(field, detail).coded(FieldCode::Conflict)
}

fn generate() -> Result<String, Problem> {
    let mut random = [0; 32];
    SysRng.try_fill_bytes(&mut random).map_err(|error| {
        tracing::error!(%error, "failed to get random bytes from the operating system");
        Problem::new(ProblemKind::INTERNAL, "the key could not be made")
    })?;
    Ok(format_key(&random))
}
