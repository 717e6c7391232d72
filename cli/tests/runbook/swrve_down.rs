//! Swrve is down for an hour; a driven clock lets it pass in seconds.

use std::sync::Arc;
use std::time::Duration;

use chrono::{SubsecRound as _, TimeDelta};
use domain::clock::{Clock as _, ManualClock, SystemClock};
use domain::key::Role;
use domain::push::PushStatus;
use simulators::swrve::Rule;
use testkit::{Installation, Service, eventually, key_of_the_house};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::page::Page;
use crate::rig::{Answers, count_with_status};
use crate::scene::{all_sent_once, path_with_postrider};

const PUSHES: usize = 20;

/// All that a push passes, in this process, by one clock.
struct Town {
    clock: ManualClock,
    ingest: String,
    ingest_key: String,
    operator: String,
    operator_key: String,
    _ingest_api: Service<ingest_api::Error>,
    _dispatcher: Service<dispatcher::Error>,
    _retry_worker: Service<retry_worker::Error>,
    _operator_api: Service<operator_api::Error>,
    _portal: Service<reseller_portal::Error>,
}

async fn free_port() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!(
        "http://{}",
        listener.local_addr().expect("a bound listener has an address")
    );
    (listener, url)
}

impl Town {
    async fn of(it: &Installation) -> Self {
        let clock = ManualClock::starting_at(SystemClock.now().trunc_subsecs(6));
        let (config, grace) = (it.shared_config(), it.config.shutdown.grace_period);
        let (ingest, ingest_url) = free_port().await;
        let (operator, operator_url) = free_port().await;
        let (portal, _) = free_port().await;
        let shared = || Arc::new(clock.clone());
        Self {
            ingest: ingest_url,
            ingest_key: key_of_the_house(&it.store, &[Role::Ingest]).await,
            operator: operator_url,
            operator_key: key_of_the_house(&it.store, &[Role::Operator]).await,
            _ingest_api: Service::start(grace, |lifecycle| {
                ingest_api::run_with_clock(config.clone(), ingest, lifecycle, shared())
            }),
            _dispatcher: Service::start(grace, |lifecycle| {
                dispatcher::run_with_clock(config.clone(), lifecycle, shared())
            }),
            _retry_worker: Service::start(grace, |lifecycle| {
                retry_worker::run_with_clock(config.clone(), lifecycle, shared())
            }),
            _operator_api: Service::start(grace, |lifecycle| {
                operator_api::run_with_clock(config.clone(), operator, lifecycle, shared())
            }),
            _portal: Service::start(grace, |lifecycle| {
                reseller_portal::run_with_clock(config.clone(), portal, lifecycle, shared())
            }),
            clock,
        }
    }

    /// Time goes by, some hundred times as fast as it does, until the result is dropped.
    fn time_flies(&self) -> AbortOnDropHandle<()> {
        let clock = self.clock.clone();
        AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                clock.advance(TimeDelta::seconds(5));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }))
    }

    async fn hand_in(&self, group: &str) -> Answers {
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let mut answers = Answers::new();
        for number in 0..PUSHES {
            let user = format!("{group}-{number}");
            let body = serde_json::json!({
                "platform": "IOS", "messagePrototypeKey": "Hello", "pushKey": user, "message": "Hello client!",
            });
            // Asked again with the same key, as a caller should.
            let id = eventually("a push to be accepted", async || {
                let request = http.post(format!("{}/push", self.ingest));
                let request = request
                    .bearer_auth(&self.ingest_key)
                    .header("idempotency-key", &user);
                let answer = request.json(&body).send().await.ok()?;
                let accepted = answer.status() == 202;
                let location = answer.headers().get("location")?.to_str().ok()?.to_owned();
                accepted.then(|| location.rsplit('/').next()?.parse().ok())?
            })
            .await;
            answers.insert(user, id);
        }
        answers
    }
}

#[testkit::test]
async fn swrve_is_down_for_an_hour(mut it: Installation) {
    it.config.push.retry.delay = Duration::from_secs(300);
    it.config.push.retry.max_attempts = 3;
    it.sim.script(vec![down()]).expect("a script");
    let town = Town::of(&it).await;
    let mut page = Page::section("Swrve is down");
    page.set("PATH", path_with_postrider());
    page.set("OPERATOR_URL", &town.operator);
    page.set("OPERATOR_KEY", &town.operator_key);
    page.sign_in().await;
    let began = town.clock.now();
    let mut answers = town.hand_in("early").await;
    let flying = town.time_flies();
    eventually("Swrve to be probed", async || {
        let holds = it.store.list_holds().await.ok()?;
        (holds.first()?.probes > 0).then_some(())
    })
    .await;
    page.follow().await.shows(&["Swrve is out of order", "503"]);
    answers.extend(town.hand_in("late").await);
    eventually("the hour to pass", async || {
        (town.clock.now() - began > TimeDelta::hours(1)).then_some(())
    })
    .await;
    it.sim.script(Vec::new()).expect("a script");
    has_status(&it, "early", PushStatus::Sent).await;
    has_status(&it, "late", PushStatus::Sent).await;
    drop(flying);
    page.follow_until_well().await;
    page.end();
    all_sent_once(&it, &answers).await;
}

fn down() -> Rule {
    Rule {
        status: Some(503),
        ..Rule::default()
    }
}

async fn has_status(it: &Installation, group: &str, status: PushStatus) {
    eventually(&format!("the {group} pushes to be {status}"), async || {
        (count_with_status(it, group, status).await == PUSHES as i64).then_some(())
    })
    .await;
}
