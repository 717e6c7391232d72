//! The challenge that an endpoint has to answer before anything else is sent to it: a signed request with a random text,
//! which has to come back. An attacker who can make our requests go to an address cannot make that address answer them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::event;
use domain::notification::{DeliveryOutcome, FailureKind};
use http_client::{EgressPolicy, WebhookClient, WebhookRequest};
use serde_json::Value;
use store::webhook::Endpoint;
use uuid::Uuid;

use super::endpoints::Endpoints;
use super::request::{Content, signed};
use super::{OpenError, Tools};

/// The type of the request. It is in no catalogue.
const EVENT_TYPE: &str = "postrider.verification";

/// Most of the time that an endpoint gets, whatever it gets for notifications: a reseller waits for a challenge.
pub(super) const LONGEST: Duration = Duration::from_secs(10);

/// How much of an answer is read, even where less of an answer to a notification is kept.
pub(super) const ANSWER_BYTES: usize = 4_096;

/// What is told of a wrong answer, which says no more than these to a reseller who may not own the endpoint.
pub mod told {
    /// It answered, but with something else.
    pub const ANOTHER_TEXT: &str = "the endpoint answered, but not with the challenge as the body";
    /// It answered with another status than 200 to 299.
    pub const ANOTHER_STATUS: &str = "the endpoint answered with another status than 200 to 299; its own log says which (often it checks the signature with another secret)";
    /// It gave no answer.
    pub const NO_ANSWER: &str =
        "the endpoint could not be reached, closed the connection, or gave no answer in time";
}

/// How an endpoint answered its challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// As it has to.
    Right,
    /// Otherwise or not at all.
    Wrong {
        /// In words for a reseller who may not own it: not what a scanner of other people's hosts would like to know.
        told: &'static str,
        /// In words for us, and for its owner once it has answered as it has to.
        detail: String,
    },
    /// It was not asked, through no fault of its own; in words for us.
    NotAsked(String),
}

/// A host that may be anybody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    /// Its name, or its address.
    pub host: String,
    /// The registered domain that it belongs to; an address is its own.
    pub site: String,
}

/// Challenges endpoints. Cheap to clone.
#[derive(Clone)]
pub struct Challenger {
    tools: Tools,
    client: WebhookClient,
    endpoints: Arc<Endpoints>,
}

impl Challenger {
    /// One that works with these tools.
    pub fn new(tools: Tools) -> Result<Self, OpenError> {
        let delivery = &tools.config.reseller.delivery;
        let (store, sealer) = (tools.store.clone(), tools.sealer.clone());
        let endpoints = Endpoints::new(store, sealer, delivery.timeout, delivery.max_timeout);
        let client = if delivery.response_body_bytes < ANSWER_BYTES {
            tools.client_that_keeps(ANSWER_BYTES)?
        } else {
            tools.client.clone()
        };
        Ok(Self {
            endpoints: Arc::new(endpoints),
            client,
            tools,
        })
    }

    /// Where the challenge of an endpoint would go; `None` when it leads nowhere, or to a network that was opened by hand.
    pub fn stranger(&self, endpoint: &Endpoint) -> Option<Stranger> {
        let parsed = http_client::Endpoint::parse(&endpoint.url).ok()?;
        stranger_at(&parsed, self.client.policy())
    }

    /// Challenges the endpoint of a subscription and waits for the answer.
    pub async fn challenge(&self, subscription: Uuid, endpoint: &Endpoint) -> Answer {
        let text = random_text();
        match self.request(subscription, endpoint, &text) {
            Ok(request) => classify(self.client.send(request).await.outcome, &text),
            // Without a request there was nothing that the endpoint could have done wrong.
            Err(DeliveryOutcome::Failed {
                kind: FailureKind::Other,
                message,
            }) => Answer::NotAsked(message),
            Err(outcome) => classify(outcome, &text),
        }
    }

    fn request(
        &self,
        subscription: Uuid,
        endpoint: &Endpoint,
        text: &str,
    ) -> Result<WebhookRequest, DeliveryOutcome> {
        let target = self.endpoints.open(subscription, endpoint);
        let at = self.tools.clock.now();
        let id = Uuid::now_v7().to_string();
        let mut request = signed(content(&id, text, at), &target, at)?;
        request.timeout = request.timeout.min(LONGEST);
        Ok(request)
    }
}

/// Where a request would go; `None` when that is a network that was opened by hand.
pub(super) fn stranger_at(endpoint: &http_client::Endpoint, policy: &EgressPolicy) -> Option<Stranger> {
    (!policy.opens(endpoint)).then(|| Stranger {
        host: endpoint.host().to_owned(),
        site: endpoint.site(),
    })
}

/// What a challenge with this text sends.
pub(super) fn content<'a>(id: &'a str, text: &str, at: DateTime<Utc>) -> Content<'a> {
    let data = format!(r#"{{"challenge":"{text}"}}"#);
    Content {
        id,
        body: event::body(id, EVENT_TYPE, at, &data).into(),
        traceparent: None,
    }
}

/// 256 random bits in hexadecimal.
pub(super) fn random_text() -> String {
    let mut text = String::with_capacity(64);
    for byte in rand::random::<[u8; 32]>() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The right answer is a status from 200 to 299 and the text: alone, or as `challenge` of a JSON object.
pub(crate) fn classify(outcome: DeliveryOutcome, text: &str) -> Answer {
    match outcome {
        DeliveryOutcome::Answered {
            status: 200..=299,
            body,
            ..
        } if holds(&body, text) => Answer::Right,
        DeliveryOutcome::Answered {
            status: status @ 200..=299,
            ..
        } => Answer::Wrong {
            told: told::ANOTHER_TEXT,
            detail: format!("the endpoint answered {status}, but not with the challenge as the body"),
        },
        DeliveryOutcome::Answered { status, .. } => Answer::Wrong {
            told: told::ANOTHER_STATUS,
            detail: format!("the endpoint answered {status}"),
        },
        DeliveryOutcome::Failed {
            kind: FailureKind::Local,
            message,
        } => Answer::NotAsked(message),
        DeliveryOutcome::Failed { message, .. } => Answer::Wrong {
            told: told::NO_ANSWER,
            detail: message,
        },
    }
}

fn holds(body: &str, text: &str) -> bool {
    let json = || serde_json::from_str::<Value>(body).ok();
    body.trim() == text || json().is_some_and(|json| json == text || json["challenge"] == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, body: &str) -> Answer {
        let outcome = DeliveryOutcome::Answered {
            status,
            retry_after: None,
            body: body.to_owned(),
        };
        classify(outcome, "abc")
    }

    #[test]
    fn the_challenge_may_come_back_as_text_or_as_json() {
        for body in [
            "abc",
            " abc\r\n",
            r#"{"challenge": "abc", "more": 1}"#,
            r#""abc""#,
        ] {
            assert_eq!(answered(200, body), Answer::Right, "{body}");
        }
        assert_eq!(answered(202, "abc"), Answer::Right);
    }

    #[test]
    fn everything_else_is_wrong() {
        for (status, body) in [
            (200, ""),
            (200, "ab"),
            (200, "abcd"),
            (200, r#"{"challenge": ["abc"]}"#),
            (200, r#"{"data": {"challenge": "abc"}}"#),
            (301, "abc"),
            (404, "abc"),
            (500, "abc"),
        ] {
            assert!(
                matches!(answered(status, body), Answer::Wrong { .. }),
                "{status} {body}"
            );
        }
    }

    #[test]
    fn no_answer_is_wrong_with_its_cause() {
        let (kind, message) = (FailureKind::Timeout, "why".to_owned());
        let classified = classify(DeliveryOutcome::Failed { kind, message }, "abc");
        let Answer::Wrong { told, detail } = classified else {
            panic!("{classified:?}");
        };
        assert_eq!(detail, "why");
        assert!(!told.contains("why"), "{told}");
    }

    #[test]
    fn which_status_it_was_is_told_to_us_alone() {
        for status in [301, 404, 503] {
            let Answer::Wrong { told, detail } = answered(status, "abc") else {
                panic!("{status}");
            };
            assert!(detail.contains(&status.to_string()), "{detail}");
            assert!(!told.contains(&status.to_string()), "{told}");
        }
    }

    #[test]
    fn no_two_challenges_are_alike() {
        assert_ne!(random_text(), random_text());
        assert_eq!(random_text().len(), 64);
    }
}
