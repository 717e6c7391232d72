//! `GET /events/{id}`: what became of an event of the reseller, those subscriptions included that got nothing of it.
//!
//! It deliberately does not show the data: the notifications do.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::reason::StateReason;
use domain::subscription::{EventFilter, Miss, SubscriptionState};
use http_api::{Name, Problem};
use serde::Serialize;
use store::webhook::{EventView, StateEntry, SubscriptionView};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::notifications::all::{ListedDocument, SUBSCRIPTIONS_MAX};
use crate::problems;
use crate::request::Reseller;

/// An event, and what became of it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Event)]
pub(crate) struct EventDocument {
    /// Its identifier.
    #[schema(example = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")]
    pub(crate) id: Uuid,
    /// The `id` in the body that your endpoint gets.
    #[schema(example = "order-4711")]
    pub(crate) event_id: String,
    /// Its type.
    #[serde(rename = "type")]
    #[schema(example = "domain.created")]
    pub(crate) event_type: String,
    /// When it happened.
    pub(crate) occurred_at: DateTime<Utc>,
    /// When it was accepted.
    pub(crate) accepted_at: DateTime<Utc>,
    /// The notifications that it became: one for each subscription that it was sent to, or replayed to.
    pub(crate) notifications: Vec<ListedDocument>,
    /// Each other subscription that you have now, and why it got nothing.
    pub(crate) missed: Vec<MissedDocument>,
}

/// A subscription that got nothing of an event.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MissedSubscription)]
pub(crate) struct MissedDocument {
    /// Which one.
    pub(crate) subscription_id: Uuid,
    /// Why; one of several would have been enough.
    pub(crate) reasons: Vec<MissReason>,
    /// Whether the reasons were noted when the event was accepted. Else they follow from the state that the subscription had then and the
    /// event types that it has now.
    pub(crate) is_noted: bool,
    /// The same in a sentence.
    #[schema(example = "Got nothing of it: its event types do not take domain.created now.")]
    pub(crate) explanation: String,
}

/// Why a subscription got nothing of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum MissReason {
    /// The event is a test of another subscription.
    Test,
    /// The subscription was made after the event was accepted.
    Later,
    /// The subscription's event types do not take the event's.
    Filter,
    /// The endpoint had not answered its challenge.
    Unverified,
    /// The subscription was deactivated.
    Deactivated,
    /// Not known: the subscription takes the event type now, and nothing of what is known kept it back.
    Unknown,
}

impl MissReason {
    fn said(self, event_type: &str, is_noted: bool) -> String {
        match self {
            Self::Test => "the event is a test of another subscription".to_owned(),
            Self::Later => "it was made after the event was accepted".to_owned(),
            Self::Filter if is_noted => format!("its event types did not take {event_type}"),
            Self::Filter => format!("its event types do not take {event_type} now"),
            Self::Unverified => "its endpoint was not verified".to_owned(),
            Self::Deactivated => "it was deactivated".to_owned(),
            Self::Unknown => {
                format!("it takes {event_type} now; its event types may have been others then")
            }
        }
    }

    fn of(miss: Miss) -> Vec<Self> {
        let state = match miss.state {
            SubscriptionState::PendingVerification => Some(Self::Unverified),
            SubscriptionState::Deactivated => Some(Self::Deactivated),
            SubscriptionState::Active | SubscriptionState::Degraded => None,
        };
        let filter = miss.filtered.then_some(Self::Filter);
        filter.into_iter().chain(state).collect()
    }
}

/// Shows what became of an event of yours: its notifications, and why each other subscription got none.
///
/// By the `id` that your endpoint knows it by, for as long as an `eventId` is remembered, or by its identifier for as long as it is kept. What
/// became of it for subscriptions that are deleted is not shown.
#[utoipa::path(
    get, path = "/events/{id}", tag = "notifications", operation_id = "findEvent",
    security(("apiKey" = [])),
    params(("id" = String, Path, description = "The `id` that your endpoint knows the event by, or the event's identifier.", example = "order-4711")),
    responses((status = 200, description = "The event.", body = EventDocument))
)]
pub(crate) async fn find(
    State(app): State<Arc<App>>,
    reseller: Reseller,
    Name(id): Name,
) -> Result<Json<EventDocument>, Problem> {
    look_up(&app, &reseller, &id).await.map(Json)
}

/// The same for a page.
pub(crate) async fn look_up(app: &App, reseller: &Reseller, id: &str) -> Result<EventDocument, Problem> {
    let find = async {
        let named = app.store.event_of_key(&reseller.id, id).await?;
        match named.or_else(|| id.parse().ok()) {
            Some(event) => app.store.find_event(event).await,
            None => Ok(None),
        }
    };
    let found = http_api::by(reseller.deadline, ("the event", "read"), find).await?;
    let event = found
        .filter(|event| event.reseller_id == reseller.id)
        .ok_or_else(problems::no_event)?;
    let read = async {
        let all = app
            .store
            .list_subscriptions(&reseller.id, None, SUBSCRIPTIONS_MAX)
            .await?;
        let ids: Vec<Uuid> = all.iter().map(|subscription| subscription.id).collect();
        let became = app
            .store
            .notifications_of_event_id(&reseller.id, id, &ids)
            .await?;
        let held_back = app.store.held_back(&ids).await?;
        let states = app.store.states_at(&ids, event.created_at).await?;
        Ok((all, became, held_back, states))
    };
    let (all, became, held_back, states) =
        http_api::by(reseller.deadline, ("the event", "read"), read).await?;
    let got: Vec<Uuid> = became.iter().map(|found| found.subscription).collect();
    let missed = all
        .iter()
        .filter(|subscription| !got.contains(&subscription.id))
        .map(|subscription| missed(subscription, &event, states.get(&subscription.id)))
        .collect();
    let notifications = became.into_iter().map(|found| {
        let held = held_back.get(&found.subscription).copied();
        ListedDocument::of(found, held.unwrap_or_default())
    });
    Ok(EventDocument {
        notifications: notifications.collect(),
        missed,
        id: event.id,
        event_id: event.event_id,
        event_type: event.event_type,
        occurred_at: event.occurred_at,
        accepted_at: event.created_at,
    })
}

fn missed(subscription: &SubscriptionView, event: &EventView, state: Option<&StateEntry>) -> MissedDocument {
    let mut noted = event.missed.iter().flatten();
    let noted = noted.find(|noted| noted.id == subscription.id);
    let reasons = match noted {
        _ if event.test_of.is_some() => vec![MissReason::Test],
        Some(noted) => MissReason::of(noted.miss),
        None if subscription.created_at > event.created_at => vec![MissReason::Later],
        None => MissReason::of(concluded(subscription, event, state)),
    };
    let reasons = if reasons.is_empty() {
        vec![MissReason::Unknown]
    } else {
        reasons
    };
    let said = reasons
        .iter()
        .map(|reason| reason.said(&event.event_type, noted.is_some()));
    let said: Vec<String> = said.collect();
    MissedDocument {
        subscription_id: subscription.id,
        explanation: format!("Got nothing of it: {}.", said.join(", and ")),
        is_noted: noted.is_some(),
        reasons,
    }
}

/// What follows from the state that the subscription had then and the filter that it has now: a filter of before is not kept.
fn concluded(subscription: &SubscriptionView, event: &EventView, state: Option<&StateEntry>) -> Miss {
    let takes = |entry: &String| EventFilter::parse(entry).is_ok_and(|it| it.matches(&event.event_type));
    // One whose endpoint was moved gets what comes meanwhile once the new one has answered.
    let keeps_back = state.filter(|state| state.reason != StateReason::EndpointChanged);
    Miss {
        state: keeps_back.map_or(SubscriptionState::Active, |state| state.state),
        filtered: !subscription.event_types.iter().any(takes),
        paused: false,
    }
}
