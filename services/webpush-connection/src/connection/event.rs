//! What happens to a connection and what is to be done then, what storage is asked and what it answers.
//!
//! It deliberately decides nothing: which follows from which is the state machine's.

use domain::month::Month;
use store::webpush::{Message, Newer};
use telemetry::traces::Span;
use uuid::Uuid;

use super::Close;
use crate::mailbox::{Delivery, Receipt};

/// What happens to a connection.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// The client sent a text.
    Text(&'a str),
    /// The client sent something else than text.
    NotText,
    /// The client answered a ping of the socket.
    Pong,
    /// A notification that was not stored is to be delivered.
    Delivery(Delivery),
    /// Something was stored for the client.
    Stored,
    /// Broadcasts have changed.
    Broadcasts,
    /// What a question came to.
    Answer(Answer),
    /// A message that was acknowledged late is not stored, so far.
    NotYetStored(Box<str>),
    /// Time has passed.
    Time,
}

/// What is to be done, in order.
#[derive(Debug)]
pub(crate) enum Action {
    Send(String),
    /// Send a notification.
    Notify(String, Origin),
    /// Send a ping of the socket.
    Ping,
    /// Ask storage; the answer is the next event.
    Ask(Question),
    /// Tell the senders that the client has these. When a sender does not wait any more it stores the message, or has stored it:
    /// then it is to be deleted by this version, or it is [`Event::NotYetStored`].
    Settle(Vec<Acked>),
    /// Something that is counted and changes nothing.
    Tell(Told),
    Close(Close),
}

/// Where a notification comes from, and so the trace that sending it is a part of.
#[derive(Debug)]
pub(crate) enum Origin {
    /// An endpoint node. Its span has begun.
    Direct(Span),
    /// Storage. Its message id, if that holds a trace.
    Stored(Option<Box<str>>),
}

/// A notification that was not stored and that the client has acknowledged.
#[derive(Debug)]
pub(crate) struct Acked {
    pub(crate) receipt: Receipt,
    pub(crate) version: Box<str>,
    /// What is stored of its topic and older than it is to be deleted, or the client would be shown it afterwards.
    pub(crate) newer: Option<Box<Newer>>,
}

/// What a client says of a notification, by its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// It has it: `100` delivered, `101` could not be decrypted, `102` not delivered.
    Acked(&'static str),
    /// It could do nothing with it: `301` to `303`, or `0`.
    Nacked(&'static str),
}

/// What storage is asked. There is one question at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// Who the client is; enters it in the node, and then notes the node in its row.
    Identify {
        uaid: Option<Uuid>,
    },
    /// Which month the client's row is in; notes the node in the row where an endpoint node has forgotten it.
    Note,
    Register {
        channel: Uuid,
        key: Option<String>,
    },
    Unregister {
        channel: Uuid,
    },
    Read {
        month: Month,
    },
    Delete {
        month: Month,
        ids: Vec<i64>,
    },
    Move {
        from: Month,
        to: Month,
    },
    Reset,
}

/// What storage answers.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The identifier of the client and, if it is stored, its month.
    Identified {
        uaid: Uuid,
        month: Option<Month>,
    },
    /// The month of the client's row, if it is stored.
    Noted(Option<Month>),
    /// Storage failed. The next ping asks again.
    NotNoted,
    /// The endpoint of a channel, and the month of the client's row.
    Registered {
        channel: Uuid,
        endpoint: String,
        month: Month,
    },
    NotRegistered {
        channel: Uuid,
        why: NotRegistered,
    },
    Unregistered {
        channel: Uuid,
        done: bool,
    },
    Read(Vec<Message>),
    Deleted,
    Moved(bool),
    Reset,
    /// Storage failed.
    Failed,
}

/// Why a channel has no endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotRegistered {
    BadKey,
    /// Storage failed, or the client has too many channels.
    Failed,
}
