//! Challenges to real endpoints, and what follows from their answers.

use std::sync::Arc;

use chrono::TimeDelta;
use domain::clock::{Clock, ManualClock};
use domain::subscription::{CHALLENGE_FLOOR_MAX, SubscriptionChange, SubscriptionState};
use encryption::{Sealer, SealingKey};
use signing::Secret;
use simulators::receiver::{Match, Options, Pattern, Receiver, Rule, Running, SecretFor};
use store::Act;
use store::webhook::Addresses;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::rig::{clock_of_last_week, signs_of_life, start_at};

struct Stage {
    it: Installation,
    clock: ManualClock,
    receiver: Running,
    secret: Secret,
}

impl Stage {
    async fn set(it: Installation) -> Self {
        let (secret, clock) = (Secret::generate(), clock_of_last_week());
        let options = Options {
            secrets: vec![SecretFor::everywhere(&secret.reveal()).unwrap()],
            clock: Arc::new(clock.clone()),
            ..Options::default()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self {
            receiver: Receiver::start(listener, options).unwrap(),
            it,
            clock,
            secret,
        }
    }

    /// A subscription that waits for its challenge at a path of the receiver.
    async fn subscribe(&self, path: &str) -> Uuid {
        let row = SubscriptionRow::in_state(SubscriptionState::PendingVerification);
        let key = self.it.config.reseller.secrets.key.as_ref().unwrap();
        let sealer = Sealer::new(&SealingKey::parse(key.expose()).unwrap(), &[]);
        let sealed = sealer.seal(row.id(), self.secret.expose_bytes()).unwrap();
        let row = row.url(&self.receiver.url(path)).sealed_secret(sealed);
        let id = row.timeout_millis(20_000).make(&self.it.pool).await;
        // The factory takes the time of the system.
        sqlx::query("UPDATE subscriptions SET verification_due_at = $2 WHERE id = $1")
            .bind(id)
            .bind(self.clock.now())
            .execute(&self.it.pool)
            .await
            .unwrap();
        id
    }

    fn start(&self) -> crate::rig::Worker {
        start_at(&self.it.config, Arc::new(self.clock.clone()))
    }

    /// Makes the receiver answer challenges otherwise.
    fn rule(&self, rule: Rule) {
        let matching = Match {
            event_type: Some(Pattern::Exact("postrider.verification".to_owned())),
            ..rule.matching.clone()
        };
        self.receiver.script(vec![Rule { matching, ..rule }]).unwrap();
    }

    async fn view(&self, id: Uuid) -> (String, i32, Option<String>) {
        sqlx::query_as(
            "SELECT state, verification_attempts, verification_error FROM subscriptions WHERE id = $1",
        )
        .bind(id)
        .fetch_one(&self.it.pool)
        .await
        .unwrap()
    }

    async fn activated(&self, id: Uuid) {
        eventually("the subscription to be activated", async || {
            (self.view(id).await.0 == "ACTIVE").then_some(())
        })
        .await;
    }

    /// Waits for a number of challenges to have failed; returns how the last one did.
    async fn failed(&self, id: Uuid, attempts: i32) -> String {
        eventually(&format!("{attempts} challenges to have failed"), async || {
            let (state, made, error) = self.view(id).await;
            assert_eq!(state, "PENDING_VERIFICATION");
            error.filter(|_| made == attempts)
        })
        .await
    }

    async fn mails(&self) -> Vec<(String, Option<String>)> {
        sqlx::query_as("SELECT kind, data ->> 'reason' FROM emails ORDER BY created_at")
            .fetch_all(&self.it.pool)
            .await
            .unwrap()
    }
}

#[testkit::test]
async fn an_endpoint_that_returns_a_signed_challenge_is_activated_and_told(mut it: Installation) {
    // Nothing of answers is kept; those to challenges are read all the same.
    it.config.reseller.delivery.response_body_bytes = 0;
    let stage = Stage::set(it).await;
    let id = stage.subscribe("/hook").await;
    let workers = [stage.start(), stage.start()];
    stage.activated(id).await;
    for worker in workers {
        worker.stop().await;
    }
    let received = stage.receiver.received(0, 10).items;
    assert_eq!(received.len(), 1, "{received:?}");
    assert!(received[0].verdict.is_believed(), "{received:?}");
    assert_eq!(received[0].event_type, "postrider.verification");
    assert_eq!(received[0].headers["event-id"], received[0].id);
    assert_eq!(
        stage.mails().await,
        [("STATE_CHANGED".to_owned(), Some("VERIFIED".to_owned()))]
    );
}

#[testkit::test]
async fn an_endpoint_that_answers_otherwise_is_asked_a_few_times_and_then_left_alone(mut it: Installation) {
    it.config.reseller.verification.max_attempts = 4;
    let delay = TimeDelta::from_std(it.config.reseller.verification.retry_delay).unwrap();
    let stage = Stage::set(it).await;
    let rule = |status, body: Option<&str>| Rule {
        status: Some(status),
        body: body.map(str::to_owned),
        ..Rule::default()
    };
    let redirect = Rule {
        headers: [("location".to_owned(), stage.receiver.url("/elsewhere"))].into(),
        ..rule(302, None)
    };
    let hanging = Rule {
        hang: true,
        ..Rule::default()
    };
    stage.rule(rule(404, None));
    let id = stage.subscribe("/hook").await;
    let _worker = stage.start();
    let error = stage.failed(id, 1).await;
    assert!(
        error.starts_with("the endpoint answered with another status than 200 to 299"),
        "{error}"
    );
    for (attempts, next, part) in [
        (2, rule(200, Some("something else")), "not with the challenge"),
        (3, redirect, "with another status"),
        (4, hanging, "no answer in time"),
    ] {
        if next.hang {
            sqlx::query("UPDATE subscriptions SET timeout_millis = 1000")
                .execute(&stage.it.pool)
                .await
                .unwrap();
        }
        stage.rule(next);
        stage.clock.advance(delay);
        let error = stage.failed(id, attempts).await;
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(stage.mails().await, [("VERIFICATION_FAILED".to_owned(), None)]);
    stage.clock.advance(TimeDelta::days(7));
    let seen = signs_of_life(&stage.it.pool, "verification").await.unwrap();
    eventually("the job to be executed", async || {
        signs_of_life(&stage.it.pool, "verification")
            .await
            .filter(|signs| *signs > seen + 2)
    })
    .await;
    assert_eq!(stage.receiver.report().received, 4);
}

#[testkit::test]
async fn the_answer_of_an_endpoint_that_is_not_the_subscriptions_any_more_activates_nothing(
    it: Installation,
) {
    let stage = Stage::set(it).await;
    stage.rule(Rule {
        matching: Match {
            path: Some(Pattern::Exact("/old".to_owned())),
            ..Match::default()
        },
        delay_millis: Some(700),
        status: Some(200),
        ..Rule::default()
    });
    let id = stage.subscribe("/old").await;
    let worker = stage.start();
    eventually("the old endpoint to be challenged", async || {
        (stage.receiver.report().received == 1).then_some(())
    })
    .await;
    let change = SubscriptionChange {
        url: Some(stage.receiver.url("/new")),
        ..SubscriptionChange::default()
    };
    let act = Act {
        by: "acme's key (1)",
        note: None,
        at: stage.clock.now(),
    };
    let changed = stage
        .it
        .store
        .change_subscription("acme", id, &change, Addresses::Trusted, act);
    assert!(changed.await.unwrap().is_some());
    // A challenge has just been made; on a slow machine it has failed already, which makes the pause after it longer.
    stage
        .clock
        .advance(TimeDelta::from_std(CHALLENGE_FLOOR_MAX).unwrap());
    stage.activated(id).await;
    worker.stop().await;
    let paths: Vec<_> = stage
        .receiver
        .received(0, 10)
        .items
        .into_iter()
        .map(|r| r.path)
        .collect();
    assert_eq!(paths, ["/old", "/new"]);
    let (_, _, error) = stage.view(id).await;
    assert_eq!(error, None);
}

#[testkit::test]
async fn a_challenge_that_was_lost_with_its_worker_is_made_again(it: Installation) {
    let stage = Stage::set(it).await;
    let id = stage.subscribe("/hook").await;
    // Where a worker that is killed during a challenge leaves it.
    let lease = std::time::Duration::from_secs(90);
    let claimed = stage
        .it
        .store
        .claim_verifications(stage.clock.now(), (10, 10), &[], lease)
        .await;
    assert_eq!(claimed.unwrap().len(), 1);
    let _worker = stage.start();
    eventually("the job to have been executed", async || {
        signs_of_life(&stage.it.pool, "verification")
            .await
            .filter(|signs| *signs > 2)
    })
    .await;
    assert_eq!(stage.receiver.report().received, 0);
    stage.clock.advance(TimeDelta::seconds(90));
    stage.activated(id).await;
}

#[testkit::test]
async fn without_a_sealing_key_no_endpoint_is_challenged(it: Installation) {
    let mut stage = Stage::set(it).await;
    let id = stage.subscribe("/hook").await;
    stage.it.config.reseller.secrets.key = None;
    let worker = stage.start();
    eventually("the job to have been executed", async || {
        signs_of_life(&stage.it.pool, "verification")
            .await
            .filter(|signs| *signs > 2)
    })
    .await;
    worker.stop().await;
    assert_eq!(stage.view(id).await, ("PENDING_VERIFICATION".to_owned(), 0, None));
    assert_eq!(stage.receiver.report().received, 0);
}
