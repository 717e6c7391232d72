//! The audit log: who changed what, when, and why.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use http_api::paging::{self, List};
use http_api::{FieldCode, Problem, ReadParams, WrongQuery};
use serde::Deserialize;
use store::webhook::ActivityFilter;
use store::{AuditFilter, AuditView, Store};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::request::{self, Viewer};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Which entries.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditParams {
    /// By this actor: the name of its key, or all of what an entry says.
    pub(crate) actor: Option<String>,
    /// Of these actions, with commas between them, such as `dead-letter.replay`; a kind of things, such as `dead-letter`, stands for every action
    /// on them, and the beginning of a word, such as `quota`, for every action that has such a word.
    #[param(example = "quota,api-key")]
    pub(crate) action: Option<String>,
    /// Not of these actions, said in the same way, such as `rescue`.
    pub(crate) without: Option<String>,
    /// About this, such as `push/019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d`.
    pub(crate) subject: Option<String>,
    /// That concern this reseller: about it or a subscription of its own, deleted ones among them, by one of its keys and people, or what was cancelled of it and others at once.
    #[param(example = "acme")]
    pub(crate) reseller: Option<String>,
    /// From here on (RFC 3339).
    pub(crate) since: Option<String>,
    /// Before this (RFC 3339).
    pub(crate) until: Option<String>,
    /// How many entries.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// What the previous part gave as `next`.
    pub(crate) cursor: Option<String>,
}

/// Lists what was done, the newest first.
#[utoipa::path(
    get, path = "/audit", tag = "audit", operation_id = "listAudit", security(("apiKey" = [])),
    params(AuditParams),
    responses((status = 200, description = "A part of the list.", body = List<AuditView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    ReadParams(params, mut wrong): ReadParams<AuditParams>,
) -> Result<Json<List<AuditView>>, Problem> {
    let limit = wrong.take(paging::limit(params.limit));
    let reseller = params.reseller.clone();
    let filter = wrong.with(filter(params))?;
    let listing = async {
        match reseller {
            Some(reseller) => of_reseller(&app.store, &reseller, filter, limit + 1).await,
            None => app.store.list_audit(&filter, limit + 1).await,
        }
    };
    let entries = http_api::by(viewer.deadline, ("the audit log", "read"), listing).await?;
    Ok(Json(List::by_id(entries, limit, |entry| entry.id, |entry| entry)))
}

async fn of_reseller(
    store: &Store,
    reseller: &str,
    filter: AuditFilter,
    limit: u32,
) -> Result<Vec<AuditView>, store::Error> {
    let filter = ActivityFilter {
        acts_of: None,
        actions: filter.actions,
        since: filter.since,
        until: filter.until,
        before: filter.before,
    };
    let names = store.names_of_acts(reseller).await?;
    store.list_activity((reseller, &names), &filter, limit).await
}

/// Which entries are asked for.
pub(crate) fn filter(params: AuditParams) -> Result<AuditFilter, Problem> {
    let mut wrong = WrongQuery::default();
    for (name, text) in [
        ("actor", &params.actor),
        ("action", &params.action),
        ("without", &params.without),
        ("subject", &params.subject),
        ("reseller", &params.reseller),
    ] {
        if text.as_ref().is_some_and(|text| text.contains('\0')) {
            wrong.add(
                Problem::query(name, "must not hold the character U+0000").coded(FieldCode::WrongFormat),
            );
        }
        let goes_with_reseller = matches!(name, "action" | "reseller");
        if text.is_some() && params.reseller.is_some() && !goes_with_reseller {
            wrong.add(
                Problem::query(name, "does not go with reseller: leave one of the two out")
                    .coded(FieldCode::Conflict),
            );
        }
    }
    let since = wrong.take(time("since", params.since));
    let until = wrong.take(time("until", params.until));
    if since.zip(until).is_some_and(|(since, until)| since >= until) {
        wrong.add(Problem::query("until", "must be later than since").coded(FieldCode::Conflict));
    }
    let without = params.without.as_deref().map(|names| meant("without", names));
    let actions = params.action.as_deref().map(|names| meant("action", names));
    let filter = AuditFilter {
        actor: params.actor,
        actions: wrong.take(actions.transpose()),
        without: wrong.take(without.transpose()).unwrap_or_default(),
        subject: params.subject,
        since,
        until,
        before: wrong.take(paging::read_id(params.cursor.as_deref())),
    };
    wrong.with(Ok(filter))
}

/// The actions that are meant by names with commas between them.
fn meant(parameter: &'static str, names: &str) -> Result<Vec<String>, Problem> {
    let mut actions = Vec::new();
    for name in names.split(',').map(str::trim) {
        let meant = domain::audit::meant(name);
        if meant.is_empty() {
            return Err(
                Problem::query(parameter, domain::audit::unknown(name)).coded(FieldCode::UnknownValue)
            );
        }
        actions.extend(meant);
    }
    Ok(actions)
}

fn time(parameter: &'static str, text: Option<String>) -> Result<Option<DateTime<Utc>>, Problem> {
    let wrong = || {
        Problem::query(
            parameter,
            "must be a time such as 2026-11-21T12:00:00Z (RFC 3339), in the years 1970 to 9999",
        )
        .coded(FieldCode::WrongFormat)
    };
    let Some(text) = text else { return Ok(None) };
    let at = text.parse().ok().filter(|at| request::can_be_asked(*at));
    at.map(Some).ok_or_else(wrong)
}
