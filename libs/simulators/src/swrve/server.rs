//! Starts and stops the simulator. It runs on threads of its own, so that the stamps of arrivals do not wait for
//! whatever else the process does.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::net::TcpListener;

use crate::script::{Script, ScriptError, check};
use crate::server::{Server, ServerError};
use crate::swrve::options::Options;
use crate::swrve::received::ReceivedPage;
use crate::swrve::recorder::{PushFields, Recorder, Ticket};
use crate::swrve::report::Report;
use crate::swrve::response_time::ResponseTime;
use crate::swrve::script::Rule;
use crate::swrve::{connection, http_api};

/// Why a simulator could not start.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The listener or its threads.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The script of the options is invalid.
    #[error("the script is invalid")]
    Script(#[source] ScriptError),
}

/// Starts simulators.
#[derive(Debug, Clone, Copy)]
pub struct SwrveSim;

/// A simulator at work. Dropping it stops it as well, without waiting.
#[derive(Debug)]
pub struct Running {
    server: Server,
    simulator: Arc<Simulator>,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Simulator {
    response_time: ResponseTime,
    requests_per_second: Option<u32>,
    recorder: Mutex<Recorder>,
    script: Mutex<Script<Rule>>,
    random: Mutex<StdRng>,
}

impl SwrveSim {
    /// Serves `listener` until the returned handle is shut down or dropped.
    pub fn start(listener: TcpListener, options: Options) -> Result<Running, SimError> {
        check(&options.script).map_err(SimError::Script)?;
        let threads = options.worker_threads;
        let simulator = Arc::new(Simulator::new(options));
        let router = http_api::router(simulator.clone());
        let server = Server::start("swrve-sim", threads, listener, {
            let simulator = simulator.clone();
            move |stream| connection::serve(stream, router.clone(), simulator.clone())
        })?;
        Ok(Running { server, simulator })
    }
}

impl Running {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// What has arrived, and how.
    pub fn report(&self) -> Report {
        self.simulator.recorder().report()
    }

    /// Up to `limit` of the latest requests, from the one after number `after`; from the oldest for 0.
    pub fn received(&self, after: u64, limit: usize) -> ReceivedPage {
        self.simulator.recorder().page(after, limit)
    }

    /// Replaces the rules in force.
    ///
    /// # Errors
    /// The first invalid rule; the old rules stay in force then.
    pub fn script(&self, rules: Vec<Rule>) -> Result<(), ScriptError> {
        check(&rules)?;
        self.simulator.take_rules(rules);
        Ok(())
    }

    /// Forgets all that has arrived; the rules stay in force.
    pub fn reset(&self) {
        self.simulator.recorder().reset();
    }

    /// Stops: the listener and all connections are closed when it returns, unanswered requests included.
    pub async fn shutdown(self) {
        self.server.shutdown().await;
    }
}

impl Simulator {
    fn new(options: Options) -> Self {
        Self {
            recorder: Mutex::new(Recorder::new(&options)),
            script: Mutex::new(Script::new(options.script)),
            random: Mutex::new(
                options
                    .random_seed
                    .map_or_else(rand::make_rng, StdRng::seed_from_u64),
            ),
            response_time: options.response_time,
            requests_per_second: options.requests_per_second,
        }
    }

    pub(crate) fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn script(&self) -> MutexGuard<'_, Script<Rule>> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts checked rules in force.
    pub(crate) fn take_rules(&self, rules: Vec<Rule>) {
        *self.script() = Script::new(rules);
    }

    pub(crate) fn rule_for(&self, fields: PushFields<'_>) -> Option<Rule> {
        let matches = |rule: &Rule| {
            rule.matching
                .matches(fields.user, fields.message, fields.push_key)
        };
        self.script().apply(matches)
    }

    pub(crate) fn is_over_limit(&self, ticket: Ticket) -> bool {
        self.requests_per_second
            .is_some_and(|limit| ticket.in_last_second > limit as usize)
    }

    pub(crate) fn draw_response_time(&self) -> Duration {
        let quantile = self
            .random
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .random::<f64>();
        self.response_time.at_quantile(quantile)
    }
}
