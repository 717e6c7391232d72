//! Starts and stops the sink, and what its connections share.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;

use crate::server::{Server, ServerError};
use crate::smtp::dialogue;
use crate::smtp::report::{Received, Report};
use crate::smtp::script::{Action, Rule, Script, Stage};
use crate::smtp::spool::Spool;

/// How many of the latest mails the report lists.
const LISTED: usize = 10_000;

/// Why a sink could not start.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The listener or its thread.
    #[error(transparent)]
    Server(#[from] ServerError),
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
    server: Server,
    shared: Arc<Shared>,
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
    pub fn start(listener: TcpListener, folder: &Path) -> Result<Running, SinkError> {
        let shared = Arc::new(Shared {
            spool: Spool::open(folder).map_err(SinkError::Folder)?,
            script: Mutex::default(),
            report: Mutex::default(),
        });
        let server = Server::start("smtp-sink", 1, listener, {
            let shared = shared.clone();
            move |stream| {
                shared.tally().counts.connections += 1;
                dialogue::serve(stream, shared.clone())
            }
        })?;
        Ok(Running { server, shared })
    }
}

impl Running {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
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
    pub async fn shutdown(self) {
        self.server.shutdown().await;
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
