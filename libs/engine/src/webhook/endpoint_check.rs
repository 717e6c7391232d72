//! A challenge to an endpoint that has no subscription yet: how far a request gets, by the very client that delivers.
//!
//! It keeps nothing, and does not say how many requests a host may get: see `store::webhook::Budgets`.

use std::time::Duration;

use chrono::{DateTime, Utc};
use config::Config;
use domain::notification::{DeliveryOutcome, FailureKind};
use http_client::{Endpoint, Phase, WebhookClient};
use signing::Secret;
use uuid::Uuid;

use super::OpenError;
use super::challenge::{
    ANSWER_BYTES, Answer, LONGEST, Stranger, classify, content, random_text, stranger_at,
};
use super::lane::client;
use super::request::signed_with;

/// A step of a request, in the order in which they are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The host has addresses, and all of them may be dialled.
    Name,
    /// The connection is opened.
    Connection,
    /// The endpoint shows a certificate that is trusted.
    Tls,
    /// It answers with a status from 200 to 299.
    Answer,
    /// The answer holds the challenge.
    Challenge,
}

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// The endpoint answered as it has to.
    Passed,
    /// It did not get past this step; in words for a reseller who may not own the endpoint.
    Failed(Step, String),
    /// It was not asked, through no fault of its own; in words for us.
    NotAsked(String),
}

/// Checks endpoints. Cheap to clone.
#[derive(Clone)]
pub struct EndpointChecker {
    client: WebhookClient,
    timeout: Duration,
    longest: Duration,
}

impl EndpointChecker {
    /// One that dials what deliveries may dial.
    pub fn new(config: &Config) -> Result<Self, OpenError> {
        let delivery = &config.reseller.delivery;
        Ok(Self {
            client: client(config, delivery.response_body_bytes.max(ANSWER_BYTES))?,
            timeout: delivery.timeout,
            longest: delivery.max_timeout.min(LONGEST),
        })
    }

    /// Whom a check of this endpoint would concern; `None` when it lies in a network that was opened by hand.
    pub fn stranger(&self, endpoint: &Endpoint) -> Option<Stranger> {
        stranger_at(endpoint, self.client.policy())
    }

    /// Challenges the endpoint once, signed with `secret`, and waits for the answer: as long as deliveries do, but at most 10 seconds and
    /// at most `longest`. Returns how long that took as well.
    pub async fn check(
        &self,
        endpoint: Endpoint,
        secret: &Secret,
        longest: Duration,
        at: DateTime<Utc>,
    ) -> (Checked, Duration) {
        let (text, id) = (random_text(), Uuid::now_v7().to_string());
        let timeout = self.timeout.min(self.longest).min(longest);
        match signed_with(content(&id, &text, at), endpoint, &[secret], (timeout, at)) {
            Ok(request) => {
                let reply = self.client.send(request).await;
                (judge(reply.outcome, reply.phase, &text), reply.elapsed)
            }
            Err(DeliveryOutcome::Failed { message, .. }) => (Checked::NotAsked(message), Duration::ZERO),
            Err(answered) => (judge(answered, Phase::Waiting, &text), Duration::ZERO),
        }
    }
}

fn judge(outcome: DeliveryOutcome, phase: Phase, text: &str) -> Checked {
    let step = step_of(&outcome, phase);
    // Which name there is and what refuses to talk are told, within the budgets of challenges; which status a stranger answers is not.
    let is_answer = matches!(outcome, DeliveryOutcome::Answered { .. });
    match classify(outcome, text) {
        Answer::Right => Checked::Passed,
        Answer::NotAsked(why) => Checked::NotAsked(why),
        Answer::Wrong { told, .. } if is_answer => Checked::Failed(step, told.to_owned()),
        Answer::Wrong { detail, .. } => Checked::Failed(step, detail),
    }
}

/// The step that was not passed, if one was not.
fn step_of(outcome: &DeliveryOutcome, phase: Phase) -> Step {
    match outcome {
        DeliveryOutcome::Answered {
            status: 200..=299, ..
        } => Step::Challenge,
        DeliveryOutcome::Answered { .. } => Step::Answer,
        DeliveryOutcome::Failed { kind, .. } => match (kind, phase) {
            (FailureKind::Dns | FailureKind::Egress, _) | (_, Phase::Resolving) => Step::Name,
            (FailureKind::Tls, _) => Step::Tls,
            (_, Phase::Connecting) => Step::Connection,
            (_, Phase::Waiting) => Step::Answer,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(kind: FailureKind, phase: Phase) -> Checked {
        let message = "why".to_owned();
        judge(DeliveryOutcome::Failed { kind, message }, phase, "abc")
    }

    fn answered(status: u16, body: &str) -> Checked {
        let outcome = DeliveryOutcome::Answered {
            status,
            retry_after: None,
            body: body.to_owned(),
        };
        judge(outcome, Phase::Waiting, "abc")
    }

    #[test]
    fn the_step_that_failed_is_named() {
        use FailureKind::{Connect, Dns, Egress, Protocol, Timeout, Tls};
        for (kind, phase, step) in [
            (Dns, Phase::Resolving, Step::Name),
            (Egress, Phase::Connecting, Step::Name),
            (Timeout, Phase::Resolving, Step::Name),
            (Timeout, Phase::Connecting, Step::Connection),
            (Connect, Phase::Connecting, Step::Connection),
            (Tls, Phase::Connecting, Step::Tls),
            (Connect, Phase::Waiting, Step::Answer),
            (Timeout, Phase::Waiting, Step::Answer),
            (Protocol, Phase::Waiting, Step::Answer),
        ] {
            assert_eq!(
                failed(kind, phase),
                Checked::Failed(step, "why".to_owned()),
                "{kind} {phase:?}"
            );
        }
        assert_eq!(
            failed(FailureKind::Local, Phase::Connecting),
            Checked::NotAsked("why".to_owned())
        );
    }

    #[test]
    fn an_answer_has_to_hold_the_challenge_and_its_status_is_not_told() {
        assert_eq!(answered(200, "abc"), Checked::Passed);
        assert!(matches!(answered(204, ""), Checked::Failed(Step::Challenge, _)));
        for status in [301, 404, 503] {
            let Checked::Failed(Step::Answer, told) = answered(status, "abc") else {
                panic!("{status}");
            };
            assert!(!told.contains(&status.to_string()), "{told}");
        }
    }
}
