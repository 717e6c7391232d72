//! Swrve and the endpoints of resellers: simulators inside this process, how they behave, and what arrives there.

mod behaviours;
mod collector;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use simulators::receiver::{Receiver, Rule};
use simulators::swrve::{ResponseTime, SwrveSim};
use tokio::net::TcpListener;

use crate::ledger::Ledger;
use crate::plan::Behaviour;
use behaviours::Behaviours;

/// Every request is kept until it has ended, and none hangs for so long that so many others could come.
const KEPT: usize = 500_000;
const KEPT_BYTES: usize = 512 << 20;
/// Clocks are set wrong on purpose, so no signature is too old.
const TOLERANCE: Duration = Duration::from_secs(365 * 24 * 3600);
/// How long Swrve takes.
const SWRVE_TAKES: Duration = Duration::from_millis(60);

/// Both, at work.
pub struct Receivers {
    /// Swrve.
    pub swrve: simulators::swrve::Running,
    /// All endpoints.
    pub endpoints: simulators::receiver::Running,
    swrve_behaviours: Behaviours,
    endpoint_behaviours: Behaviours,
    endpoint_rules: Vec<Rule>,
}

impl Receivers {
    /// Starts both, on ports of their own.
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("no port for Swrve")?;
        let swrve = simulators::swrve::Options {
            response_time: ResponseTime::Fixed(SWRVE_TAKES),
            // The pace is proved by the starts; what the network makes of it must not change what comes of a push.
            requests_per_second: None,
            received_capacity: KEPT,
            worker_threads: 1,
            script: behaviours::swrve_rules(None),
            ..simulators::swrve::Options::default()
        };
        let swrve = SwrveSim::start(listener, swrve).context("Swrve does not start")?;
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("no port for endpoints")?;
        let endpoints = simulators::receiver::Options {
            tolerance: TOLERANCE,
            received_capacity: KEPT,
            received_bytes: KEPT_BYTES,
            worker_threads: 1,
            ..simulators::receiver::Options::default()
        };
        let endpoints = Receiver::start(listener, endpoints).context("the endpoints do not start")?;
        Ok(Self {
            swrve,
            endpoints,
            swrve_behaviours: Behaviours::default(),
            endpoint_behaviours: Behaviours::default(),
            endpoint_rules: Vec::new(),
        })
    }

    /// The endpoints behave so from now on, and know these secrets.
    pub fn furnish(&mut self, rules: Vec<Rule>, secrets: Vec<simulators::receiver::SecretFor>) {
        self.endpoint_rules = rules;
        self.endpoints.secrets(secrets);
        self.apply();
    }

    /// Swrve behaves so for a while.
    pub async fn swrve_for(&self, behaviour: Behaviour, lasts: Duration) {
        let number = self.swrve_behaviours.begin(behaviour);
        self.apply();
        tokio::time::sleep(lasts).await;
        self.swrve_behaviours.end(number);
        self.apply();
    }

    /// The endpoints behave so for a while.
    pub async fn endpoints_for(&self, behaviour: Behaviour, lasts: Duration) {
        let number = self.endpoint_behaviours.begin(behaviour);
        self.apply();
        tokio::time::sleep(lasts).await;
        self.endpoint_behaviours.end(number);
        self.apply();
    }

    /// Ends all behaviours.
    pub fn heal(&self) {
        self.swrve_behaviours.clear();
        self.endpoint_behaviours.clear();
        self.apply();
    }

    fn apply(&self) {
        let swrve = behaviours::swrve_rules(self.swrve_behaviours.present());
        let endpoints = behaviours::endpoint_rules(self.endpoint_behaviours.present(), &self.endpoint_rules);
        // The rules are made here, and each of them is valid.
        let taken = self.swrve.script(swrve).is_ok() & self.endpoints.script(endpoints).is_ok();
        debug_assert!(taken);
    }

    /// How many requests have no answer yet.
    pub fn in_flight(&self) -> u64 {
        self.swrve.report().in_flight + self.endpoints.report().in_flight
    }

    /// Writes down what has ended since, and at last what never ended.
    pub fn collect(&self, cursors: &mut Cursors, ledger: &Arc<Ledger>, at_last: bool) {
        collector::swrve(&self.swrve, &mut cursors.swrve, ledger, at_last);
        collector::endpoints(&self.endpoints, &mut cursors.endpoints, ledger, at_last);
    }
}

/// How far the arrivals are written down.
#[derive(Debug, Default)]
pub struct Cursors {
    swrve: u64,
    endpoints: u64,
}
