//! `GET /explain/{id}`: the story of one push, event, notification or dead letter, in sentences.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use explain::{Context, Explanation};
use http_api::{Params, Problem, ProblemKind};
use serde::Deserialize;
use store::Store;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::request::Viewer;

pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(explain))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExplainQuery {
    /// Whose event it is, when `id` is what its caller called it (`eventId`).
    #[param(example = "acme")]
    reseller: Option<String>,
}

/// Tells the story of one push, event, notification or dead letter.
///
/// What happened to it when, why it is where it is, what happens next, and which commands help. With `reseller` the
/// identifier is the `eventId` that the caller gave to one of the reseller's events.
#[utoipa::path(
    get, path = "/explain/{id}", tag = "status", operation_id = "explain", security(("apiKey" = [])),
    params(
        ("id" = Uuid, Path, description = "A push, an event, a notification or a dead letter; with `reseller` any text."),
        ExplainQuery,
    ),
    responses((status = 200, description = "The story.", body = Explanation))
)]
pub(crate) async fn explain(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Path(id): Path<String>,
    Params(query): Params<ExplainQuery>,
) -> Result<Json<Explanation>, Problem> {
    let told = http_api::by(
        viewer.deadline,
        ("the story", "read"),
        tell(&app, &id, query.reseller.as_deref()),
    )
    .await?;
    told.map(Json)
        .ok_or_else(|| unknown(&id, query.reseller.as_deref()))
}

fn unknown(id: &str, reseller: Option<&str>) -> Problem {
    let detail = match reseller {
        Some(reseller) => format!(
            "{reseller} has no event that its caller called {id:?}, or it is forgotten; the identifier that was answered \
             for the event still leads to it"
        ),
        None if id.parse::<Uuid>().is_err() => format!(
            "{id:?} is no identifier: a push, an event, a notification or a dead letter has one such as \
             019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d; an event is also found by its eventId when its reseller is named, with \
             --reseller of the command line or the parameter reseller"
        ),
        None => "no push, event, notification or dead letter has this identifier; what is older than the retention is \
                 forgotten"
            .to_owned(),
    };
    Problem::new(ProblemKind::NOT_FOUND, detail)
}

/// The story of whatever has this identifier.
async fn tell(app: &App, id: &str, reseller: Option<&str>) -> Result<Option<Explanation>, store::Error> {
    let context = context(app).await?;
    if let Some(reseller) = reseller {
        let Some(event) = app.store.event_of_key(reseller, id).await? else {
            return Ok(None);
        };
        return of_event(&app.store, event, &context).await;
    }
    let Ok(id) = id.parse::<Uuid>() else {
        return Ok(None);
    };
    if let Some(story) = of_push(&app.store, id, &context).await? {
        return Ok(Some(story));
    }
    if let Some(story) = of_notification(&app.store, id, &context).await? {
        return Ok(Some(story));
    }
    if let Some(story) = of_event(&app.store, id, &context).await? {
        return Ok(Some(story));
    }
    let Some((letter, acts)) = app.store.dead_letter_timeline(id).await? else {
        return Ok(None);
    };
    let subject = match (letter.push, letter.notification) {
        (Some(push), _) => of_push(&app.store, push, &context).await?,
        (None, Some(notification)) => of_notification(&app.store, notification, &context).await?,
        (None, None) => None,
    };
    Ok(Some(explain::dead_letter(&letter, &acts, subject, &context)))
}

async fn of_push(store: &Store, id: Uuid, context: &Context) -> Result<Option<Explanation>, store::Error> {
    let history = store.push_timeline(id).await?;
    Ok(history.map(|history| explain::push(&history, context)))
}

async fn of_notification(
    store: &Store,
    id: Uuid,
    context: &Context,
) -> Result<Option<Explanation>, store::Error> {
    let history = store.notification_timeline(id).await?;
    Ok(history.map(|history| explain::notification(&history, context)))
}

async fn of_event(store: &Store, id: Uuid, context: &Context) -> Result<Option<Explanation>, store::Error> {
    let event = store.find_event(id).await?;
    Ok(event.map(|event| explain::event(&event, context)))
}

async fn context(app: &App) -> Result<Context, store::Error> {
    Ok(Context {
        now: app.now(),
        pauses: app.store.list_pauses().await?,
        holds: app.store.list_holds().await?,
        rules: app.config.as_ref().into(),
    })
}
