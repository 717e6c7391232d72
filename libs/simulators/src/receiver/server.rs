//! Starts and stops the receiver. It runs on threads of its own, so that the stamps of arrivals do not wait for whatever else the
//! process does.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::clock::Clock;
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio_rustls::TlsAcceptor;

use crate::receiver::connection;
use crate::receiver::keyring::{Keyring, SecretFor};
use crate::receiver::options::Options;
use crate::receiver::received::{Received, ReceivedPage};
use crate::receiver::recorder::{End, Recorder};
use crate::receiver::report::Report;
use crate::receiver::script::Rule;
use crate::script::{RuleInForce, Script, ScriptError, check};
use crate::server::{Server, ServerError};

/// Requests that a follower may be behind before it misses some.
const FOLLOWERS_LAG: usize = 4_096;
/// Requests that a report of the library has with it.
const LAST_IN_REPORT: usize = 20;

/// Why a receiver could not start.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverError {
    /// The listener or its threads.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The script of the options is invalid.
    #[error("the script is invalid")]
    Script(#[source] ScriptError),
}

/// Starts receivers.
#[derive(Debug, Clone, Copy)]
pub struct Receiver;

/// A receiver at work. Dropping it stops it as well, without waiting.
#[derive(Debug)]
pub struct Running {
    server: Server,
    scheme: &'static str,
    shared: Arc<Shared>,
}

/// What all connections share.
pub(crate) struct Shared {
    recorder: Mutex<Recorder>,
    script: Mutex<Script<Rule>>,
    keyring: Mutex<Arc<Keyring>>,
    followers: broadcast::Sender<Arc<Received>>,
    clock: Arc<dyn Clock>,
    pub(crate) tolerance: Duration,
    pub(crate) max_body_bytes: usize,
}

impl Receiver {
    /// Serves `listener` until the returned handle is shut down or dropped.
    pub fn start(listener: TcpListener, options: Options) -> Result<Running, ReceiverError> {
        check(&options.script).map_err(ReceiverError::Script)?;
        let tls = options.tls.clone().map(TlsAcceptor::from);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let threads = options.worker_threads;
        let shared = Arc::new(Shared::new(options));
        let server = Server::start("receiver", threads, listener, {
            let shared = shared.clone();
            move |stream| {
                shared.recorder().connect();
                connection::serve(stream, tls.clone(), shared.clone())
            }
        })?;
        Ok(Running {
            server,
            scheme,
            shared,
        })
    }
}

impl Running {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// The address of one of its endpoints; `path` begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.addr())
    }

    /// What has arrived, and how, with the latest 20 requests.
    pub fn report(&self) -> Report {
        self.shared.recorder().report(LAST_IN_REPORT)
    }

    /// Up to `limit` of the latest requests, from the one after number `after`; from the oldest for 0.
    pub fn received(&self, after: u64, limit: usize) -> ReceivedPage {
        self.shared.recorder().page(after, limit)
    }

    /// Every request from now on, at its end. A slow follower misses some and is told how many.
    pub fn follow(&self) -> broadcast::Receiver<Arc<Received>> {
        self.shared.followers.subscribe()
    }

    /// The rules in force.
    pub fn rules(&self) -> Vec<RuleInForce<Rule>> {
        self.shared.script().in_force()
    }

    /// Replaces the rules in force.
    ///
    /// # Errors
    /// The first invalid rule; the old rules stay in force then.
    pub fn script(&self, rules: Vec<Rule>) -> Result<(), ScriptError> {
        check(&rules)?;
        self.shared.take_rules(rules);
        Ok(())
    }

    /// Replaces the secrets that it knows.
    pub fn secrets(&self, secrets: Vec<SecretFor>) {
        self.shared.take_secrets(secrets);
    }

    /// Forgets all that has arrived; rules and secrets stay in force.
    pub fn reset(&self) {
        self.shared.recorder().reset();
    }

    /// Stops: the listener and all connections are closed when it returns, unanswered requests included.
    pub async fn shutdown(self) {
        self.server.shutdown().await;
    }
}

impl Shared {
    fn new(options: Options) -> Self {
        Self {
            recorder: Mutex::new(Recorder::new(&options)),
            script: Mutex::new(Script::new(options.script)),
            keyring: Mutex::new(Arc::new(Keyring::new(options.secrets))),
            followers: broadcast::Sender::new(FOLLOWERS_LAG),
            clock: options.clock,
            tolerance: options.tolerance,
            max_body_bytes: options.max_body_bytes,
        }
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    pub(crate) fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn script(&self) -> MutexGuard<'_, Script<Rule>> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Not under the lock: checking a signature reads the whole body.
    pub(crate) fn keyring(&self) -> Arc<Keyring> {
        self.keyring
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Puts checked rules in force.
    pub(crate) fn take_rules(&self, rules: Vec<Rule>) {
        *self.script() = Script::new(rules);
    }

    pub(crate) fn take_secrets(&self, secrets: Vec<SecretFor>) {
        let keyring = Arc::new(Keyring::new(secrets));
        *self.keyring.lock().unwrap_or_else(PoisonError::into_inner) = keyring;
    }

    /// Notes the end of a request and tells the followers.
    pub(crate) fn end(&self, number: u64, end: End) {
        let mut recorder = self.recorder();
        let ended = recorder.end(number, end);
        if self.followers.receiver_count() == 0 {
            return;
        }
        let ended = ended.cloned();
        drop(recorder);
        if let Some(ended) = ended {
            // An error means that the last follower has just gone.
            let _ = self.followers.send(Arc::new(ended));
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
