//! The task that keeps a connection to one of the broker's nodes: connects, declares the topology, watches, and starts
//! over with a new generation, at another node if there is one. What is published and consumed on the connection is not its concern.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::StreamExt;
use lapin::uri::AMQPUri;
use lapin::{Connection, Event};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::addresses::{Addresses, location};
use crate::connect::{self, Opened, Socket};
use crate::declare::declare;
use crate::link::{ConnectionState, Fault, Link, open_publishing_channel};
use crate::topology::{Capacities, Topology};
use crate::{Error, Settings};

const FIRST_DELAY: Duration = Duration::from_millis(100);
/// Jitter adds up to as much again, so attempts are at most 5 s apart.
const LONGEST_DELAY: Duration = Duration::from_millis(2500);
/// A connection that lasted longer than this ends a series of failures.
const STABLE_AFTER: Duration = Duration::from_secs(5);
/// How often the connection is looked at, in case an event was missed.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long the server gets to answer an orderly close.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);

pub(crate) struct Supervisor {
    pub(crate) settings: Settings,
    pub(crate) links: watch::Sender<Option<Link>>,
    pub(crate) state: watch::Sender<ConnectionState>,
    pub(crate) faults: mpsc::UnboundedReceiver<Fault>,
    pub(crate) shutdown: CancellationToken,
    /// Closes old connections, which no task waits for until shutdown.
    pub(crate) closers: TaskTracker,
}

/// Why a connection is given up.
enum End {
    Shutdown,
    Lost(String),
}

impl Supervisor {
    pub(crate) async fn run(mut self) {
        match Addresses::parse(&self.settings.url) {
            Ok(addresses) => self.keep_connected(addresses).await,
            Err(error) => {
                // Nothing but another configuration can help.
                self.disconnected(&error.describe());
                self.shutdown.cancelled().await;
            }
        }
        self.links.send_replace(None);
        self.state.send_replace(ConnectionState::Closed);
    }

    async fn keep_connected(&mut self, mut addresses: Addresses) {
        let mut delays = delays();
        let mut generation = 0;
        loop {
            let attempt = tokio::select! {
                () = self.shutdown.cancelled() => return,
                attempt = self.try_each(&mut addresses, generation + 1) => attempt,
            };
            let reason = match attempt {
                Err(reason) => reason,
                Ok((link, socket)) => {
                    generation = link.generation;
                    let since = Instant::now();
                    match self.serve(link, socket, &location(addresses.current())).await {
                        End::Shutdown => return,
                        End::Lost(reason) => {
                            // The node may be on its way down; the others were not asked yet.
                            addresses.advance();
                            if since.elapsed() > STABLE_AFTER {
                                delays = self::delays();
                            }
                            reason
                        }
                    }
                }
            };
            self.disconnected(&reason);
            let delay = delays.next().unwrap_or(LONGEST_DELAY);
            let _ = tokio::time::timeout(delay, self.shutdown.cancelled()).await;
        }
    }

    /// The first node that can be worked with, from the one whose turn it is; or why none can. Only a round that was in vain is
    /// followed by a delay.
    async fn try_each(&self, addresses: &mut Addresses, generation: u64) -> Result<(Link, Socket), String> {
        let mut reasons = Vec::new();
        for _ in 0..addresses.count() {
            match establish(addresses.current(), &self.settings, generation).await {
                Ok(established) => return Ok(established),
                Err(error) => reasons.push(error.describe()),
            }
            addresses.advance();
        }
        // In the order of the nodes, not of the attempts: what stays the same reads the same.
        reasons.sort();
        reasons.dedup();
        Err(reasons.join("; "))
    }

    /// Logs a reason once, however often attempts fail for it.
    fn disconnected(&self, reason: &str) {
        let state = ConnectionState::Connecting {
            last_error: Some(reason.to_owned()),
        };
        if self.state.send_replace(state.clone()) == state {
            tracing::debug!(reason, "still not connected to the broker");
        } else {
            tracing::warn!(reason, "not connected to the broker");
        }
    }

    async fn serve(&mut self, link: Link, socket: Socket, address: &str) -> End {
        let generation = link.generation;
        tracing::info!(generation, address, "connected to the broker");
        self.links.send_replace(Some(link.clone()));
        self.state.send_replace(ConnectionState::Connected { generation });
        let end = self.watch(&link).await;
        link.ended.cancel();
        self.links.send_replace(None);
        self.closers.spawn(close(link.connection, socket));
        end
    }

    /// Returns when the connection is of no use any more.
    async fn watch(&mut self, link: &Link) -> End {
        let status = link.connection.status();
        let mut events = pin!(link.connection.events_listener());
        let mut check = tokio::time::interval(CHECK_INTERVAL);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => return End::Shutdown,
                event = events.next() => match event {
                    Some(Event::ConnectionBlocked(reason)) => self.blocked(link, reason),
                    Some(Event::ConnectionUnblocked) => self.unblocked(link),
                    // Errors of single channels are reported here too; they are dealt with by whose channel
                    // it is.
                    Some(Event::Error(error)) if !status.connected() => return End::Lost(error.to_string()),
                    Some(_) => {}
                    None => return End::Lost("the AMQP client stopped".to_owned()),
                },
                Some(fault) = self.faults.recv() => {
                    if fault.generation == link.generation {
                        return End::Lost(fault.reason);
                    }
                }
                _ = check.tick() => {
                    if !status.connected() {
                        return End::Lost("the server closed the connection".to_owned());
                    }
                }
            }
        }
    }

    fn blocked(&self, link: &Link, reason: String) {
        tracing::warn!(
            generation = link.generation,
            reason,
            "the broker takes no messages"
        );
        link.set_blocked(true);
        self.state.send_replace(ConnectionState::Blocked {
            generation: link.generation,
            reason,
        });
    }

    fn unblocked(&self, link: &Link) {
        tracing::info!(generation = link.generation, "the broker takes messages again");
        link.set_blocked(false);
        self.state.send_replace(ConnectionState::Connected {
            generation: link.generation,
        });
    }
}

fn delays() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(FIRST_DELAY)
        .with_max_delay(LONGEST_DELAY)
        .with_jitter()
        .without_max_times()
        .build()
}

/// Connects and makes everything ready that has to work before the connection counts as connected.
async fn establish(uri: &AMQPUri, settings: &Settings, generation: u64) -> Result<(Link, Socket), Error> {
    let Opened { connection, socket } = connect::open(uri, settings).await?;
    let topology = Topology::new(&settings.queue_prefix, Capacities::of(settings));
    let prepared = async {
        declare(&connection, &topology).await?;
        open_publishing_channel(&connection).await
    };
    match prepared.await {
        Ok(publishing) => Ok((Link::new(generation, Arc::new(connection), publishing), socket)),
        Err(error) => {
            close(Arc::new(connection), socket).await;
            Err(error)
        }
    }
}

async fn close(connection: Arc<Connection>, socket: Socket) {
    // An error means that the connection is broken already.
    let _ = tokio::time::timeout(CLOSE_LIMIT, connection.close(200, "done".into())).await;
    socket.cut();
}
