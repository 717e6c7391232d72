//! The task behind [`crate::Publisher`]: publishes on the current connection's channel, answers what the
//! server answers, and gives up what it does not answer in time. Waiting for places and ordering results is
//! the publisher's part.

use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::inflight::Inflight;
use crate::link::{Fault, Faults, Link, Links, close_channel, open_publishing_channel};
use crate::publisher::Job;
use crate::{Error, Published};

/// Jobs taken before answers are looked at again.
const BURST: usize = 256;
/// How long a retired channel waits for its late confirms before it is closed.
const LINGER: Duration = Duration::from_secs(30);

pub(crate) struct Pipeline {
    pub(crate) jobs: mpsc::UnboundedReceiver<Job>,
    pub(crate) links: Links,
    pub(crate) faults: Faults,
    pub(crate) confirm_timeout: Duration,
    /// No new messages are taken after this; the unanswered ones still get their time.
    pub(crate) shutdown: CancellationToken,
}

/// The channel in use and its messages; no channel after the last one was retired.
struct Session {
    link: Link,
    inflight: Option<Inflight>,
    faulty: bool,
}

impl Pipeline {
    /// Runs until shutdown, and then until every published message is answered.
    pub(crate) async fn run(mut self) {
        let mut last_generation = 0;
        while let Some(link) = self.next_link(last_generation).await {
            last_generation = link.generation;
            self.serve(link).await;
        }
        self.jobs.close();
        while let Some(job) = self.jobs.recv().await {
            job.ticket.answer(Published::NotSent);
        }
    }

    /// Waits for a connection newer than `last_generation`; nothing is sent meanwhile. `None` at shutdown.
    async fn next_link(&mut self, last_generation: u64) -> Option<Link> {
        loop {
            let current = self.links.borrow_and_update().clone();
            if let Some(link) = current.filter(|link| link.generation > last_generation) {
                return Some(link);
            }
            // The link is looked at before the jobs: a caller that has seen the connected state must not get a
            // refusal.
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return None,
                changed = self.links.changed() => changed.ok()?,
                Some(job) = self.jobs.recv() => job.ticket.answer(Published::NotSent),
            }
        }
    }

    async fn serve(&mut self, link: Link) {
        let inflight = Some(Inflight::new(link.publishing.clone()));
        let ended = link.ended.clone();
        let mut session = Session {
            link,
            inflight,
            faulty: false,
        };
        let mut burst = Vec::with_capacity(BURST);
        loop {
            let stopping = self.shutdown.is_cancelled();
            if stopping && session.is_idle() {
                return;
            }
            let deadline = session.oldest().map(|at| at + self.confirm_timeout);
            tokio::select! {
                biased;
                () = ended.cancelled() => return session.give_up(),
                () = self.shutdown.cancelled(), if !stopping => {}
                failure = session.settled() => if let Some(source) = failure {
                    self.report(&mut session, &Error::Request { operation: "publish", source });
                },
                () = until(deadline) => session.retire(),
                taken = self.jobs.recv_many(&mut burst, BURST), if !stopping => {
                    if taken == 0 {
                        return session.give_up();
                    }
                    self.publish(&mut session, burst.drain(..)).await;
                }
            }
        }
    }

    async fn publish(&self, session: &mut Session, jobs: impl Iterator<Item = Job>) {
        if let Err(error) = session.ensure_channel(self.confirm_timeout).await {
            self.report(session, &error);
        }
        for Job { message, ticket } in jobs {
            match session.open_inflight() {
                Some(inflight) => inflight.publish(message, ticket),
                None => ticket.answer(Published::NotSent),
            }
        }
    }

    /// A channel on which publishing fails means that the topology or the connection is not what it should
    /// be; both are made again with the connection.
    fn report(&self, session: &mut Session, error: &Error) {
        if !session.faulty {
            session.faulty = true;
            let fault = Fault {
                generation: session.link.generation,
                reason: error.describe(),
            };
            // The supervisor is gone only when everything ends.
            let _ = self.faults.send(fault);
        }
    }
}

impl Session {
    fn is_idle(&self) -> bool {
        self.inflight.as_ref().is_none_or(Inflight::is_empty)
    }

    fn oldest(&mut self) -> Option<Instant> {
        self.inflight.as_mut()?.oldest()
    }

    async fn settled(&mut self) -> Option<lapin::Error> {
        match &mut self.inflight {
            Some(inflight) => poll_fn(|context| inflight.poll_settle(context)).await,
            None => std::future::pending().await,
        }
    }

    /// The messages of a channel that can be published on now.
    fn open_inflight(&mut self) -> Option<&mut Inflight> {
        if self.faulty || !self.link.takes_messages() {
            return None;
        }
        self.inflight
            .as_mut()
            .filter(|inflight| inflight.channel().status().connected())
    }

    /// Opens a channel in place of a retired one. Not while the server takes no messages, as it would not
    /// answer.
    async fn ensure_channel(&mut self, limit: Duration) -> Result<(), Error> {
        if self.inflight.is_none() && !self.faulty && self.link.takes_messages() {
            let channel = tokio::select! {
                () = self.link.ended.cancelled() => return Ok(()),
                opened = tokio::time::timeout(limit, open_publishing_channel(&self.link.connection)) => {
                    opened.map_err(|_| Error::RequestTimeout { operation: "open a channel", limit })??
                }
            };
            self.inflight = Some(Inflight::new(channel));
        }
        Ok(())
    }

    fn give_up(&mut self) {
        if let Some(inflight) = &mut self.inflight {
            inflight.give_up();
        }
    }

    /// Answers the channel's messages as unconfirmed and takes the channel out of use.
    ///
    /// The channel is closed only when its late answers have come, or will not come: closing overtakes
    /// messages that the client has not written yet, and the server ends a connection on which messages
    /// follow the close of their channel.
    fn retire(&mut self) {
        let Some(mut inflight) = self.inflight.take() else {
            return;
        };
        tracing::warn!(
            generation = self.link.generation,
            "no publisher confirm in time; retiring the channel"
        );
        inflight.give_up();
        let ended = self.link.ended.clone();
        tokio::spawn(async move {
            let answered = async {
                while !inflight.is_empty() {
                    poll_fn(|context| inflight.poll_settle(context)).await;
                }
            };
            tokio::select! {
                () = ended.cancelled() => return,
                _ = tokio::time::timeout(LINGER, answered) => {}
            }
            close_channel(inflight.channel()).await;
        });
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
