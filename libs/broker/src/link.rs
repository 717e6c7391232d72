//! What the parts of the crate share about the current connection: the [`Link`] of one generation, the fault
//! reports that end it, and the state that is published to the outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lapin::{Channel, Connection};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::Error;

/// How long a single AMQP request may take. Generous, because a new quorum queue first elects its leader.
pub(crate) const REQUEST_LIMIT: Duration = Duration::from_secs(10);

/// State of the broker connection, as seen by readiness checks and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionState {
    /// There is no usable connection; attempts go on until [`crate::Broker::close`].
    Connecting {
        /// Why the last connection or attempt ended, without credentials. `None` before the first failure.
        last_error: Option<String>,
    },
    /// Connected, the topology is declared, publishing and consuming work.
    Connected {
        /// Counts connections from 1; a receipt of an older generation is stale.
        generation: u64,
    },
    /// The server takes no messages because it is short of memory or disk.
    Blocked {
        /// As in `Connected`.
        generation: u64,
        /// The server's explanation.
        reason: String,
    },
    /// Closed for good by [`crate::Broker::close`].
    Closed,
}

impl ConnectionState {
    /// Whether publishing and consuming work.
    pub fn is_connected(&self) -> bool {
        matches!(self, Self::Connected { .. })
    }
}

/// One established connection with its topology declared.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) generation: u64,
    pub(crate) connection: Arc<Connection>,
    /// The first publishing channel, opened before the connection counts as connected.
    pub(crate) publishing: Channel,
    /// Cancelled as soon as the connection is given up.
    pub(crate) ended: CancellationToken,
    blocked: Arc<AtomicBool>,
}

impl Link {
    pub(crate) fn new(generation: u64, connection: Arc<Connection>, publishing: Channel) -> Self {
        Self {
            generation,
            connection,
            publishing,
            ended: CancellationToken::new(),
            blocked: Arc::default(),
        }
    }

    pub(crate) fn set_blocked(&self, blocked: bool) {
        self.blocked.store(blocked, Ordering::Release);
    }

    pub(crate) fn takes_messages(&self) -> bool {
        !self.blocked.load(Ordering::Acquire) && !self.ended.is_cancelled()
    }
}

/// Watches for the link of the current generation; `None` while there is no connection.
pub(crate) type Links = watch::Receiver<Option<Link>>;

/// A report that a connection does not do its job although it looks alive.
pub(crate) struct Fault {
    pub(crate) generation: u64,
    pub(crate) reason: String,
}

/// Where faults are reported. Unbounded, because each part reports once per generation and a lost report
/// would leave a connection standing that nothing can use.
pub(crate) type Faults = mpsc::UnboundedSender<Fault>;

/// Runs one request with the time limit that every request has.
pub(crate) async fn request<T>(
    operation: &'static str,
    answer: impl Future<Output = lapin::Result<T>>,
) -> Result<T, Error> {
    match tokio::time::timeout(REQUEST_LIMIT, answer).await {
        Ok(answer) => answer.map_err(|source| Error::Request { operation, source }),
        Err(_) => Err(Error::RequestTimeout {
            operation,
            limit: REQUEST_LIMIT,
        }),
    }
}

/// Opens a channel on `connection`.
pub(crate) async fn open_channel(connection: &Connection) -> Result<Channel, Error> {
    request("open a channel", connection.create_channel()).await
}

/// Opens a channel on which the server confirms what is published.
pub(crate) async fn open_publishing_channel(connection: &Connection) -> Result<Channel, Error> {
    let channel = open_channel(connection).await?;
    request(
        "turn on publisher confirms",
        channel.confirm_select(Default::default()),
    )
    .await?;
    Ok(channel)
}

/// Closes a channel and waits for the server's answer, within the limit of a request.
///
/// A channel must not merely be dropped together with its consumer: the AMQP client then cancels and closes
/// at once, and treats the failure of the one that comes second as the failure of the whole connection.
pub(crate) async fn close_channel(channel: &Channel) {
    if let Err(error) = request("close a channel", channel.close(200, "done".into())).await {
        tracing::debug!(
            error = error.describe(),
            "channel was not closed in an orderly way"
        );
    }
}
