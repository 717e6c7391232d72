//! One connection as a state machine: what a client says, what is delivered, what storage answers and the passing of time go in,
//! and what is to be done comes out. Pure, so that every rule of the protocol is tested without a socket and with any clock.
//!
//! What is sent stays outstanding until the client acknowledges it. While anything is outstanding nothing is read from storage, so
//! that a batch that is complete is deleted by identifier and the next one begins with what is left: there is no position in time
//! that a message which was stored slowly could land behind.
//!
//! It deliberately keeps no copy of what it has sent directly: the endpoint node keeps that until it is acknowledged.

use std::time::Duration;

use domain::month::Month;
use store::webpush::{Message, Newer};
use tokio::time::Instant;
use uuid::Uuid;
use webpush::MessageId;

use crate::broadcasts::{Broadcasts, Followed};
use crate::mailbox::{Delivery, Receipt};
use crate::protocol::{BroadcastsSaid, ClientMessage, PONG, ServerMessage, Update};

mod close;
mod event;
#[cfg(test)]
mod tests;

pub(crate) use close::Close;
pub(crate) use event::{Acked, Action, Answer, Event, NotRegistered, Origin, Question, Told};

/// Least time between two pings of the protocol; a client that asks more often is broken and costs its battery.
const PING_GAP: Duration = Duration::from_secs(45);
/// Most messages in one batch from storage.
pub(crate) const BATCH: u32 = 10;
/// How many months the row of a client that stays connected may be behind. Older ones are dropped.
const MONTHS_BEHIND: u32 = 2;
/// The same for one that is not draining its month. A client that leaves then has its row for the two months that it may be away.
const MONTHS_BEHIND_AT_REST: u32 = 1;
/// How often a move to another month is tried, for a client that gets messages all the time.
const MOVES: u8 = 3;

/// The rules that an installation sets.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) hello_timeout: Duration,
    pub(crate) ping_interval: Duration,
    pub(crate) pong_timeout: Duration,
    /// Most messages from storage in one go; a client with more is started afresh.
    pub(crate) message_limit: u32,
    /// Most notifications that wait for their acknowledgement before further ones are taken.
    pub(crate) most_outstanding: usize,
    /// Most channels that one connection may register.
    pub(crate) most_registrations: u32,
    /// Least time between two commands, on average.
    pub(crate) command_gap: Duration,
    /// Most commands at once after a pause.
    pub(crate) command_burst: u32,
}

/// What the machine has to know of the world at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) at: Instant,
    /// The present month by the clock of this node.
    pub(crate) month: Month,
    pub(crate) broadcasts: &'a Broadcasts,
}

/// A notification that the client has not acknowledged.
#[derive(Debug)]
struct Outstanding {
    version: Box<str>,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Direct(Receipt, Option<Box<Newer>>),
    Stored(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    AwaitingHello,
    Identifying,
    Open,
    Closed,
}

/// What is due at [`Connection::deadline`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Hello,
    Ping,
    Pong,
}

/// The state of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    phase: Phase,
    due: Due,
    /// A question is being asked: nothing is read from the client meanwhile.
    is_asking: bool,
    /// Storage may hold something that has not been sent.
    must_read: bool,
    /// The client's row may not name this node any more, or may be in another month.
    must_note: bool,
    /// The month of the client's row; `None` while it has none.
    month: Option<Month>,
    /// The month that the client is to be moved to when it has drained its own.
    move_to: Option<Month>,
    moves: u8,
    sent_from_storage: u32,
    registrations: u32,
    deadline: Instant,
    /// Until when the commands so far would have taken, had each come in its time.
    commands_until: Instant,
    last_ping: Option<Instant>,
    outstanding: Vec<Outstanding>,
    /// Messages without TTL that were sent: nothing is kept of them, and the client acknowledges them like any other.
    unkept: u32,
    /// What the client has acknowledged of the batch from storage that is under way.
    acked: Vec<i64>,
    /// Versions that the client acknowledged although they may be stored later.
    early_acks: Vec<Box<str>>,
    followed: Followed,
    /// The broadcasts of the hello, until it is answered.
    greeted_with: Option<Box<BroadcastsSaid>>,
}

impl Connection {
    /// A connection that has just been opened.
    pub(crate) fn opened(moment: Moment<'_>) -> Self {
        Self {
            phase: Phase::AwaitingHello,
            due: Due::Hello,
            is_asking: false,
            must_read: false,
            must_note: false,
            month: None,
            move_to: None,
            moves: 0,
            sent_from_storage: 0,
            registrations: 0,
            deadline: moment.at + moment.rules.hello_timeout,
            commands_until: moment.at,
            last_ping: None,
            outstanding: Vec::new(),
            unkept: 0,
            acked: Vec::new(),
            early_acks: Vec::new(),
            followed: Followed::default(),
            greeted_with: None,
        }
    }

    /// Whether the client is listened to: not while storage is asked, and so not while the client is moved to another month.
    #[cfg(test)]
    pub(crate) fn listens(&self) -> bool {
        !self.is_asking && self.phase != Phase::Closed
    }

    /// Whether a further notification may be delivered.
    pub(crate) fn takes_deliveries(&self, rules: &Rules) -> bool {
        self.phase == Phase::Open && self.outstanding.len() < rules.most_outstanding
    }

    /// When [`Event::Time`] is due next.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// What follows from an event.
    pub(crate) fn on(&mut self, event: Event<'_>, moment: Moment<'_>, actions: &mut Vec<Action>) {
        if self.phase == Phase::Closed {
            return;
        }
        let done = match event {
            Event::Text(text) => self.on_text(text, moment, actions),
            Event::NotText => Err(Close::NotText),
            Event::Pong => {
                if self.due == Due::Pong {
                    self.ping_later(moment);
                    // An endpoint node that had no answer has forgotten this node, and says nothing of what it stores from then on.
                    self.look(actions);
                }
                Ok(())
            }
            Event::Delivery(delivery) => {
                self.deliver(delivery, actions);
                Ok(())
            }
            Event::Stored => {
                self.look(actions);
                Ok(())
            }
            Event::Broadcasts => {
                self.tell_changes(moment, actions);
                Ok(())
            }
            Event::Answer(answer) => self.on_answer(answer, moment, actions),
            Event::NotYetStored(version) => {
                // As many as may have been outstanding.
                if self.early_acks.len() >= moment.rules.most_outstanding {
                    self.early_acks.remove(0);
                }
                self.early_acks.push(version);
                Ok(())
            }
            Event::Time => self.on_time(moment, actions),
        };
        if let Err(close) = done {
            self.phase = Phase::Closed;
            actions.push(Action::Close(close));
        }
    }

    fn on_text(&mut self, text: &str, moment: Moment<'_>, actions: &mut Vec<Action>) -> Result<(), Close> {
        debug_assert!(
            !self.is_asking,
            "the client is not listened to while storage is asked"
        );
        let message = ClientMessage::read(text).map_err(|_| Close::Malformed)?;
        match (self.phase, message) {
            (Phase::AwaitingHello, ClientMessage::Hello { uaid, broadcasts }) => {
                let said = self
                    .followed
                    .follow(&broadcasts.unwrap_or_default(), moment.broadcasts);
                self.greeted_with = Some(Box::new(said));
                self.phase = Phase::Identifying;
                // What is no identifier is treated like one that is not known: the client gets another.
                let uaid = uaid.and_then(|text| Uuid::try_parse(&text).ok());
                self.ask(Question::Identify { uaid }, actions);
            }
            (Phase::Open, message) => return self.on_command(message, moment, actions),
            _ => return Err(Close::NoHello),
        }
        Ok(())
    }

    fn on_command(
        &mut self,
        message: ClientMessage,
        moment: Moment<'_>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Close> {
        // An acknowledgement of what was sent is in proportion to it; everything else is the client's own doing.
        let outstanding = self.outstanding.len();
        let is_ack = matches!(message, ClientMessage::Ack { .. });
        if !is_ack {
            self.count_command(moment)?;
        }
        match message {
            ClientMessage::Register { channel, key } => {
                if self.registrations == moment.rules.most_registrations {
                    return Err(Close::TooManyRegistrations);
                }
                self.registrations += 1;
                self.ask(Question::Register { channel, key }, actions);
            }
            ClientMessage::Unregister { channel } => self.ask(Question::Unregister { channel }, actions),
            ClientMessage::BroadcastSubscribe { broadcasts } => {
                let said = self.followed.follow(&broadcasts, moment.broadcasts);
                if !said.is_empty() {
                    actions.push(Action::Send(ServerMessage::Broadcast { broadcasts: said }.text()));
                }
            }
            ClientMessage::Ack { updates } => {
                self.acknowledge(&updates, actions);
                if self.outstanding.len() == outstanding {
                    // It may be of a message without TTL.
                    match self.unkept.checked_sub(1) {
                        Some(left) => self.unkept = left,
                        None => self.count_command(moment)?,
                    }
                }
            }
            ClientMessage::Ping => {
                if self.last_ping.is_some_and(|last| moment.at - last < PING_GAP) {
                    return Err(Close::PingTooSoon);
                }
                self.last_ping = Some(moment.at);
                actions.push(Action::Send(PONG.to_owned()));
            }
            // It changes nothing: a client that could do nothing with a message acknowledges it as well.
            ClientMessage::Nack { code } => actions.push(Action::Tell(Told::Nacked(match code {
                Some(301) => "301",
                Some(302) => "302",
                Some(303) => "303",
                _ => "0",
            }))),
            ClientMessage::Hello { .. } => return Err(Close::SecondHello),
        }
        Ok(())
    }

    /// Counts a command as a bucket does that leaks: in the long run one in each gap, and a burst after a pause.
    fn count_command(&mut self, moment: Moment<'_>) -> Result<(), Close> {
        let until = self.commands_until.max(moment.at) + moment.rules.command_gap;
        if until - moment.at > moment.rules.command_gap * moment.rules.command_burst {
            return Err(Close::TooManyCommands);
        }
        self.commands_until = until;
        Ok(())
    }

    fn acknowledge(&mut self, updates: &[Update], actions: &mut Vec<Action>) {
        let mut direct = Vec::new();
        for update in updates {
            let place = self
                .outstanding
                .iter()
                .position(|sent| *sent.version == *update.version);
            let Some(place) = place else { continue };
            let sent = self.outstanding.remove(place);
            actions.push(Action::Tell(Told::Acked(match update.code {
                Some(101) => "101",
                Some(102) => "102",
                _ => "100",
            })));
            match sent.source {
                Source::Direct(receipt, newer) => direct.push(Acked {
                    receipt,
                    version: sent.version,
                    newer,
                }),
                Source::Stored(id) => self.acked.push(id),
            }
        }
        if !direct.is_empty() {
            actions.push(Action::Settle(direct));
        }
        if self.outstanding.is_empty() {
            self.outstanding.shrink_to(BATCH as usize);
        }
        self.go_on(actions);
    }

    fn deliver(&mut self, delivery: Delivery, actions: &mut Vec<Action>) {
        actions.push(Action::Notify(delivery.text, Origin::Direct(delivery.span)));
        // Of a message without TTL nothing is left once it was sent, whether it arrives or not.
        if delivery.is_kept {
            self.outstanding.push(Outstanding {
                version: delivery.version,
                source: Source::Direct(delivery.receipt, delivery.newer),
            });
        } else {
            self.unkept = self.unkept.saturating_add(1);
        }
    }

    /// Has storage looked into: first for the client's row, so that whatever is stored afterwards is told to this node, then for
    /// messages.
    fn look(&mut self, actions: &mut Vec<Action>) {
        self.must_note = true;
        self.must_read = true;
        self.go_on(actions);
    }

    /// Goes on with storage: with messages when everything that was sent is acknowledged, direct ones included; with the row of the
    /// client at once.
    fn go_on(&mut self, actions: &mut Vec<Action>) {
        let (Phase::Open, Some(month)) = (self.phase, self.month) else {
            return;
        };
        if self.is_asking {
            return;
        }
        if std::mem::take(&mut self.must_note) {
            self.ask(Question::Note, actions);
        } else if !self.outstanding.is_empty() {
            // Until they are acknowledged.
        } else if !self.acked.is_empty() {
            let ids = std::mem::take(&mut self.acked);
            // There may be more than a batch.
            self.must_read = true;
            self.ask(Question::Delete { month, ids }, actions);
        } else if self.must_read {
            self.must_read = false;
            self.ask(Question::Read { month }, actions);
        }
    }

    fn ask(&mut self, question: Question, actions: &mut Vec<Action>) {
        self.is_asking = true;
        actions.push(Action::Ask(question));
    }

    fn on_answer(
        &mut self,
        answer: Answer,
        moment: Moment<'_>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Close> {
        self.is_asking = false;
        match answer {
            Answer::Identified { uaid, month } => self.greet(uaid, month, moment, actions),
            Answer::Noted(month) => {
                if let Some(month) = month {
                    self.is_in(month);
                }
            }
            Answer::NotNoted => self.must_read = false,
            Answer::Registered {
                channel,
                endpoint,
                month,
            } => {
                self.is_in(month);
                registered(channel, 200, &endpoint, actions);
            }
            Answer::NotRegistered {
                channel,
                why: NotRegistered::BadKey,
            } => {
                registered(channel, 400, "", actions);
            }
            Answer::NotRegistered {
                channel,
                why: NotRegistered::Failed,
            } => {
                registered(channel, 500, "", actions);
            }
            Answer::Unregistered { channel, done } => {
                let status = if done { 200 } else { 500 };
                actions.push(Action::Send(ServerMessage::Unregister { channel, status }.text()));
            }
            Answer::Read(messages) => self.send_batch(messages, moment, actions),
            Answer::Deleted => {}
            Answer::Moved(has_moved) => {
                self.moves += 1;
                if has_moved {
                    self.month = self.move_to.take();
                } else {
                    // Something came meanwhile, or another node has moved it, which the row says.
                    self.must_note = true;
                    if self.moves == MOVES {
                        self.move_to = None;
                    }
                }
                // What came meanwhile is in the one month or in the other: the old one is read until it is empty, then the new one.
                self.must_read = true;
            }
            Answer::Reset => return Err(Close::Reset),
            Answer::Failed => return Err(Close::Storage),
        }
        self.go_on(actions);
        Ok(())
    }

    /// The row of the client is in this month: another node may have moved it.
    fn is_in(&mut self, month: Month) {
        if self.month != Some(month) {
            self.month = Some(month);
            self.must_read = true;
        }
        self.move_to = self.move_to.filter(|to| month < *to);
    }

    fn greet(&mut self, uaid: Uuid, month: Option<Month>, moment: Moment<'_>, actions: &mut Vec<Action>) {
        self.phase = Phase::Open;
        self.month = month;
        // The clock of this node decides. A client is never moved back, so that one that is behind does no harm.
        self.move_to = month.filter(|month| *month < moment.month).map(|_| moment.month);
        self.must_read = true;
        self.ping_later(moment);
        let said = self.greeted_with.take().map(|said| *said);
        let hello = ServerMessage::Hello {
            uaid: uaid.simple(),
            status: 200,
            use_webpush: true,
            broadcasts: said.unwrap_or_default(),
        };
        actions.push(Action::Send(hello.text()));
    }

    fn send_batch(&mut self, messages: Vec<Message>, moment: Moment<'_>, actions: &mut Vec<Action>) {
        if messages.is_empty() {
            self.sent_from_storage = 0;
            if let (Some(from), Some(to)) = (self.month, self.move_to) {
                self.ask(Question::Move { from, to }, actions);
            }
            return;
        }
        let (acked, messages): (Vec<_>, Vec<_>) = messages
            .into_iter()
            .partition(|message| self.early_acks.iter().any(|early| **early == *message.version));
        self.acked.extend(acked.iter().map(|message| message.id));
        self.early_acks
            .retain(|early| acked.iter().all(|message| **early != *message.version));
        let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
        self.sent_from_storage = self.sent_from_storage.saturating_add(count);
        if self.sent_from_storage > moment.rules.message_limit {
            self.ask(Question::Reset, actions);
            return;
        }
        for message in messages {
            let traced = MessageId::is_traced(&message.version).then(|| message.version.as_str().into());
            let text = crate::notification::stored(&message);
            actions.push(Action::Notify(text, Origin::Stored(traced)));
            self.outstanding.push(Outstanding {
                version: message.version.into(),
                source: Source::Stored(message.id),
            });
        }
    }

    fn tell_changes(&mut self, moment: Moment<'_>, actions: &mut Vec<Action>) {
        let broadcasts = self.followed.changes(moment.broadcasts);
        if self.phase == Phase::Open && !broadcasts.is_empty() {
            actions.push(Action::Send(ServerMessage::Broadcast { broadcasts }.text()));
        }
    }

    fn ping_later(&mut self, moment: Moment<'_>) {
        self.due = Due::Ping;
        self.deadline = moment.at + moment.rules.ping_interval;
    }

    /// Whether the client has to come back in order to be moved.
    fn month_is_over(&self, moment: Moment<'_>) -> bool {
        let behind = if self.move_to.is_some() {
            MONTHS_BEHIND
        } else {
            MONTHS_BEHIND_AT_REST
        };
        self.month.is_some_and(|month| month.plus(behind) <= moment.month)
    }

    fn on_time(&mut self, moment: Moment<'_>, actions: &mut Vec<Action>) -> Result<(), Close> {
        if moment.at < self.deadline {
            return Ok(());
        }
        match self.due {
            Due::Hello => Err(Close::HelloTimeout),
            Due::Pong => Err(Close::PongTimeout),
            Due::Ping if self.month_is_over(moment) => Err(Close::MonthOver),
            Due::Ping => {
                actions.push(Action::Ping);
                self.due = Due::Pong;
                self.deadline = moment.at + moment.rules.pong_timeout;
                Ok(())
            }
        }
    }
}

fn registered(channel: Uuid, status: u16, endpoint: &str, actions: &mut Vec<Action>) {
    let registered = ServerMessage::Register {
        channel,
        status,
        endpoint,
    };
    actions.push(Action::Send(registered.text()));
}
