//! What there is at one moment: the row of the client, what is stored, the messages with their endpoint nodes, and connections.

/// One moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// The row of the client in `webpush_clients`.
    pub row: Row,
    /// The rows of `webpush_messages`.
    pub stored: Vec<Stored>,
    /// The messages in the order in which they are received, each with what its endpoint node does.
    pub messages: Vec<Message>,
    /// The connections of the client so far, those that have ended included.
    pub connections: Vec<Connection>,
    /// The connection that the client has.
    pub client: Option<usize>,
    /// Which nodes are frozen.
    pub frozen: [bool; 2],
    /// The month.
    pub month: u8,
    /// Mishaps that may still happen.
    pub mishaps: u8,
    /// Whether a message came again after its acknowledgement was settled.
    pub again: bool,
    /// Whether a message came after the acknowledgement of one of its topic that was sent after it had been answered.
    pub stale: bool,
    /// Whether the client has been moved to another month.
    pub moved: bool,
}

/// Where a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The connection node.
    pub node: usize,
    /// `connected_at`.
    pub since: u8,
}

/// The row of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Row {
    /// The month that it reads.
    pub month: u8,
    /// Its node, if it is connected.
    pub node: Option<usize>,
    /// `connected_at`.
    pub since: u8,
}

/// A stored message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stored {
    /// The identifier of the row.
    pub id: usize,
    /// Which message it is.
    pub message: usize,
    /// The month that it is in.
    pub month: u8,
}

/// A message and its endpoint node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Message {
    /// How far it has come.
    pub step: Step,
    /// The messages that had been answered when it was received, a bit for each.
    pub after: u8,
    /// Whether its sender has been told 201.
    pub answered: bool,
    /// Whether the acknowledgement of the client has arrived at a connection node.
    pub acked: bool,
    /// Whether that node has done all that follows from it.
    pub settled: bool,
    /// Whether what the node did was lost: its answer to the endpoint node, or what it remembered until the commit.
    pub forgotten: bool,
}

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Not sent.
    Unsent,
    /// Received, and the row of the client was read.
    Routed(Option<Place>),
    /// `PUT /push` is under way or waits for the acknowledgement, at a connection.
    Pushed(Place, usize),
    /// The node has said 200, which has not arrived.
    Acked(Place, usize),
    /// The client is not there, or the node does not answer (`true`): it is to be forgotten.
    Forgetting(Place, bool),
    /// To be stored; the node that did not answer is to be told.
    Storing(Option<Place>),
    /// Stored and answered. The node is to be told; it is forgotten when the client is not there, if the store has named it.
    Telling(Place, bool),
    /// Nothing is left to be done.
    Done,
    /// Its endpoint node has died.
    Dead,
}

/// A connection of the client, and its task on the node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Connection {
    /// Which node.
    pub node: usize,
    /// Whether it has not ended.
    pub is_open: bool,
    /// Whether the node finds it for the client.
    pub is_entered: bool,
    /// Its `connected_at`.
    pub since: u8,
    /// What its task asks storage, if anything.
    pub doing: Doing,
    /// `must_note` of the state machine.
    pub must_note: bool,
    /// `must_read` of the state machine.
    pub must_read: bool,
    /// The month of the client.
    pub month: u8,
    /// The month that it is to be moved to.
    pub move_to: Option<u8>,
    /// The month by the clock of the node.
    pub clock: u8,
    /// How often a move was tried.
    pub moves: u8,
    /// What waits in its mailbox.
    pub mailbox: Vec<usize>,
    /// Whether it was told that something is stored.
    pub told: bool,
    /// What was sent and is not acknowledged: messages, with the identifiers of those from storage.
    pub outstanding: Vec<(usize, Option<usize>)>,
    /// The identifiers of what was acknowledged of a batch.
    pub acked: Vec<usize>,
    /// What was acknowledged before it was stored.
    pub early: Vec<usize>,
}

/// What the task of a connection does next. Nothing else happens to the connection meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Doing {
    /// It waits for whatever comes.
    #[default]
    Nothing,
    /// `webpush_connect`.
    Connecting,
    /// `webpush_client`, and `webpush_connect` where the node was forgotten.
    Noting,
    /// `webpush_waiting`.
    Reading,
    /// `webpush_acked`.
    Deleting(Vec<usize>),
    /// `webpush_move`.
    Moving(u8),
    /// `webpush_delete_older`, before the sender is answered.
    DeletingOlder(usize),
    /// Answering the sender.
    Settling(usize),
    /// `webpush_delete`, since the sender does not wait any more.
    DeletingLate(usize),
    /// `webpush_delete_older`, when the late one is not stored.
    DeletingOlderLate(usize),
}

impl State {
    /// The row as a route.
    pub fn route(&self) -> Option<Place> {
        let since = self.row.since;
        self.row.node.map(|node| Place { node, since })
    }

    /// The connection by which a node finds the client.
    pub fn entered(&self, node: usize) -> Option<usize> {
        self.connections
            .iter()
            .position(|connection| connection.is_open && connection.is_entered && connection.node == node)
    }

    /// Whether a message waits where the client looks.
    pub fn waits(&self, message: usize) -> bool {
        let month = self.row.month;
        self.stored
            .iter()
            .any(|row| row.message == message && row.month == month)
    }
}
