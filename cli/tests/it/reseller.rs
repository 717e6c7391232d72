//! The reseller lane from end to end: all services in one process, a receiver, and what an implementation that is not ours says of
//! what arrived there.

use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use simulators::receiver::{Options, Received, Receiver, Running as Endpoint, SecretFor, Verdict};
use testkit::{Installation, eventually};
use tokio::net::TcpListener;

use crate::postrider::{Postrider, Running, is_put_off, key_of, postrider, until_accepted, until_ready};
use crate::python::{Message, verdicts};

const RESELLER: &str = "acme";
const PATH: &str = "/hook";
const EVENTS: usize = 30;

/// All services, a receiver, and the keys for them.
pub(crate) struct Lane {
    _process: Running,
    pub(crate) endpoint: Endpoint,
    client: Client,
    ingest: (String, String),
    portal: (String, String),
    operator: String,
    admin_key: String,
    metrics_url: String,
    swrve_sim_url: String,
}

impl Lane {
    pub(crate) async fn start(it: &Installation) -> Self {
        lifecycle::crypto::install_default_provider();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let process = postrider("up")
            .within(it)
            .with_reseller_lane()
            .env("POSTRIDER__PUSH__RETRY__DELAY_IN_SECONDS", "0")
            .env(
                "POSTRIDER__SWRVE__MESSAGE_PROTOTYPE_PUSH_KEYS",
                r#"{"Hello": {"IOS": "key-for-ios", "ANDROID": "key-for-android"}}"#,
            )
            .start();
        let url = |message| format!("http://{}", process.address_logged_with(message));
        let admin = url("serving /healthz, /readyz and /metrics");
        let (ingest, portal, operator) = (url("listening"), url("listening"), url("listening"));
        until_ready(admin.trim_start_matches("http://")).await;
        let key = |role: &str| key_of(&it.pool, role);
        Self {
            _process: process,
            endpoint: Receiver::start(listener, Options::default()).expect("the receiver starts"),
            client: Client::builder().no_proxy().build().expect("a client"),
            ingest: (ingest, key("ingest")),
            portal: (portal, key(&format!("reseller --reseller {RESELLER}"))),
            operator,
            admin_key: key("admin"),
            metrics_url: format!("{admin}/metrics"),
            swrve_sim_url: format!("http://{}", it.sim.addr()),
        }
    }

    /// A command of resellers, with the address and the key that it needs.
    pub(crate) fn reseller(&self, arguments: &str) -> Postrider {
        postrider(arguments)
            .env("PORTAL_URL", &self.portal.0)
            .env("RESELLER_KEY", &self.portal.1)
    }

    async fn portal(&self, path: &str, body: Option<Value>) -> Value {
        let (url, key) = &self.portal;
        let url = format!("{url}{path}");
        let request = match body {
            Some(body) => self.client.post(url).json(&body),
            None => self.client.get(url),
        };
        answer(request.bearer_auth(key)).await
    }

    /// A subscription for everything, verified; with its first secret.
    pub(crate) async fn subscribe(&self) -> (String, String) {
        let subscription =
            json!({"url": self.endpoint.url(PATH), "eventTypes": ["*"], "email": "ops@example.org"});
        let created = self.portal("/subscriptions", Some(subscription)).await;
        let id = created["id"].as_str().expect("an identifier").to_owned();
        eventually("the endpoint to be verified", async || {
            let found = self.portal(&format!("/subscriptions/{id}"), None).await;
            (found["state"] == "ACTIVE").then_some(())
        })
        .await;
        let secret = created["secret"]["secret"].as_str().expect("a secret");
        (id, secret.to_owned())
    }

    pub(crate) async fn send(&self, note: &str) {
        let (url, key) = &self.ingest;
        let event = json!({
            "eventId": uuid::Uuid::now_v7(), "type": "contact.deleted", "resellerId": RESELLER, "data": {"contact": {"id": format!("contact-42 {note}")}},
        });
        let request = self
            .client
            .post(format!("{url}/events"))
            .json(&event)
            .bearer_auth(key);
        // It has a name, so that it may be asked again for the same.
        until_accepted(request).await;
    }

    /// Everything that arrived, once so many notifications were accepted.
    pub(crate) async fn arrived(&self, wanted: u64) -> Vec<Received> {
        eventually("the notifications to arrive", async || {
            let report = self.endpoint.report();
            (report.accepted >= wanted && report.in_flight == 0).then_some(())
        })
        .await;
        self.endpoint.received(0, usize::MAX).items
    }
}

async fn answer(request: RequestBuilder) -> Value {
    let response = request.send().await.expect("it answers");
    let status = response.status();
    let body = response.bytes().await.expect("a body");
    assert!(
        status.is_success(),
        "{status}: {}",
        String::from_utf8_lossy(&body)
    );
    serde_json::from_slice(&body).expect("JSON")
}

fn messages<'a>(received: &'a [Received], secret: &'a str) -> Vec<Message<'a>> {
    let message = |request: &'a Received| Message {
        secrets: vec![secret],
        headers: json!(request.headers),
        body: request.body.as_bytes(),
        now: None,
    };
    received.iter().map(message).collect()
}

#[testkit::test]
async fn an_independent_implementation_accepts_what_is_delivered_and_refuses_what_was_changed(
    it: Installation,
) {
    let lane = Lane::start(&it).await;
    let (id, old) = lane.subscribe().await;
    let rotated = lane
        .portal(&format!("/subscriptions/{id}/secrets"), Some(json!({})))
        .await;
    let new = rotated["secret"].as_str().expect("a secret");
    let knows = [SecretFor::path(PATH, new), SecretFor::path(PATH, &old)];
    lane.endpoint
        .secrets(knows.map(|secret| secret.expect("valid")).into());
    // Each is refused at first, so that retries are judged as well.
    let rule = simulators::receiver::Rule::answering(503).first(1);
    lane.endpoint.script(vec![rule]).expect("a rule");
    for number in 0..EVENTS {
        lane.send(&format!(
            "ünï©ødé № {number} \u{1F980} \"\\\u{0} {}",
            "x".repeat(number * 50)
        ))
        .await;
    }
    let challenges = 1;
    let all = lane.arrived(challenges + EVENTS as u64).await;
    assert!(all.len() > 2 * EVENTS, "{}", all.len());
    let (challenge, notifications) = all.split_at(1);
    assert_eq!(verdicts(&messages(challenge, &old)), ["ok"]);
    assert!(
        notifications
            .iter()
            .all(|request| request.verdict == Verdict::Verified)
    );
    for secret in [&old, new] {
        assert_eq!(
            verdicts(&messages(notifications, secret)),
            vec!["ok"; notifications.len()]
        );
    }
    let changed: Vec<_> = notifications
        .iter()
        .map(|request| Received {
            body: request.body.replace("contact-42", "contact-43"),
            ..request.clone()
        })
        .collect();
    for verdict in verdicts(&messages(&changed, new)) {
        assert_eq!(verdict, "WebhookVerificationError: No matching signature found");
    }
}

#[testkit::test]
async fn retries_carry_the_same_bytes_identifier_and_key(it: Installation) {
    let lane = Lane::start(&it).await;
    lane.subscribe().await;
    let rule = simulators::receiver::Rule::answering(503).first(2);
    lane.endpoint.script(vec![rule]).expect("a rule");
    lane.send("once").await;
    let all = lane.arrived(2).await;
    let attempts = &all[1..];
    assert!(attempts.len() >= 3, "{}", attempts.len());
    for attempt in attempts {
        assert_eq!(attempt.body, attempts[0].body);
        let key = signing::idempotency_key(attempt.body.as_bytes());
        assert_eq!(attempt.headers["idempotency-key"], key);
        assert_eq!(attempt.headers["event-id"], attempts[0].id);
        assert_eq!(attempt.headers["webhook-id"], attempts[0].id);
        assert_eq!(attempt.headers["content-type"], "application/json");
    }
}

#[testkit::test]
async fn the_demo_shows_the_reseller_lane_and_says_what_deviates(it: Installation) {
    let lane = Lane::start(&it).await;
    let demo = |reseller: &str, timeout: u32| {
        postrider(&format!("demo --pushes 2 --events 20 --timeout {timeout}"))
            .env("INGEST_URL", &lane.ingest.0)
            .env("INGEST_KEY", &lane.ingest.1)
            .env("METRICS_URL", &lane.metrics_url)
            .env("SWRVE_SIM_URL", &lane.swrve_sim_url)
            .env("PORTAL_URL", &lane.portal.0)
            .env("RESELLER_KEY", &lane.portal.1)
            .env("RESELLER_ID", reseller)
            .env("OPERATOR_URL", &lane.operator)
            .env("ADMIN_KEY", &lane.admin_key)
            .env("RECEIVER_URL", lane.endpoint.url(""))
            .run()
    };
    let finished = eventually("the demo to get answers", async || {
        let finished = demo(RESELLER, 200);
        (!is_put_off(&finished)).then_some(finished)
    })
    .await;
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    for part in [
        "3 x SCHEDULED, 2 x SENT",
        "410, ends its subscription",
        "0 of them with a signature that it doubts",
    ] {
        assert!(finished.stdout.contains(part), "{}", finished.stdout);
    }
    // Events of a reseller that has no subscriptions reach no endpoint.
    let finished = demo("another-reseller", 30);
    assert_eq!(finished.code, Some(1), "{}\n{}", finished.stdout, finished.stderr);
    let wanted = "delivered: should be SENT after 1 attempt";
    assert!(finished.stderr.contains(wanted), "{}", finished.stderr);
    let left = lane.portal("/subscriptions", None).await;
    assert_eq!(left["items"], json!([]));
}
