//! The handle of the whole crate: starts and ends the tasks, and hands out publishers and consumers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::declare::{declare, inspect};
use crate::link::{ConnectionState, Links};
use crate::pipeline::Pipeline;
use crate::subscription::Subscription;
use crate::supervisor::Supervisor;
use crate::topology::{Capacities, Topology};
use crate::{Consumer, DeadConsumer, Error, Publisher, Queue, Settings};

/// Added to the confirm timeout for closing channels and the connection.
const CLOSE_GRACE: Duration = Duration::from_secs(10);

/// A supervised connection to RabbitMQ. Cheap to clone; everything ends when the last clone is dropped or
/// [`Broker::close`] is called.
#[derive(Clone)]
pub struct Broker {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    publisher: Publisher,
    links: Links,
    state: watch::Receiver<ConnectionState>,
    faults: crate::link::Faults,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// Length and use of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepth {
    /// Messages ready for delivery; those prefetched by a consumer are not counted.
    pub messages: u32,
    /// Consumers of the queue.
    pub consumers: u32,
}

impl Broker {
    /// Starts connecting in the background. Must be called within a tokio runtime.
    pub fn start(settings: Settings) -> Self {
        let (links, link_watch) = watch::channel(None);
        let (state, state_watch) = watch::channel(ConnectionState::Connecting { last_error: None });
        let (faults, fault_reports) = mpsc::unbounded_channel();
        let (jobs, job_queue) = mpsc::unbounded_channel();
        let shutdown = CancellationToken::new();
        let tasks = TaskTracker::new();
        let publisher = Publisher::new(
            settings.queue_prefix.clone(),
            settings.confirm_timeout,
            settings.max_unconfirmed,
            jobs,
            link_watch.clone(),
        );
        let pipeline = Pipeline {
            jobs: job_queue,
            links: link_watch.clone(),
            faults: faults.clone(),
            confirm_timeout: settings.confirm_timeout,
            shutdown: shutdown.clone(),
        };
        // The connection outlives the pipeline, so that published messages still get their answers.
        let published = CancellationToken::new();
        let supervisor = Supervisor {
            settings: settings.clone(),
            links,
            state,
            faults: fault_reports,
            shutdown: published.clone(),
            closers: tasks.clone(),
        };
        tasks.spawn(async move {
            let _published = published.drop_guard();
            pipeline.run().await;
        });
        tasks.spawn(supervisor.run());
        let inner = Inner {
            settings,
            publisher,
            links: link_watch,
            state: state_watch,
            faults,
            shutdown,
            tasks,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The state of the connection, and a watch on it.
    pub fn state(&self) -> watch::Receiver<ConnectionState> {
        self.inner.state.clone()
    }

    /// A handle for publishing.
    pub fn publisher(&self) -> Publisher {
        self.inner.publisher.clone()
    }

    /// Whether notifications that are published together may share a message, from now on. They do not at first: a reader that is
    /// older than that would leave all but the first to their leases.
    pub fn share_messages(&self, sharing: bool) {
        self.inner.publisher.share_messages(sharing);
    }

    /// Starts consuming `queue`, now or as soon as there is a connection. At most `prefetch` deliveries are
    /// unacknowledged at a time; 0 means no limit.
    pub fn consume(&self, queue: Queue, prefetch: u16) -> Consumer {
        Consumer::new(self.subscription(queue, prefetch), queue)
    }

    /// Starts consuming a queue of dead letters for archiving; otherwise as [`Broker::consume`].
    ///
    /// Every body is handed out as it is: there is no further queue for those that cannot be read.
    pub fn consume_dead(&self, queue: Queue, prefetch: u16) -> DeadConsumer {
        DeadConsumer::new(self.subscription(queue, prefetch))
    }

    /// Declares exchanges, queues and bindings once more, as every new connection does: for when an operator has deleted some
    /// of them and no process has noticed yet.
    pub async fn declare(&self) -> Result<(), Error> {
        let link = self.inner.links.borrow().clone().ok_or(Error::NotConnected)?;
        let settings = &self.inner.settings;
        let topology = Topology::new(&settings.queue_prefix, Capacities::of(settings));
        tokio::select! {
            () = link.ended.cancelled() => Err(Error::NotConnected),
            declared = declare(&link.connection, &topology) => declared,
        }
    }

    /// Length and use of `queue`, asked from the server.
    ///
    /// # Errors
    ///
    /// [`Error::NotConnected`], [`Error::QueueMissing`], or what went wrong with the request. None of them
    /// harms the connection or its other users.
    pub async fn depth(&self, queue: Queue) -> Result<QueueDepth, Error> {
        let link = self.inner.links.borrow().clone().ok_or(Error::NotConnected)?;
        let name = queue.full_name(&self.inner.settings.queue_prefix);
        let found = tokio::select! {
            () = link.ended.cancelled() => return Err(Error::NotConnected),
            found = inspect(&link.connection, &name) => found?,
        };
        Ok(QueueDepth {
            messages: found.message_count(),
            consumers: found.consumer_count(),
        })
    }

    /// Takes no more messages, waits for the answers to those published, and closes the connection.
    ///
    /// Consumers end; what they have prefetched or not acknowledged goes back to its queue. Close them
    /// before, to settle what is being worked on. Returns after `confirm_timeout` and a few seconds at the
    /// latest.
    pub async fn close(&self) {
        self.inner.shutdown.cancel();
        self.inner.tasks.close();
        let limit = self.inner.settings.confirm_timeout + CLOSE_GRACE;
        if tokio::time::timeout(limit, self.inner.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("the broker connection was not closed in time");
        }
    }

    fn subscription(&self, queue: Queue, prefetch: u16) -> Subscription {
        let inner = &self.inner;
        let name = queue.full_name(&inner.settings.queue_prefix);
        Subscription::new(
            name,
            prefetch,
            inner.links.clone(),
            inner.faults.clone(),
            inner.shutdown.clone(),
        )
    }
}
