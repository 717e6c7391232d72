//! The ingest API as its callers see it.

use std::ops::Deref;
use std::time::Duration;

use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use clap::Args;
use domain::push::{ErrorType, PushStatus};
use reqwest::{Method, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::api::{Api, Service};
use crate::output;
use crate::problem::{self, Problem};

static SERVICE: Service = Service {
    name: "ingest API",
    address: "INGEST_URL or --url",
    advice: |_| None,
};

/// Where the ingest API is, and the key for it.
#[derive(Debug, Clone, Args)]
pub(crate) struct IngestArgs {
    /// Where ingest-api listens.
    #[arg(long, env = "INGEST_URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// An API key, from `postrider keys create`.
    #[arg(long, env = "INGEST_KEY", hide_env_values = true)]
    key: Option<String>,
}

/// The body of `POST /push`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PushRequest {
    pub(crate) platform: String,
    pub(crate) message_prototype_key: Option<String>,
    pub(crate) push_key: String,
    pub(crate) message: String,
    pub(crate) cron_expression: Option<String>,
}

/// The body of `POST /events`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EventRequest {
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    pub(crate) reseller_id: String,
    pub(crate) data: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) occurred_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event_id: Option<String>,
}

/// What `POST /push` or `POST /events` answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 202: the push or the event is stored.
    Accepted {
        id: Uuid,
        /// Whether this is the answer to an earlier request that was the same one.
        replayed: bool,
    },
    /// Anything else.
    Refused {
        status: u16,
        /// When it can be handed in again, where the answer says so.
        retry_after: Option<Duration>,
        problem: Problem,
    },
}

/// A push as `GET /push/{id}` shows it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Push {
    pub(crate) id: Uuid,
    pub(crate) status: PushStatus,
    pub(crate) explanation: String,
    pub(crate) reason: Option<String>,
    pub(crate) platform: String,
    pub(crate) message_prototype_key: Option<String>,
    pub(crate) cron_expression: Option<String>,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) finished_at: Option<DateTime<Utc>>,
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
    pub(crate) attempts: u32,
    pub(crate) history: Vec<Attempt>,
}

/// An event as `GET /events/{id}` shows it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event {
    pub(crate) id: Uuid,
    pub(crate) event_id: String,
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    pub(crate) reseller_id: String,
    pub(crate) occurred_at: DateTime<Utc>,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) notifications: Vec<Notification>,
    /// Missing from what an earlier version answers.
    #[serde(default)]
    pub(crate) missed: Option<Vec<Missed>>,
}

/// A subscription that got nothing of an event that became nothing.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Missed {
    pub(crate) subscription_id: Uuid,
    pub(crate) explanation: String,
}

/// A notification that an event became.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Notification {
    pub(crate) subscription_id: Uuid,
    pub(crate) url: String,
    pub(crate) status: PushStatus,
    pub(crate) attempts: u32,
    pub(crate) explanation: String,
}

/// One attempt to send a push.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Attempt {
    pub(crate) number: u32,
    pub(crate) status: String,
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) millis: Option<i64>,
    pub(crate) error_type: Option<ErrorType>,
    pub(crate) response_status: Option<i64>,
    pub(crate) swrve_error_code: Option<i64>,
    pub(crate) swrve_error_message: Option<String>,
    pub(crate) other_error: Option<String>,
}

impl Answer {
    /// Whether something new is stored.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self, Self::Accepted { replayed: false, .. })
    }

    /// Whether it names these fields as what is wrong, and no others.
    pub(crate) fn names(&self, fields: &[&str]) -> bool {
        match self {
            Self::Refused {
                status: 422, problem, ..
            } => problem.errors.iter().map(|error| &error.field).eq(fields.iter()),
            _ => false,
        }
    }
}

/// Whether these are the answers to one thing that was handed in again and again: the first is new, the others repeat it.
pub(crate) fn are_one(answers: &[Answer]) -> bool {
    let mut seen = answers.iter().map(|answer| match answer {
        Answer::Accepted { id, replayed } => Some((*id, *replayed)),
        Answer::Refused { .. } => None,
    });
    match seen.next().flatten() {
        Some((first, false)) => seen.all(|answer| answer == Some((first, true))),
        _ => false,
    }
}

/// The identifier of one push or event that was handed in; `again` is noted of one that was stored before.
pub(crate) fn accepted(answer: &Answer, what: &str, again: &str) -> anyhow::Result<Uuid> {
    match answer {
        Answer::Accepted { id, replayed } => {
            if *replayed {
                output::note(again);
            }
            Ok(*id)
        }
        Answer::Refused {
            status,
            retry_after,
            problem,
        } => bail!(
            "the {what} was refused with {status} ({}): {problem}{}",
            problem.title,
            problem::again_in(*retry_after)
        ),
    }
}

/// A caller of the ingest API.
pub(crate) struct Ingest(Api);

impl Deref for Ingest {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.0
    }
}

impl Ingest {
    /// A caller with the given address and key.
    pub(crate) fn new(args: &IngestArgs) -> anyhow::Result<Self> {
        let Some(key) = args.key.clone().filter(|key| !key.is_empty()) else {
            bail!(
                "no API key is given; make one with `postrider keys create` and set it as INGEST_KEY or with --key"
            );
        };
        Ok(Self(Api::new(&SERVICE, &args.url, &key)?))
    }

    /// Hands in a push.
    pub(crate) async fn post(
        &self,
        push: &impl Serialize,
        idempotency_key: Option<&str>,
    ) -> anyhow::Result<Answer> {
        self.hand_in("/push", push, idempotency_key).await
    }

    /// Hands in an event.
    pub(crate) async fn post_event(
        &self,
        event: &EventRequest,
        idempotency_key: Option<&str>,
    ) -> anyhow::Result<Answer> {
        self.hand_in("/events", event, idempotency_key).await
    }

    async fn hand_in(
        &self,
        path: &str,
        body: &impl Serialize,
        idempotency_key: Option<&str>,
    ) -> anyhow::Result<Answer> {
        let mut request = self.request(Method::POST, path).json(body);
        if let Some(key) = idempotency_key {
            request = request.header("Idempotency-Key", key);
        }
        let response = self.answer(request, path).await?;
        let status = response.status();
        if status == StatusCode::ACCEPTED {
            let headers = response.headers();
            let location = headers
                .get(header::LOCATION)
                .and_then(|value| value.to_str().ok());
            let id = location
                .and_then(|location| location.rsplit('/').next())
                .and_then(|id| id.parse().ok())
                .with_context(|| {
                    format!(
                        "{} answered 202 without a Location that names what was stored",
                        self.url(path)
                    )
                })?;
            let replayed = headers.contains_key("idempotent-replayed");
            return Ok(Answer::Accepted { id, replayed });
        }
        Ok(Answer::Refused {
            status: status.as_u16(),
            retry_after: problem::retry_after(&response),
            problem: response.json().await.unwrap_or_default(),
        })
    }

    /// What has become of a push.
    pub(crate) async fn find(&self, id: Uuid) -> anyhow::Result<Push> {
        self.get(&format!("/push/{id}"), &()).await
    }

    /// Where the notifications of an event stand, by what its caller called it.
    pub(crate) async fn find_event_of(&self, reseller: &str, event_id: &str) -> anyhow::Result<Value> {
        self.get("/events", &[("resellerId", reseller), ("eventId", event_id)])
            .await
    }

    /// Where an event's notifications stand.
    pub(crate) async fn find_event(&self, id: Uuid) -> anyhow::Result<Event> {
        self.get(&format!("/events/{id}"), &()).await
    }
}
