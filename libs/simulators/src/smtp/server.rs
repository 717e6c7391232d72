//! Starts and stops the sink, and what its connections share.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::smtp::dialogue;
use crate::smtp::report::{Received, Report};
use crate::smtp::script::{Action, Rule, Script, Stage};
use crate::smtp::spool::Spool;

/// How long a failed accept is waited out: what it fails for, such as too few descriptors, does not pass at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How many of the latest mails the report lists.
const LISTED: usize = 10_000;

/// Why a sink could not start.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The listener is unusable.
    #[error("the listener cannot be used")]
    Listener(#[source] io::Error),
    /// The folder for the mails cannot be made.
    #[error("failed to make the folder for the mails")]
    Folder(#[source] io::Error),
}

/// Starts sinks.
#[derive(Debug, Clone, Copy)]
pub struct SmtpSink;

/// A sink at work. Dropping it stops it as well, without waiting.
#[derive(Debug)]
pub struct Running {
    addr: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) spool: Spool,
    script: Mutex<Script>,
    report: Mutex<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    counts: Report,
    mails: VecDeque<Received>,
}

impl SmtpSink {
    /// Serves `listener` until the returned handle is shut down or dropped; mails go to files in `folder`.
    ///
    /// # Errors
    ///
    /// See [`SinkError`].
    pub fn start(listener: TcpListener, folder: &Path) -> Result<Running, SinkError> {
        let addr = listener.local_addr().map_err(SinkError::Listener)?;
        let shared = Arc::new(Shared {
            spool: Spool::open(folder).map_err(SinkError::Folder)?,
            script: Mutex::default(),
            report: Mutex::default(),
        });
        Ok(Running {
            addr,
            accepting: tokio::spawn(accept(listener, shared.clone())),
            shared,
        })
    }
}

impl Running {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What has arrived.
    pub fn report(&self) -> Report {
        let tally = self.shared.tally();
        Report {
            mails: tally.mails.iter().cloned().collect(),
            ..tally.counts.clone()
        }
    }

    /// Replaces the rules in force; none takes every mail.
    pub fn script(&self, rules: Vec<Rule>) {
        *self.shared.script.lock().unwrap_or_else(PoisonError::into_inner) = Script::new(rules);
    }

    /// Stops: the listener and all connections are closed when it returns.
    pub async fn shutdown(mut self) {
        self.accepting.abort();
        // An error says that it was stopped, which is all that is waited for.
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    pub(crate) fn action(&self, stage: Stage, recipients: &[String]) -> Option<Action> {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        script.at(stage, recipients)
    }

    pub(crate) fn count_refusal(&self) {
        self.tally().counts.refused += 1;
    }

    pub(crate) fn count_mail(&self, mail: Received) {
        let mut tally = self.tally();
        tally.counts.kept += 1;
        if tally.mails.len() == LISTED {
            tally.mails.pop_front();
        }
        tally.mails.push_back(mail);
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with this task, and with it every connection.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    shared.tally().counts.connections += 1;
                    connections.spawn(dialogue::serve(stream, shared.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}
