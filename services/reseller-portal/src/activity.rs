//! Who did what, which states a subscription has had, and which mails went out: `/activity`, `/subscriptions/{id}/states`, `/mails`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::reason::StateReason;
use domain::subscription::SubscriptionState;
use http_api::paging::{self, List};
use http_api::{FieldCode, Id, Problem, ReadParams};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::AuditView;
use store::webhook::{ActivityFilter, ActsOf, ResellerMail, StateEntry, ending_of_visitors};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::request::{PartParams, Reseller};

/// Longest action that is looked for, in bytes.
const ACTION_MAX_BYTES: usize = 64;

/// Which part of what was done.
#[derive(Default, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ActivityParams {
    /// Of this action, such as secret.view; a kind of things, such as secret, stands for all actions on them, and the beginning of a word, such as
    /// pause, for all that have such a word. What means no action is refused.
    #[param(example = "subscription")]
    pub(crate) action: Option<String>,
    /// Of YOU, of OPERATOR, or of one `name` of yours, as the entries have it.
    #[param(example = "OPERATOR")]
    pub(crate) by: Option<String>,
    /// From this time on.
    pub(crate) since: Option<DateTime<Utc>>,
    /// Before this time.
    pub(crate) until: Option<DateTime<Utc>>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// Something that was done.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Activity)]
pub(crate) struct ActivityDocument {
    /// Its identifier.
    pub(crate) id: Uuid,
    /// When.
    pub(crate) at: DateTime<Utc>,
    /// YOU, for what was done with a key of yours or in a visit to your dashboard, or OPERATOR, for what the operators of Postrider did.
    #[schema(value_type = String, example = "YOU")]
    pub(crate) by: &'static str,
    /// The name of the key, or the person who visited; null for the operators.
    #[schema(example = "integration (019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d)")]
    pub(crate) name: Option<String>,
    /// What was done: a kind of thing and a verb.
    #[schema(example = "subscription.pause")]
    pub(crate) action: String,
    /// To which subscription; null when it was something else.
    pub(crate) subscription_id: Option<Uuid>,
    /// To which notification; null when it was something else.
    pub(crate) notification_id: Option<Uuid>,
    /// Why, as it was given, of what was done with a key of yours or in a visit to your dashboard.
    #[schema(example = "The domains were transferred away.")]
    pub(crate) note: Option<String>,
    /// What else belongs to it, of what was done with a key of yours; the fields depend on the action. Of what the operators did it is there for
    /// notification.cancel-many alone, with how many of your waiting notifications they cancelled, as `cancelled`.
    #[schema(value_type = Option<Object>)]
    pub(crate) details: Option<Value>,
}

impl ActivityDocument {
    fn of(view: AuditView, reseller: &str, own_names: &[String]) -> Self {
        let own = is_own(&view.actor, reseller, own_names);
        let of = |kind: &str| view.subject.strip_prefix(kind)?.parse().ok();
        Self {
            id: view.id,
            at: view.at,
            by: if own { "YOU" } else { "OPERATOR" },
            subscription_id: of("subscription/"),
            notification_id: of("notification/"),
            name: own.then_some(view.actor),
            note: view.note.filter(|_| own),
            details: match own {
                true => Some(view.details),
                false => cancelled(&view.action, &view.details, reseller),
            },
            action: view.action,
        }
    }
}

/// How many of a reseller the operators cancelled: what else is noted of it is theirs, or about others.
fn cancelled(action: &str, details: &Value, reseller: &str) -> Option<Value> {
    let count = match details.get("resellers") {
        Some(resellers) => &resellers[reseller],
        None => &details["cancelled"],
    };
    (action == "notification.cancel-many").then(|| json!({ "cancelled": count }))
}

/// Those of visits that are long over are not among the names.
fn is_own(actor: &str, reseller: &str, names: &[String]) -> bool {
    names.iter().any(|name| name == actor) || actor.ends_with(&ending_of_visitors(reseller))
}

/// A name of the operators is refused as an unknown one is: what one of them has done is not to be found out by it.
fn acts_of(by: &str, reseller: &str, names: &[String]) -> Result<ActsOf, Problem> {
    match by {
        "YOU" => Ok(ActsOf::Reseller),
        "OPERATOR" => Ok(ActsOf::Operators),
        name if is_own(name, reseller, names) && !name.contains('\0') => Ok(ActsOf::Name(name.to_owned())),
        plain => named(plain, names)
            .map(|name| ActsOf::Name(name.to_owned()))
            .ok_or_else(|| {
                let detail = "must be YOU, OPERATOR, or the name of a key of yours or of a person who visited your dashboard; of several \
                              with that name the whole one, as the entries have it";
                Problem::query("by", detail).coded(FieldCode::UnknownValue)
            }),
    }
}

/// The one of `names` that begins with this name, before what tells it from others: `Anna Ozola <anna@demo>`, `ci (01a2…)`.
fn named<'a>(plain: &str, names: &'a [String]) -> Option<&'a str> {
    let begins = |name: &&String| {
        let rest = name.strip_prefix(plain);
        rest.is_some_and(|rest| rest.starts_with(" <") || rest.starts_with(" ("))
    };
    let mut found = names.iter().filter(begins);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// A state that a subscription came to have.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StateEntry)]
pub(crate) struct StateDocument {
    /// Since when.
    pub(crate) at: DateTime<Utc>,
    /// The state.
    pub(crate) state: SubscriptionState,
    /// Why: CREATED, VERIFIED, BY_RESELLER, VERIFICATION_REQUESTED, ENDPOINT_CHANGED, FAILING, RECOVERED, REDIRECTED or GONE.
    #[schema(example = "VERIFIED")]
    pub(crate) state_reason: &'static str,
    /// Whether you had it paused.
    pub(crate) paused: bool,
    /// Whether the operators of Postrider had it paused.
    pub(crate) held: bool,
}

/// A mail about a subscription.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Mail)]
pub(crate) struct MailDocument {
    /// Its identifier.
    pub(crate) id: Uuid,
    /// The occasion: RETRIES_EXHAUSTED, STATE_CHANGED, VERIFICATION_FAILED, DELIVERY_REFUSED, QUOTA_DECIDED, ADDRESS_CONFIRMATION,
    /// SECURITY_CHANGED or DELIVERIES_RECOVERED.
    #[schema(example = "STATE_CHANGED")]
    pub(crate) kind: &'static str,
    /// Where it stands: PENDING, SENDING, SENT or FAILED.
    #[schema(example = "SENT")]
    pub(crate) status: &'static str,
    /// About which subscription.
    pub(crate) subscription_id: Uuid,
    /// To which address.
    #[schema(example = "ops@reseller.example")]
    pub(crate) recipient: String,
    /// How many occasions it tells of.
    pub(crate) occurrences: u64,
    /// When what it tells happened last.
    pub(crate) created_at: DateTime<Utc>,
    /// When it is sent at the earliest; null once it is being sent or has ended. One to an address that is not confirmed waits for that, too,
    /// unless it is the one with the code.
    pub(crate) due_at: Option<DateTime<Utc>>,
    /// When it was sent, or given up.
    pub(crate) finished_at: Option<DateTime<Utc>>,
}

impl From<StateEntry> for StateDocument {
    fn from(entry: StateEntry) -> Self {
        Self {
            at: entry.at,
            state: entry.state,
            state_reason: StateReason::as_str(entry.reason),
            paused: entry.paused,
            held: entry.held,
        }
    }
}

impl From<ResellerMail> for MailDocument {
    fn from(mail: ResellerMail) -> Self {
        Self {
            id: mail.id,
            kind: mail.kind.as_str(),
            status: mail.status.as_str(),
            subscription_id: mail.subscription,
            recipient: mail.recipient,
            occurrences: mail.occurrences,
            created_at: mail.created_at,
            due_at: mail.due_at,
            finished_at: mail.finished_at,
        }
    }
}

/// Lists what was done with keys of yours, what was done to your subscriptions, and how many of your waiting notifications the operators cancelled,
/// the newest first.
///
/// A single notification that the operators cancelled is not listed; its reason is CANCELLED, and its story says who cancelled it.
#[utoipa::path(
    get, path = "/activity", tag = "activity", operation_id = "listActivity",
    security(("apiKey" = [])),
    params(ActivityParams),
    responses((status = 200, description = "A part of the list.", body = List<ActivityDocument>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    ReadParams(params, mut wrong): ReadParams<ActivityParams>,
) -> Result<Json<List<ActivityDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let is_action = |text: &String| {
        text.len() <= ACTION_MAX_BYTES
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'.'))
    };
    let actions = params.action.as_deref().map(domain::audit::meant);
    match &params.action {
        Some(text) if !is_action(text) => {
            let detail = "must be an action such as subscription.pause, or a word of one";
            wrong.add(Problem::query("action", detail).coded(FieldCode::WrongFormat));
        }
        Some(text) if actions.as_ref().is_some_and(Vec::is_empty) => {
            let detail = domain::audit::unknown_to_reseller(text);
            wrong.add(Problem::query("action", detail).coded(FieldCode::UnknownValue));
        }
        _ => {}
    }
    let before = wrong.with(paging::read_id(params.cursor.as_deref()))?;
    let what = ("the activity", "read");
    let names = http_api::by(reseller.deadline, what, app.store.names_of_acts(&reseller.id)).await?;
    let by = params.by.as_deref();
    let filter = ActivityFilter {
        acts_of: by.map(|by| acts_of(by, &reseller.id, &names)).transpose()?,
        actions,
        since: params.since,
        until: params.until,
        before,
    };
    let list = app
        .store
        .list_activity((&reseller.id, &names), &filter, limit + 1);
    let found = http_api::by(reseller.deadline, what, list).await?;
    let show = |view| ActivityDocument::of(view, &reseller.id, &names);
    Ok(Json(List::by_id(found, limit, |view| view.id, show)))
}

/// Lists the states that a subscription has had, and its pauses, the newest first.
#[utoipa::path(
    get, path = "/subscriptions/{id}/states", tag = "activity", operation_id = "listStates",
    security(("apiKey" = [])),
    params(("id" = Uuid, Path, description = "The subscription's identifier."), PartParams),
    responses((status = 200, description = "A part of the list.", body = List<StateDocument>))
)]
pub(crate) async fn states(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Id(id): Id,
    ReadParams(params, mut wrong): ReadParams<PartParams>,
) -> Result<Json<List<StateDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let before = wrong.take(paging::read_id(params.cursor.as_deref()));
    wrong.end()?;
    app.subscription(&reseller, id).await?;
    let list = app.store.list_states(id, before, limit + 1);
    let found = http_api::by(reseller.deadline, ("the states", "read"), list).await?;
    Ok(Json(List::by_id(
        found,
        limit,
        |entry| entry.id,
        StateDocument::from,
    )))
}

/// Lists the mails about your subscriptions, the newest first.
#[utoipa::path(
    get, path = "/mails", tag = "activity", operation_id = "listMails",
    security(("apiKey" = [])),
    params(PartParams),
    responses((status = 200, description = "A part of the list.", body = List<MailDocument>))
)]
pub(crate) async fn mails(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    ReadParams(params, mut wrong): ReadParams<PartParams>,
) -> Result<Json<List<MailDocument>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let after = wrong.take(paging::read_at(params.cursor.as_deref()));
    wrong.end()?;
    let list = app.store.list_reseller_mails(&reseller.id, after, limit + 1);
    let mut found = http_api::by(reseller.deadline, ("the mails", "read"), list).await?;
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let last = found.last().filter(|_| has_more);
    let next = last.map(|mail| paging::write_at((mail.created_at, mail.id)));
    Ok(Json(List::new(
        found.into_iter().map(MailDocument::from).collect(),
        next,
    )))
}
