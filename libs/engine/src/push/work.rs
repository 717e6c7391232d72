//! What passes between the stages of the lane.

use std::time::Instant;

use broker::Receipt;
use domain::push::PushStatus;
use store::push::{ClaimedPush, Completion, Release};
use telemetry::traces::Span;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// A claimed push on its way to the sender.
pub(crate) struct Work {
    pub(crate) push: ClaimedPush,
    pub(crate) message: Message,
    /// A send that starts later might still be under way when the claim runs out.
    pub(crate) send_before: Instant,
    /// Sent even while the lane is held, to find out whether it still has to be.
    pub(crate) is_probe: bool,
}

/// A message until it is settled, and the span of that time.
pub(crate) struct Message {
    /// `None` for a push that was claimed without one.
    pub(crate) receipt: Option<Receipt>,
    pub(crate) span: Span,
    /// Dropped when it is settled.
    pub(crate) settled: Option<TaskTrackerToken>,
}

/// A push on its way from the sender to the database.
pub(crate) enum Ending {
    /// An attempt was made.
    Completed(Completion, Message),
    /// None was.
    Released(Release, Message),
    /// None could be, for want of something of our own: it is not to come again at once.
    PutOff(Release, Message),
}

/// What is done with the message once its push's fate is recorded.
#[derive(Clone, Copy)]
pub(crate) enum MessageFate {
    /// It has nothing more to say.
    Ack,
    /// It stays in the queue for the next sender.
    Requeue,
}

impl MessageFate {
    pub(crate) fn of(release: &Release) -> Self {
        if release.deferred_to.is_some() {
            Self::Ack
        } else {
            Self::Requeue
        }
    }

    pub(crate) async fn settle(self, message: Message) {
        let Message {
            receipt,
            span: _span,
            settled: _settled,
        } = message;
        let Some(receipt) = receipt else { return };
        // Whether the connection still took it does not matter: a message that comes again finds its push ended.
        let _ = match self {
            Self::Ack => receipt.ack().await,
            Self::Requeue => receipt.requeue().await,
        };
    }
}

/// The reason of the dead letter that a terminal status leaves behind.
pub(crate) fn dead_letter_reason(status: PushStatus) -> Option<&'static str> {
    match status {
        PushStatus::Failed => Some("failed"),
        PushStatus::GivenUp => Some("given_up"),
        _ => None,
    }
}
