//! R14: the catalogue of event types, and which subscriptions get them.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::subscription::EventFilter;
use http::HeaderMap;
use http_api::{FieldProblem, Id, Name, Payload, Problem};
use pages::{Fields, Page, done, segment};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::frame::Frame;
use super::{Route, words};
use crate::app::App;
use crate::event_types::{self, EventTypeDocument};
use crate::request::{Manager, Reseller};
use crate::subscriptions::test_event::TestPayload;
use crate::subscriptions::{self, SubscriptionDocument};

/// Where it begins.
const PLACE: &str = "/app/event-types";

pub(super) fn routes() -> Vec<Route> {
    vec![
        super::page(PLACE, page),
        super::page("/app/event-types/{name}", one),
        super::act("/app/event-types/{name}/test", test),
    ]
}

#[derive(Template)]
#[template(path = "event_types.html")]
struct EventTypes {
    frame: Frame,
    /// With how many subscriptions get it.
    types: Vec<(EventTypeDocument, usize)>,
    all: usize,
    asked: String,
}

#[derive(Template)]
#[template(path = "event_type.html")]
struct OneType {
    frame: Frame,
    event_type: EventTypeDocument,
    attributes: Vec<Attribute>,
    variants: Vec<Variant>,
    getting: Vec<SubscriptionDocument>,
    /// To which an example of it can be sent.
    all: Vec<SubscriptionDocument>,
}

/// An attribute as it is stored.
#[derive(Deserialize)]
struct Attribute {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    description: String,
    #[serde(default)]
    required: bool,
}

/// A variant as it is stored.
#[derive(Deserialize)]
struct Variant {
    name: String,
    description: String,
    data: Value,
}

impl EventTypes {
    fn address(&self, name: &str) -> String {
        format!("{PLACE}/{}", segment(name))
    }
}

impl OneType {
    fn json(&self, value: &Value) -> String {
        serde_json::to_string_pretty(value).unwrap_or_default()
    }

    fn host(&self, subscription: &SubscriptionDocument) -> String {
        words::place(&subscription.url)
    }
}

/// Entries that can be read; the others are left out rather than the page with them.
fn entries<T: DeserializeOwned>(value: &Value) -> Vec<T> {
    let entries = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let read = entries.iter().map(|entry| T::deserialize(entry));
    read.filter_map(Result::ok).collect()
}

fn gets(subscription: &SubscriptionDocument, event_type: &str) -> bool {
    let filters = subscription.event_types.iter();
    filters
        .filter_map(|filter| EventFilter::parse(filter).ok())
        .any(|filter| filter.matches(event_type))
}

async fn page(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
) -> Result<impl IntoResponse, Problem> {
    let list = event_types::list(State(Arc::clone(&app)), reseller.clone())
        .await?
        .0;
    let subscriptions = super::subscriptions_of(&app, &reseller).await?;
    let (all, asked) = (list.items.len(), frame.asked("q"));
    let sought = asked.trim().to_lowercase();
    let found = list.items.into_iter().filter(|event_type| {
        let says = |text: &str| text.to_lowercase().contains(&sought);
        says(&event_type.name) || says(&event_type.description)
    });
    let types = found.map(|event_type| {
        let getting = subscriptions
            .iter()
            .filter(|it| gets(it, &event_type.name))
            .count();
        (event_type, getting)
    });
    Ok(Page(EventTypes {
        types: types.collect(),
        frame,
        all,
        asked,
    }))
}

async fn one(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    frame: Frame,
    Name(name): Name,
) -> Result<impl IntoResponse, Problem> {
    let found = event_types::find(State(Arc::clone(&app)), reseller.clone(), Name(name))
        .await?
        .0;
    let all = super::subscriptions_of(&app, &reseller).await?;
    let mut getting = super::subscriptions_of(&app, &reseller).await?;
    getting.retain(|subscription| gets(subscription, &found.name));
    Ok(Page(OneType {
        attributes: entries(&found.attributes),
        variants: entries(&found.variants),
        event_type: found,
        frame,
        getting,
        all,
    }))
}

/// Sends an example of it to a subscription.
async fn test(
    State(app): State<Arc<App>>,
    manager: Manager,
    Name(name): Name,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Response, Problem> {
    let missing = || Problem::fields(vec![FieldProblem::new("subscription", "must be one of yours")]);
    let id = fields
        .parse("subscription", "one of yours")?
        .ok_or_else(missing)?;
    let payload = Payload(TestPayload {
        event_type: Some(name),
        variant: fields.get("variant").map(str::to_owned),
    });
    let sent = subscriptions::send_test(State(app), manager, Id(id), headers, Some(payload)).await?;
    let address = format!("/app/n/{}", sent.2.0.notification_id);
    Ok(done(&address, "A test event is on its way. It uses no quota."))
}
