//! `GET /search`: what an identifier is of, whatever it is of.
//!
//! An identifier leads to a few rows by their keys. What is none of anything is looked for as a value in the newest events, a bounded number of them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use explain::Explanation;
use explain::words::{number, of};
use http_api::{FieldCode, Params, Problem, WrongQuery};
use serde::{Deserialize, Serialize};
use store::push::{PushFilter, PushRow};
use store::webhook::{
    EventFound, EventSearch, EventType, QuotaRequestView, SubscriptionFilter, SubscriptionView,
};
use store::{ApiKey, DeadLetterJob, Error};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::app::App;
use crate::examined::text;
use crate::explain::story;
use crate::request::Viewer;

/// Longest text that is looked for, in bytes.
const TEXT_MAX_BYTES: usize = 1_000;
/// Most pushes for a device.
const PUSHES_MAX: u32 = 20;
/// Most subscriptions with a text in their URL.
const SUBSCRIPTIONS_MAX: u32 = 20;
/// Most keys that are looked through for a name, the newest.
const KEYS_MAX: u32 = 1_000;
/// Most events with a value.
const EVENTS_MAX: u32 = 20;
/// How far back events are looked through for a value.
const LOOKED_BACK: TimeDelta = TimeDelta::days(7);
/// Most parts of the list of events that are looked through for it.
const PARTS_MAX: u32 = 4;

/// How every message id of Web Push begins: as Fernet tokens of this age do.
pub(crate) const MESSAGE_ID: &str = "gAAAAA";

/// What has an identifier of its own.
const IDENTIFIED: [&str; 9] = [
    "push",
    "notification",
    "event",
    "deadLetter",
    "userAgent",
    "subscription",
    "job",
    "key",
    "quotaRequest",
];

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(search))
}

/// What is looked for. Has no `Debug`: it may hold a device.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchParams {
    /// An identifier of a push, an event, a notification, a dead letter, a subscription, a job, an API key, a quota request, or a user agent or message of
    /// Web Push; the path or address at which a push or event is looked up, such as `/push/ID`; a reseller; the `pushKey` of a device; the URL of an
    /// endpoint, or a part of it that has a `/`; the name of an event type; the name of an API key; the `eventId` that the caller gave to an event, best with `reseller` or as
    /// `RESELLER/EVENT_ID`. What is none of these is looked for as a value in the data of the newest events, such as the name of a domain, with a reseller in those of its own.
    #[param(value_type = String, required = true, max_length = 1_000, example = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")]
    pub(crate) q: Option<String>,
    /// Whose event it is, when `q` is what its caller called it, or a value in it.
    #[param(example = "acme")]
    pub(crate) reseller: Option<String>,
}

/// What was found.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SearchAnswer)]
pub(crate) struct SearchDocument {
    /// What the text is the identifier of; nothing if it is of nothing that is stored.
    pub(crate) items: Vec<FoundDocument>,
    /// What was looked for: push, event, notification, deadLetter, userAgent, subscription, job, key, quotaRequest, reseller, device, eventType, endpoint, eventId, keyName, value; or message alone.
    #[schema(example = json!(["reseller", "device"]))]
    pub(crate) tried: Vec<&'static str>,
    /// Back to when events were looked through for the text as a value: a week, or less where there were very many; null if they were not.
    pub(crate) values_since: Option<DateTime<Utc>>,
}

/// A thing that was found.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SearchFound)]
pub(crate) struct FoundDocument {
    /// `push`, `event`, `notification`, `deadLetter`, `userAgent`, `subscription`, `job`, `key`, `quotaRequest`, `reseller` or `eventType`.
    #[schema(example = "push")]
    pub(crate) kind: &'static str,
    /// Its identifier.
    #[schema(example = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")]
    pub(crate) id: String,
    /// Where it stands; null of a reseller, of an event type that is not retired, and of an event in a list that became notifications.
    #[schema(example = "RETRY")]
    pub(crate) state: Option<String>,
    /// What there is to say of it first, in a sentence.
    #[schema(
        example = "Is tried again at 2026-11-21 12:01:30 UTC (in 30 s): attempt 2 of 5 failed with 503."
    )]
    pub(crate) headline: String,
}

impl FoundDocument {
    fn told(story: Explanation) -> Self {
        Self {
            kind: story.kind,
            id: story.id.to_string(),
            state: Some(story.state),
            headline: story.headline,
        }
    }

    fn job(job: &DeadLetterJob) -> Self {
        let what = job.action.as_str().to_lowercase();
        let (examined, matching) = (job.examined, job.matching);
        let headline = format!(
            "A job of {} to {what} dead letters, at {examined} of {matching}.",
            job.created_by
        );
        Self {
            kind: "job",
            id: job.id.to_string(),
            state: Some(job.status.to_string()),
            headline,
        }
    }

    fn key(key: &ApiKey, now: DateTime<Utc>) -> Self {
        let state = if key.revoked_at.is_some() {
            "REVOKED"
        } else if key.expires_at.is_some_and(|at| at <= now) {
            "EXPIRED"
        } else {
            "ACTIVE"
        };
        let roles: Vec<&str> = key.roles.iter().map(|role| role.as_str()).collect();
        let whose = key.reseller_id.as_ref();
        let whose = whose.map_or_else(String::new, |reseller| format!(" of {reseller}"));
        Self {
            kind: "key",
            id: key.id.to_string(),
            state: Some(state.to_owned()),
            headline: format!(
                "The API key {} ({}){whose}, made at {}.",
                key.name,
                roles.join(", "),
                key.created_at.format("%F %T UTC")
            ),
        }
    }

    fn quota_request(request: &QuotaRequestView) -> Self {
        Self {
            kind: "quotaRequest",
            id: request.id.to_string(),
            state: Some(request.status.to_string()),
            headline: format!(
                "A quota request of {} for the subscription {}, made at {}.",
                request.reseller,
                request.subscription,
                request.created_at.format("%F %T UTC")
            ),
        }
    }

    fn reseller(id: &str) -> Self {
        Self {
            kind: "reseller",
            id: id.to_owned(),
            state: None,
            headline: "A reseller that has subscriptions.".to_owned(),
        }
    }

    fn event_type(event_type: EventType) -> Self {
        Self {
            kind: "eventType",
            headline: format!("An event type of the catalogue: {}", event_type.description),
            id: event_type.name,
            state: event_type.retired_at.map(|_| "RETIRED".to_owned()),
        }
    }

    fn subscription(view: &SubscriptionView) -> Self {
        Self {
            kind: "subscription",
            id: view.id.to_string(),
            state: Some(view.state.to_string()),
            headline: format!("The subscription of {} at {}.", view.reseller, view.url),
        }
    }

    fn event(event: &EventFound) -> Self {
        let (all, delivered, failed) = (event.notifications, event.delivered, event.failed);
        let standing = [
            (delivered, "delivered"),
            (all.saturating_sub(delivered + failed), "still to be delivered"),
            (failed, "not to be delivered"),
        ];
        let standing = standing.into_iter().filter(|(count, _)| *count > 0);
        let standing: Vec<String> = standing
            .map(|(count, what)| format!("{} {what}", number(count)))
            .collect();
        let became = match all {
            0 => "it matched no subscription, so that nothing is sent".to_owned(),
            some => format!(
                "it became {}: {}",
                of(some, "notification", "notifications"),
                standing.join(", ")
            ),
        };
        Self {
            kind: "event",
            id: event.id.to_string(),
            state: (event.notifications == 0).then(|| "UNMATCHED".to_owned()),
            headline: format!(
                "{} of {}, accepted at {}: {became}.",
                event.event_type,
                event.reseller,
                event.created_at.format("%F %T UTC")
            ),
        }
    }

    fn push(push: &PushRow) -> Self {
        Self {
            kind: "push",
            id: push.id.to_string(),
            state: Some(push.status.to_string()),
            headline: "A push for this device.".to_owned(),
        }
    }
}

/// Finds what an identifier is of.
///
/// One answer for most identifiers; several for a device that got several pushes, or a text that is two things at once. Nothing that matches is
/// an answer, too: `tried` says what was looked for.
#[utoipa::path(
    get, path = "/search", tag = "search", operation_id = "search", security(("apiKey" = [])),
    params(SearchParams),
    responses((status = 200, description = "What was found.", body = SearchDocument))
)]
pub(crate) async fn search(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    Params(params): Params<SearchParams>,
) -> Result<Json<SearchDocument>, Problem> {
    let mut wrong = WrongQuery::default();
    let reseller = wrong.take(text("reseller", params.reseller.as_deref()));
    let sought = params.q.as_deref().and_then(searchable).ok_or_else(|| {
        let detail = format!("is needed: an identifier of 1 to {TEXT_MAX_BYTES} bytes");
        Problem::query("q", detail).coded(FieldCode::Missing)
    });
    let sought = wrong.with(sought)?;
    let searching = look(&app, sought, reseller.as_deref());
    let found = http_api::by(viewer.deadline, ("the answer", "read"), searching).await?;
    Ok(Json(found))
}

/// A text that can be looked for, without the blanks around it.
pub(crate) fn searchable(text: &str) -> Option<&str> {
    let text = text.trim();
    let can_be = !text.is_empty() && text.len() <= TEXT_MAX_BYTES && !text.contains('\0');
    can_be.then_some(text)
}

/// What a [`searchable`] text is the identifier of, or a value in.
pub(crate) async fn look(app: &App, sought: &str, reseller: Option<&str>) -> Result<SearchDocument, Error> {
    let (mut items, mut tried) = (Vec::new(), Vec::new());
    if let Some(message) = by_message(app, sought, reseller).await? {
        items.push(message);
        tried.push("message");
        return Ok(SearchDocument {
            items,
            tried,
            values_since: None,
        });
    }
    if reseller.is_none()
        && let Some(id) = at_end(sought)
        && let Some(found) = by_id(app, id).await?
    {
        items.push(found);
        tried.extend(IDENTIFIED);
        return Ok(SearchDocument {
            items,
            tried,
            values_since: None,
        });
    }
    let named = match reseller {
        Some(reseller) => Some((reseller, sought)),
        // No reseller has a slash in its name, or ends with a colon as `https:` does.
        None => sought
            .split_once('/')
            .filter(|(reseller, _)| !reseller.ends_with(':')),
    };
    if let Some((reseller, event)) = named {
        tried.push("event");
        let told = Box::pin(story(app, event, Some(reseller))).await?;
        items.extend(told.map(|(_, story)| FoundDocument::told(story)));
    } else if let Ok(id) = sought.parse::<Uuid>() {
        tried.extend(IDENTIFIED);
        items.extend(by_id(app, id).await?);
    }
    if reseller.is_none() {
        tried.push("reseller");
        items.extend(by_reseller(app, sought).await?);
        // Nothing is said of devices while the index that finds them is still being made.
        if let Some(pushes) = by_device(app, sought).await? {
            tried.push("device");
            items.extend(pushes);
        }
    }
    // It is in the data of its events as well, which are found beside it.
    let mut event_type = None;
    if reseller.is_none() && domain::subscription::is_event_type(sought) {
        tried.push("eventType");
        event_type = app.store.find_event_type(sought).await?;
    }
    if items.is_empty() && reseller.is_none() && sought.contains('/') {
        tried.push("endpoint");
        items.extend(by_endpoint(app, sought).await?);
    }
    let mut values_since = None;
    if items.is_empty() && named.is_none() {
        tried.push("eventId");
        items.extend(
            app.store
                .events_named(sought)
                .await?
                .iter()
                .map(FoundDocument::event),
        );
    }
    if items.is_empty() && named.is_none() {
        tried.push("keyName");
        items.extend(by_key_name(app, sought).await?);
    }
    if items.is_empty() {
        tried.push("value");
        let (found, since) = Box::pin(by_value(app, sought, named)).await?;
        items.extend(found);
        values_since = Some(since);
    }
    if let Some(event_type) = event_type {
        items.insert(0, FoundDocument::event_type(event_type));
    }
    Ok(SearchDocument {
        items,
        tried,
        values_since,
    })
}

/// The message of Web Push with this id, which is the end of the address that its sender was answered.
async fn by_message(app: &App, sought: &str, reseller: Option<&str>) -> Result<Option<FoundDocument>, Error> {
    let id = sought.rsplit('/').next().unwrap_or_default();
    if reseller.is_some() || !id.starts_with(MESSAGE_ID) {
        return Ok(None);
    }
    let told = Box::pin(story(app, id, None)).await?;
    Ok(told.map(|(_, story)| FoundDocument {
        id: id.to_owned(),
        ..FoundDocument::told(story)
    }))
}

/// The newest events with this value, of a reseller if one is named, and back to when was looked.
async fn by_value(
    app: &App,
    sought: &str,
    named: Option<(&str, &str)>,
) -> Result<(Vec<FoundDocument>, DateTime<Utc>), Error> {
    let since = app.now() - LOOKED_BACK;
    let (reseller, value) = named.map_or((None, sought), |(reseller, value)| (Some(reseller), value));
    let with_value = EventSearch {
        reseller: reseller.map(str::to_owned),
        value: Some(value.to_owned()),
        since: Some(since),
        ..EventSearch::default()
    };
    let mut after = None;
    for _ in 0..PARTS_MAX {
        let part = app.store.search_events(&with_value, after, EVENTS_MAX).await?;
        let end = part.next.map_or(since, |(at, _)| at);
        if !part.items.is_empty() {
            return Ok((part.items.iter().map(FoundDocument::event).collect(), end));
        }
        after = part.next;
        if after.is_none() {
            break;
        }
    }
    Ok((Vec::new(), after.map_or(since, |(at, _)| at)))
}

async fn by_id(app: &App, id: Uuid) -> Result<Option<FoundDocument>, Error> {
    if let Some((_, story)) = Box::pin(story(app, &id.to_string(), None)).await? {
        return Ok(Some(FoundDocument::told(story)));
    }
    if let Some(job) = app.store.find_dead_letter_job(id).await? {
        return Ok(Some(FoundDocument::job(&job)));
    }
    if let Some(key) = app.store.find_key(id).await? {
        return Ok(Some(FoundDocument::key(&key, app.now())));
    }
    let request = quota_request(app, id).await?;
    Ok(request.as_ref().map(FoundDocument::quota_request))
}

/// The quota request with this identifier.
pub(crate) async fn quota_request(app: &App, id: Uuid) -> Result<Option<QuotaRequestView>, Error> {
    // The list goes down from an identifier that it leaves out, so that the one asked for comes first behind the next greater one.
    let behind = Uuid::from_u128(id.as_u128().saturating_add(1));
    let requests = app.store.list_quota_requests(None, None, Some(behind), 1).await?;
    Ok(requests.into_iter().find(|request| request.id == id))
}

/// The keys of this name, those that were revoked or have expired among them, the newest first.
async fn by_key_name(app: &App, name: &str) -> Result<Vec<FoundDocument>, Error> {
    let keys = app.store.list_keys((None, None, true), None, KEYS_MAX).await?;
    let named = keys.iter().filter(|key| key.name == name);
    Ok(named.map(|key| FoundDocument::key(key, app.now())).collect())
}

/// The identifier that a text is, or that a path or an address of ours leads to.
pub(crate) fn identifier(text: &str) -> Option<Uuid> {
    text.parse().ok().or_else(|| at_end(text))
}

/// The identifier at the end of a path or an address at which a push or an event is looked up, such as `/push/ID`.
pub(crate) fn at_end(text: &str) -> Option<Uuid> {
    let path = text.split(['?', '#']).next()?;
    let (before, id) = path.trim_end_matches('/').rsplit_once('/')?;
    let is_ours = matches!(before.rsplit('/').next(), Some("push" | "events"));
    is_ours.then(|| id.parse().ok()).flatten()
}

/// The reseller of this name.
async fn by_reseller(app: &App, name: &str) -> Result<Option<FoundDocument>, Error> {
    let of_reseller = SubscriptionFilter {
        reseller: Some(name.to_owned()),
        ..SubscriptionFilter::default()
    };
    let subscriptions = app.store.search_subscriptions(&of_reseller, None, 1).await?;
    Ok(subscriptions.first().map(|_| FoundDocument::reseller(name)))
}

/// The subscriptions with this in their URL.
async fn by_endpoint(app: &App, url: &str) -> Result<Vec<FoundDocument>, Error> {
    let at_endpoint = SubscriptionFilter {
        url: Some(url.trim_end_matches('/').to_owned()),
        ..SubscriptionFilter::default()
    };
    let found = app
        .store
        .search_subscriptions(&at_endpoint, None, SUBSCRIPTIONS_MAX)
        .await?;
    Ok(found.iter().map(FoundDocument::subscription).collect())
}

/// The pushes for the device that is known by this; none while they cannot be found.
async fn by_device(app: &App, device: &str) -> Result<Option<Vec<FoundDocument>>, Error> {
    let for_device = PushFilter {
        device: Some(device.to_owned()),
        ..PushFilter::default()
    };
    let pushes = app.store.list_pushes(&for_device, None, PUSHES_MAX).await?;
    Ok(pushes.map(|part| part.items.iter().map(FoundDocument::push).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";

    #[test]
    fn a_path_or_an_address_of_a_push_leads_to_its_identifier() {
        for text in [
            format!("/push/{ID}"),
            format!("push/{ID}/"),
            format!("http://127.0.0.1:8080/push/{ID}"),
            format!("https://postrider.example/internal/events/{ID}?pretty=1"),
            ID.to_owned(),
        ] {
            assert_eq!(identifier(&text), ID.parse().ok(), "{text}");
        }
    }

    #[test]
    fn an_address_of_others_leads_to_none() {
        for text in [
            format!("https://hooks.acme.example/{ID}"),
            format!("acme/{ID}"),
            format!("/push/{ID}/more"),
            "/push/order-17".to_owned(),
            "push".to_owned(),
        ] {
            assert_eq!(identifier(&text), None, "{text}");
        }
    }
}
