//! What may still become of a notification that was not delivered and has ended. Pure.

use domain::reason::NotificationReason;

use crate::explanation::Next;

/// What may still become of it, by how much that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Afterwards {
    /// Nothing: an operator has cancelled it.
    Cancelled,
    /// Its reseller may ask for it.
    Resend,
    /// The same, or an operator resolves its dead letter.
    DeadLetter,
    /// It is sent again when its endpoint works.
    ByItself,
}

impl Afterwards {
    /// `by_itself` says whether an outage gave it up and what that gives up is sent again.
    pub(crate) fn of(reason: Option<&NotificationReason>, by_itself: bool, has_dead_letter: bool) -> Self {
        match reason {
            Some(NotificationReason::Cancelled) => Self::Cancelled,
            _ if by_itself => Self::ByItself,
            _ if has_dead_letter => Self::DeadLetter,
            _ => Self::Resend,
        }
    }

    pub(crate) fn next(self) -> Next {
        let (code, text) = match self {
            Self::Cancelled => ("not-sent", "Nothing: what was cancelled is not sent any more."),
            Self::Resend => ("resend", "Nothing, unless its reseller asks for it again."),
            Self::DeadLetter => (
                "dead-letter",
                "Nothing, until an operator replays or discards its dead letter, or its reseller asks for it.",
            ),
            Self::ByItself => (
                "after-outage",
                "Is sent again by itself within minutes after the endpoint has taken another one, three times at most.",
            ),
        };
        Next::some_time(code, text)
    }
}
