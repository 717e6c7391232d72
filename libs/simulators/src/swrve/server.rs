//! Starts and stops the simulator. It runs on threads of its own, so that the stamps of arrivals do not wait for
//! whatever else the process does.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use axum::Router;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::swrve::options::Options;
use crate::swrve::received::ReceivedPage;
use crate::swrve::recorder::{PushFields, Recorder, Ticket};
use crate::swrve::report::Report;
use crate::swrve::response_time::ResponseTime;
use crate::swrve::script::{Rule, Script, ScriptError, check};
use crate::swrve::{connection, http_api};

/// How long a failed accept is waited out: what it fails for, such as too few descriptors, does not pass at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long the threads may take to stop; nothing that they run blocks.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a simulator could not start.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The listener cannot be moved to the simulator's threads.
    #[error("the listener cannot be used")]
    Listener(#[source] io::Error),
    /// No threads for it.
    #[error("the simulator's threads could not be started")]
    Threads(#[source] io::Error),
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
    addr: SocketAddr,
    simulator: Arc<Simulator>,
    stop: DropGuard,
    stopped: oneshot::Receiver<()>,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Simulator {
    response_time: ResponseTime,
    requests_per_second: Option<u32>,
    recorder: Mutex<Recorder>,
    script: Mutex<Script>,
    random: Mutex<StdRng>,
}

impl SwrveSim {
    /// Serves `listener` until the returned handle is shut down or dropped.
    ///
    /// # Errors
    /// See [`SimError`].
    pub fn start(listener: TcpListener, options: Options) -> Result<Running, SimError> {
        check(&options.script).map_err(SimError::Script)?;
        let addr = listener.local_addr().map_err(SimError::Listener)?;
        let listener = listener.into_std().map_err(SimError::Listener)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.worker_threads.max(1))
            .thread_name("swrve-sim")
            .enable_all()
            .build()
            .map_err(SimError::Threads)?;
        let listener = {
            let _context = runtime.enter();
            TcpListener::from_std(listener).map_err(SimError::Listener)?
        };
        let simulator = Arc::new(Simulator::new(options));
        let (token, (stopping, stopped)) = (CancellationToken::new(), oneshot::channel());
        thread::Builder::new()
            .name("swrve-sim".to_owned())
            .spawn({
                let (simulator, token) = (simulator.clone(), token.clone());
                move || {
                    serve_until_cancelled(runtime, listener, simulator, &token);
                    let _ = stopping.send(());
                }
            })
            .map_err(SimError::Threads)?;
        Ok(Running {
            addr,
            simulator,
            stop: token.drop_guard(),
            stopped,
        })
    }
}

impl Running {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
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
        drop(self.stop);
        // An error means that its thread is gone, which is all that is waited for.
        let _ = self.stopped.await;
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

    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts checked rules in force.
    pub(crate) fn take_rules(&self, rules: Vec<Rule>) {
        *self.script() = Script::new(rules);
    }

    pub(crate) fn rule_for(&self, fields: PushFields<'_>) -> Option<Rule> {
        self.script().apply(fields.user, fields.message, fields.push_key)
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

fn serve_until_cancelled(
    runtime: Runtime,
    listener: TcpListener,
    simulator: Arc<Simulator>,
    token: &CancellationToken,
) {
    let router = http_api::router(simulator.clone());
    runtime.block_on(token.run_until_cancelled(accept(listener, router, simulator)));
    // Closes the connections by dropping their tasks: what hangs on purpose would never end by itself.
    runtime.shutdown_timeout(STOP_TIMEOUT);
}

async fn accept(listener: TcpListener, router: Router, simulator: Arc<Simulator>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Without it an answer may wait for the acknowledgement of the one before; harmless if it fails.
                let _ = stream.set_nodelay(true);
                tokio::spawn(connection::serve(stream, router.clone(), simulator.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
