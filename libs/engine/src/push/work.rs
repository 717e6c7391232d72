//! What passes between the stages of the lane.

use std::time::Instant;

use domain::push::PushStatus;
use store::push::{ClaimedPush, Completion, Release};

use crate::message::Message;

/// A claimed push on its way to the sender.
pub(crate) struct Work {
    pub(crate) push: ClaimedPush,
    pub(crate) message: Message,
    /// A send that starts later might still be under way when the claim runs out.
    pub(crate) send_before: Instant,
    /// Sent even while the lane is held, to find out whether it still has to be.
    pub(crate) is_probe: bool,
}

/// A push on its way from the sender to the database.
pub(crate) enum AttemptResult {
    /// An attempt was made.
    Completed(Completion, Message),
    /// None was.
    Released(Release, Message),
    /// None could be, for want of something of our own: it is not to come again at once.
    PutOff(Release, Message),
}

/// The reason of the dead letter that a terminal status leaves behind.
pub(crate) fn dead_letter_reason(status: PushStatus) -> Option<&'static str> {
    match status {
        PushStatus::Failed => Some("failed"),
        PushStatus::GivenUp => Some("given_up"),
        _ => None,
    }
}
