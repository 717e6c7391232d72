//! Cancelling what has not been sent yet. That is final: no resend and no replay sends it. Its dead letter is discarded
//! from the beginning, with the operator's note, since there is nothing to mend: it is in the lists, and waits for no
//! operator.

/// What came of cancelling a push or a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancellation<S> {
    /// It was in this status, and will not be sent.
    Done(S),
    /// It is being sent: the database cannot tell whether it still could be stopped.
    BeingSent,
    /// It has ended before.
    Ended(S),
    /// There is no such thing.
    Unknown,
}

pub(crate) fn refused<S>(claimed: bool, status: S) -> Cancellation<S> {
    if claimed {
        Cancellation::BeingSent
    } else {
        Cancellation::Ended(status)
    }
}
