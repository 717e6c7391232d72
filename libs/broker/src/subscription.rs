//! Consuming a queue across reconnects, without looking into the messages.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::{FutureExt, StreamExt};
use lapin::Channel;
use lapin::message::Delivery;
use lapin::options::{BasicNackOptions, BasicQosOptions};
use lapin::types::FieldTable;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::ledger::Ledger;
use crate::link::{Fault, Faults, Link, Links, close_channel, open_channel, request};
use crate::{Error, Receipt};

/// For handing prefetched messages back when a consumer stops.
const RETURN_LIMIT: Duration = Duration::from_secs(5);

/// Deliveries of one queue, from whichever connection is the current one.
pub(crate) struct Subscription {
    queue: String,
    prefetch: u16,
    links: Links,
    faults: Faults,
    shutdown: CancellationToken,
    stage: Stage,
    last_generation: u64,
}

enum Stage {
    Idle,
    /// In a task of its own, so that a caller who stops waiting does not leave a half-opened consumer behind.
    Opening(JoinHandle<Result<Session, Error>>, Link),
    Open(Session),
    Stopped(Option<Session>),
}

struct Session {
    link: Link,
    channel: Channel,
    deliveries: lapin::Consumer,
    ledger: Arc<Ledger>,
}

/// A delivery and the right to settle it.
pub(crate) struct Received {
    pub(crate) delivery: Delivery,
    pub(crate) receipt: Receipt,
}

/// What waiting for deliveries came to.
enum Wait {
    Batch(Vec<Delivery>),
    Lost(String),
    Ended,
    Shutdown,
}

impl Subscription {
    pub(crate) fn new(
        queue: String,
        prefetch: u16,
        links: Links,
        faults: Faults,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            queue,
            prefetch,
            links,
            faults,
            shutdown,
            stage: Stage::Idle,
            last_generation: 0,
        }
    }

    /// Waits for a delivery, then takes what else is there, up to `max`. `None` after [`Self::stop`] and when
    /// the broker is closed. Cancel-safe: nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self, max: usize) -> Option<Vec<Received>> {
        loop {
            if self.shutdown.is_cancelled() {
                return None;
            }
            match &mut self.stage {
                Stage::Stopped(_) => return None,
                Stage::Idle => self.begin().await?,
                Stage::Opening(task, link) => {
                    let opened = task.await;
                    let generation = link.generation;
                    self.stage = match opened {
                        Ok(Ok(session)) => Stage::Open(session),
                        Ok(Err(error)) => self.fault(generation, error.describe()),
                        Err(panicked) => self.fault(generation, panicked.to_string()),
                    };
                }
                Stage::Open(session) => match session.wait(max.max(1), &self.shutdown).await {
                    Wait::Batch(batch) => return Some(session.receive(batch)),
                    Wait::Lost(reason) => {
                        let generation = session.link.generation;
                        self.abandon();
                        self.fault(generation, reason);
                    }
                    Wait::Ended => self.abandon(),
                    // Kept open: what is being worked on can still be acknowledged.
                    Wait::Shutdown => return None,
                },
            }
        }
    }

    /// Waits for a connection that has not been tried yet and starts consuming on it.
    async fn begin(&mut self) -> Option<()> {
        let last = self.last_generation;
        let newer = |link: &Option<Link>| link.as_ref().is_some_and(|link| link.generation > last);
        let link = tokio::select! {
            () = self.shutdown.cancelled() => return None,
            link = self.links.wait_for(newer) => link.ok()?.clone()?,
        };
        self.last_generation = link.generation;
        let opening = tokio::spawn(open(link.clone(), self.queue.clone(), self.prefetch));
        self.stage = Stage::Opening(opening, link);
        Some(())
    }

    fn fault(&self, generation: u64, reason: String) -> Stage {
        // The supervisor is gone only when everything ends.
        let _ = self.faults.send(Fault { generation, reason });
        Stage::Idle
    }

    /// Leaves the current session to be closed in the background.
    fn abandon(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Open(session) | Stage::Stopped(Some(session)) => {
                tokio::spawn(session.close());
            }
            Stage::Opening(task, _) => {
                tokio::spawn(async move {
                    if let Ok(Ok(session)) = task.await {
                        session.close().await;
                    }
                });
            }
            Stage::Idle | Stage::Stopped(None) => {}
        }
    }

    /// Takes no more deliveries and hands the prefetched ones back. Receipts given out stay valid.
    pub(crate) async fn stop(&mut self) {
        let session = match std::mem::replace(&mut self.stage, Stage::Stopped(None)) {
            Stage::Stopped(session) => session,
            Stage::Open(session) => Some(session.stop().await),
            Stage::Opening(task, _) => match task.await {
                Ok(Ok(session)) => Some(session.stop().await),
                _ => None,
            },
            Stage::Idle => None,
        };
        self.stage = Stage::Stopped(session);
    }

    /// Stops, and gives up what has been given out and not settled.
    pub(crate) async fn close(mut self) {
        self.stop().await;
        if let Stage::Stopped(Some(session)) = std::mem::replace(&mut self.stage, Stage::Stopped(None)) {
            session.close_channel().await;
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if tokio::runtime::Handle::try_current().is_ok() {
            self.abandon();
        }
    }
}

async fn open(link: Link, queue: String, prefetch: u16) -> Result<Session, Error> {
    let channel = open_channel(&link.connection).await?;
    request(
        "set the prefetch",
        channel.basic_qos(prefetch, BasicQosOptions::default()),
    )
    .await?;
    let consuming = channel.basic_consume(queue.into(), "".into(), Default::default(), FieldTable::default());
    let deliveries = request("consume", consuming).await?;
    let ledger = Arc::new(Ledger::new(link.ended.clone()));
    Ok(Session {
        link,
        channel,
        deliveries,
        ledger,
    })
}

impl Session {
    async fn wait(&mut self, max: usize, shutdown: &CancellationToken) -> Wait {
        let first = tokio::select! {
            biased;
            () = shutdown.cancelled() => return Wait::Shutdown,
            () = self.link.ended.cancelled() => return Wait::Ended,
            first = self.deliveries.next() => first,
        };
        let mut batch = match first {
            Some(Ok(delivery)) => vec![delivery],
            Some(Err(error)) => return Wait::Lost(error.to_string()),
            None => return Wait::Lost("the server cancelled the consumer".to_owned()),
        };
        while batch.len() < max {
            // An error or the end of the stream is seen again by the next call.
            let Some(Some(Ok(delivery))) = self.deliveries.next().now_or_never() else {
                break;
            };
            batch.push(delivery);
        }
        Wait::Batch(batch)
    }

    fn receive(&self, batch: Vec<Delivery>) -> Vec<Received> {
        let received = batch.into_iter().map(|delivery| {
            let receipt = Receipt::new(
                (delivery.delivery_tag, delivery.acker.clone()),
                Arc::clone(&self.ledger),
                self.link.generation,
                self.link.ended.clone(),
            );
            Received { delivery, receipt }
        });
        received.collect()
    }

    /// Cancels the consumer and hands back what it had prefetched; the channel stays open for
    /// acknowledgements.
    async fn stop(mut self) -> Self {
        let tag = self.deliveries.tag();
        if request(
            "cancel a consumer",
            self.channel.basic_cancel(tag, Default::default()),
        )
        .await
        .is_err()
        {
            // The channel is gone, and everything unacknowledged is back in the queue.
            return self;
        }
        let returning = async {
            let mut prefetched = Vec::new();
            while let Some(Ok(delivery)) = self.deliveries.next().await {
                prefetched.push(delivery);
            }
            let requeue = BasicNackOptions {
                requeue: true,
                ..Default::default()
            };
            join_all(prefetched.iter().map(|delivery| delivery.acker.nack(requeue))).await;
        };
        if tokio::time::timeout(RETURN_LIMIT, returning).await.is_err() {
            tracing::debug!("prefetched messages go back when the channel is closed");
        }
        self
    }

    async fn close(self) {
        self.stop().await.close_channel().await;
    }

    async fn close_channel(&self) {
        self.ledger.flush().await;
        close_channel(&self.channel).await;
    }
}
