//! What an endpoint goes through: the challenge, notifications, a rotation of its secret that is forgotten halfway, a replay of
//! what it missed meanwhile, and a resend of what it had.

use std::net::Ipv4Addr;

use serde_json::{Value, json};
use sqlx::PgPool;
use testkit::{FaultProxy, Installation, Toxic, eventually, run};

use crate::example::{Example, Kind};
use crate::lane::Lane;

const TYPE: &str = "domain.unsuspended";

/// An endpoint, what delivers to it, and what is between them.
struct Scene {
    lane: Lane,
    /// One address that stays while the process behind it is replaced.
    relay: FaultProxy,
    example: Example,
    subscription: String,
    first_secret: (String, String),
}

pub(crate) async fn an_endpoint_lives_through_rotation_and_replay(pool: PgPool, kind: Kind) {
    run(pool, async |it: Installation| {
        let mut scene = Scene::begin(Lane::start(&it).await, Example::prepare(kind)).await;
        scene.processes("before", 3).await;
        let new = scene.rotate_and_forget_the_endpoint().await;
        let missed = scene.misses_one().await;
        scene.restart(&[&new]).await;
        scene.replay(&missed).await;
        scene.processes("after", 2).await;
        scene.repeat().await;
        scene.comes_late().await;
        scene.everything_was_processed_once();
        scene.example.stop().await;
    })
    .await;
}

impl Scene {
    /// A subscription whose endpoint has answered its challenge.
    async fn begin(lane: Lane, mut example: Example) -> Self {
        let relay = FaultProxy::listening_on((Ipv4Addr::LOCALHOST, 0).into())
            .await
            .expect("a free port");
        let held = relay.add(Toxic::Silence);
        let created = lane
            .post(
                "/subscriptions",
                json!({"url": format!("http://{}/hooks", relay.address()), "eventTypes": ["*"], "email": "ops@example.org"}),
            )
            .await;
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let subscription = text(&created["id"]);
        let first_secret = (text(&created["secret"]["id"]), text(&created["secret"]["secret"]));
        relay.lead_to(example.start(&[&first_secret.1]).await.to_string());
        drop(held);
        // The challenge may have come while the example was being started, and been given up.
        let path = format!("/subscriptions/{subscription}");
        eventually("the endpoint to be verified", async || {
            let found = lane.get(&path).await;
            if !found["verification"]["error"].is_null() {
                lane.ask(&format!("{path}/verify")).await;
            }
            (found["state"] == "ACTIVE").then_some(())
        })
        .await;
        let is_challenge = |line: &String| line.starts_with("challenge");
        assert!(example.lines().iter().any(is_challenge), "{:?}", example.lines());
        Self {
            lane,
            relay,
            example,
            subscription,
            first_secret,
        }
    }

    async fn restart(&mut self, secrets: &[&str]) {
        // What calls meanwhile is held, on connections that do not lead to the old process.
        let _held = self.relay.add(Toxic::Silence);
        self.relay.reset();
        let address = self.example.start(secrets).await;
        self.relay.lead_to(address.to_string());
    }

    async fn prints(&self, line: &str) {
        eventually(&format!("the example to print {line:?}"), async || {
            self.example
                .lines()
                .iter()
                .any(|known| known == line)
                .then_some(())
        })
        .await;
    }

    /// Reports an event and waits for the end of its notification; returns its identifier and status.
    async fn deliver(&self, id: &str) -> (String, String) {
        let data = json!({"domain": {"name": format!("{id}.example")}});
        self.lane.report(id, TYPE, "2025-07-20T12:00:00Z", &data).await;
        self.lane.ended(&self.subscription, id).await
    }

    async fn processes(&self, name: &str, events: usize) {
        for number in 1..=events {
            let id = format!("{name}-{number}");
            assert_eq!(self.deliver(&id).await.1, "SENT");
            self.prints(&self.example.says_new(TYPE, &id)).await;
        }
    }

    /// Both secrets sign at first, so that nothing is lost; then the old one is revoked, and the reseller has not told the
    /// endpoint the new one. Returns the new one.
    async fn rotate_and_forget_the_endpoint(&self) -> String {
        let path = format!("/subscriptions/{}/secrets", self.subscription);
        let made = self.lane.post(&path, json!({})).await;
        self.processes("rotating", 2).await;
        self.lane.delete(&format!("{path}/{}", self.first_secret.0)).await;
        made["secret"].as_str().expect("a secret").to_owned()
    }

    /// Reports events until the endpoint refuses one; returns its name. A revoked secret may sign what was under way.
    async fn misses_one(&self) -> String {
        let mut number = 0;
        let missed = eventually("the endpoint to refuse one", async || {
            number += 1;
            let id = format!("missed-{number}");
            (self.deliver(&id).await.1 == "FAILED").then_some(id)
        })
        .await;
        self.prints(Example::REFUSED).await;
        let new = self.example.says_new(TYPE, &missed);
        assert!(!self.example.lines().contains(&new), "{:?}", self.example.lines());
        missed
    }

    /// What was missed arrives, and nothing else does.
    async fn replay(&self, missed: &str) {
        let before = self.example.lines().len();
        let path = format!("/subscriptions/{}/replays", self.subscription);
        let subscription = self
            .lane
            .get(&format!("/subscriptions/{}", self.subscription))
            .await;
        let replay = self
            .lane
            .post(&path, json!({"since": subscription["createdAt"]}))
            .await;
        let replay = format!("{path}/{}", replay["id"].as_str().expect("an identifier"));
        eventually("the replay to end", async || {
            (self.lane.get(&replay).await["status"] == "COMPLETED").then_some(())
        })
        .await;
        self.prints(&self.example.says_new(TYPE, missed)).await;
        assert_eq!(self.lane.get(&replay).await["replayed"], 1);
        let since = &self.example.lines()[before..];
        assert_eq!(since, [self.example.says_new(TYPE, missed)]);
    }

    /// What was processed is sent again, and not processed again: not by the process that did, and not by a later one, unless it
    /// forgets.
    async fn repeat(&self) {
        let remembered = if self.example.remembers() {
            "before-1"
        } else {
            "after-1"
        };
        let (id, _) = self.lane.ended(&self.subscription, remembered).await;
        self.lane
            .post(&format!("/notifications/{id}/resend"), Value::Null)
            .await;
        self.prints(&self.example.says_seen(TYPE, remembered)).await;
    }

    /// Of two events with one domain, the later one arrives first.
    async fn comes_late(&self) {
        let domain = json!({"domain": {"name": "late.example"}});
        let suspended = json!({"domain": {"name": "late.example"}, "reason": "verification"});
        for (id, event_type, at, data) in [
            ("later", TYPE, "2025-07-20T12:00:00.002Z", &domain),
            (
                "earlier",
                "domain.suspended",
                "2025-07-20T12:00:00.001Z",
                &suspended,
            ),
        ] {
            self.lane.report(id, event_type, at, data).await;
            assert_eq!(self.lane.ended(&self.subscription, id).await.1, "SENT");
            self.prints(&self.example.says_new(event_type, id)).await;
        }
        if let Some(found) = self
            .example
            .query("SELECT state FROM domains WHERE name = 'late.example'")
        {
            assert_eq!(found.trim(), TYPE);
        }
    }

    fn everything_was_processed_once(&self) {
        let mut processed = self.example.lines();
        let is_processed = |line: &String| ["new ", "processed "].iter().any(|word| line.starts_with(word));
        processed.retain(is_processed);
        processed.sort_unstable();
        let lines = processed.len();
        processed.dedup();
        assert_eq!(processed.len(), lines, "{:?}", self.example.lines());
        if let Some(found) = self.example.query("SELECT count(*) FROM inbox") {
            assert_eq!(found.trim(), lines.to_string());
        }
    }
}
