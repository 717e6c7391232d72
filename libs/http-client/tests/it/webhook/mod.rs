//! The client of the resellers' endpoints.

mod addresses;
mod answers;
mod deadline;
mod endpoints;
mod environment;
mod guard;
mod hostile;
mod names;
mod tls;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use domain::notification::{DeliveryOutcome, FailureKind};
use http::HeaderMap;
use http_client::{
    Addresses, EgressPolicy, Endpoint, LookupError, NameResolver, WebhookClient, WebhookReply,
    WebhookRequest, WebhookSettings,
};

use crate::receiver::{Conduct, Receiver};
use crate::swrve::LONG;

const KEPT: usize = 4_096;

/// The one address that is allowed in most tests; everything else of the machine is forbidden.
const HERE: &str = "127.0.0.1";

/// A resolver with an answer for each call; the last one is given again and again. It knows one name only.
struct Script {
    answers: Mutex<Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Script {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self {
            answers: Mutex::new(answers.iter().map(parse).collect()),
            asked: Mutex::default(),
        })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl NameResolver for Script {
    fn addresses(&self, name: &str) -> Addresses {
        self.asked.lock().unwrap().push(name.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let answer = match answers.len() {
            0 => Err(LookupError::NotFound),
            1 => Ok(answers[0].clone()),
            _ => Ok(answers.remove(0)),
        };
        Box::pin(async move { answer })
    }
}

fn policy(allow: &[&str], allow_http: bool) -> EgressPolicy {
    let allow = allow
        .iter()
        .map(|text| text.parse::<IpAddr>().unwrap().into())
        .collect();
    EgressPolicy {
        allow,
        allow_http,
        ..EgressPolicy::default()
    }
}

fn settings(egress: EgressPolicy) -> WebhookSettings {
    WebhookSettings {
        egress,
        response_body_bytes: KEPT,
    }
}

/// A client that may speak plain http to [`HERE`].
fn client() -> WebhookClient {
    WebhookClient::new(&settings(policy(&[HERE], true))).unwrap()
}

/// The same, with scripted names.
fn client_with_names(names: &Arc<Script>) -> WebhookClient {
    WebhookClient::builder(&settings(policy(&[HERE], true)))
        .resolver(Arc::clone(names) as Arc<dyn NameResolver>)
        .build()
        .unwrap()
}

fn request(url: &str, timeout: Duration) -> WebhookRequest {
    WebhookRequest {
        endpoint: Endpoint::parse(url).unwrap(),
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"{\"id\":\"1\"}"),
        timeout,
    }
}

async fn send(client: &WebhookClient, url: &str) -> WebhookReply {
    client.send(request(url, LONG)).await
}

fn url_of(addr: SocketAddr) -> String {
    format!("http://{addr}/hooks")
}

/// The reply of a receiver of this conduct, which gets exactly one request.
async fn reply_of(conduct: Conduct, timeout: Duration) -> WebhookReply {
    let receiver = Receiver::start(conduct).await;
    let reply = client().send(request(&url_of(receiver.addr), timeout)).await;
    assert_eq!(receiver.requests().len(), 1, "exactly one request is made");
    reply
}

fn failure(outcome: DeliveryOutcome) -> (FailureKind, String) {
    match outcome {
        DeliveryOutcome::Failed { kind, message } => (kind, message),
        answered @ DeliveryOutcome::Answered { .. } => panic!("expected a failure, got {answered:?}"),
    }
}

fn status(outcome: &DeliveryOutcome) -> u16 {
    match outcome {
        DeliveryOutcome::Answered { status, .. } => *status,
        failed @ DeliveryOutcome::Failed { .. } => panic!("expected an answer, got {failed:?}"),
    }
}
