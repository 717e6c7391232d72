//! One connection at work: moves between the socket, the mailbox, storage and the state machine, which alone decides.
//!
//! One task holds all of it. What happens seldom is in futures of its own that are allocated while they run, so that the task of
//! a connection that is idle stays small.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::month::Month;
use http_api::{Place, Upgraded};
use lifecycle::error_chain;
use store::webpush::{Newer, Registered};
use telemetry::Metric;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use crate::connection::{
    Acked, Action, Answer, BATCH, Close, Connection, Event, NotRegistered, Origin, Question, Told,
};
use crate::mailbox::{Letter, Mailbox};
use crate::metrics::Metrics;
use crate::node::Node;
use crate::notification;
use crate::socket::{Gone, Received, Socket};

/// Longest wait for storage; a client that is not served by then had better come again.
const STORAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Most messages that are deleted because their TTL is over, each time that storage is read.
const MOST_EXPIRED: u32 = 2000;
/// By how much the clocks of two endpoint nodes may differ without harm to a message that replaces another one.
const CLOCKS_DIFFER: TimeDelta = TimeDelta::seconds(1);
/// How often a node notes a client after another one, whose clock may be ahead, did.
const CONNECTS: u32 = 3;

/// What was acknowledged when its sender did not wait any more: its version, and of which topic it is the newer message.
type Late = (Box<str>, Option<Box<Newer>>);

/// Why a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    ByNode(Close),
    Gone(Gone),
}

impl From<Gone> for Ended {
    fn from(gone: Gone) -> Self {
        Self::Gone(gone)
    }
}

/// A connection with its client.
struct Session {
    node: Arc<Node>,
    socket: Socket,
    machine: Connection,
    mailbox: Arc<Mailbox>,
    actions: Vec<Action>,
    client: Option<Uuid>,
    connected_at: DateTime<Utc>,
    /// Where it comes from.
    from: Option<IpAddr>,
    _place: Place,
}

/// Serves a connection until it ends.
pub(crate) async fn serve(node: Arc<Node>, upgraded: Upgraded, from: Option<IpAddr>) {
    let socket = Box::pin(Socket::on(upgraded.stream, upgraded.ahead)).await;
    let mut session = Session {
        machine: node.at_this_moment(Connection::opened),
        connected_at: node.now(),
        node,
        socket,
        mailbox: Arc::default(),
        actions: Vec::new(),
        client: None,
        from,
        _place: upgraded.place,
    };
    Metric::WebpushConnectionsOpened.increment(1);
    let ended = session.run().await;
    Box::pin(session.end(ended)).await;
}

impl Session {
    async fn run(&mut self) -> Ended {
        let mut alarm = std::pin::pin!(sleep_until(self.machine.deadline()));
        loop {
            let takes_deliveries = self.machine.takes_deliveries(&self.node.rules);
            let happened = tokio::select! {
                biased;
                letter = self.mailbox.next(takes_deliveries) => self.on_letter(letter),
                received = self.socket.next() => self.on_received(received),
                () = alarm.as_mut() => {
                    self.feed(Event::Time);
                    alarm.as_mut().reset(self.machine.deadline());
                    Ok(())
                }
            };
            if let Err(ended) = happened {
                return ended;
            }
            if !self.actions.is_empty()
                && let Err(ended) = Box::pin(self.act()).await
            {
                return ended;
            }
            // A deadline that has moved away is seen when the alarm goes off: to move a timer costs more than to wake up once.
            if self.machine.deadline() < alarm.deadline() {
                alarm.as_mut().reset(self.machine.deadline());
            }
        }
    }

    fn feed(&mut self, event: Event<'_>) {
        let (machine, actions) = (&mut self.machine, &mut self.actions);
        self.node
            .at_this_moment(|moment| machine.on(event, moment, actions));
    }

    fn on_letter(&mut self, letter: Letter) -> Result<(), Ended> {
        match letter {
            Letter::End(close) => return Err(Ended::ByNode(close)),
            Letter::Stored => self.feed(Event::Stored),
            Letter::Broadcasts => self.feed(Event::Broadcasts),
            Letter::Delivery(delivery) => self.feed(Event::Delivery(delivery)),
        }
        Ok(())
    }

    fn on_received(&mut self, received: Result<Received, Gone>) -> Result<(), Ended> {
        match received? {
            Received::Text(text) => self.feed(Event::Text(&text)),
            Received::NotText => self.feed(Event::NotText),
            Received::Pong => self.feed(Event::Pong),
            Received::Ping => {}
        }
        Ok(())
    }

    /// Does what the machine wants done, in order, until it wants nothing more. It runs twice for each message: what asks storage is in
    /// futures of their own, which are large.
    async fn act(&mut self) -> Result<(), Ended> {
        while !self.actions.is_empty() {
            for action in std::mem::take(&mut self.actions) {
                match action {
                    Action::Send(text) => self.socket.send(text).await?,
                    Action::Notify(text, origin) => {
                        let mut span = match origin {
                            Origin::Direct(span) => span,
                            Origin::Stored(id) => {
                                notification::span_of_stored(id.as_deref(), &self.node.endpoints)
                            }
                        };
                        let sent = self.socket.send(text).await;
                        if sent.is_err() {
                            span.fail("gone");
                        }
                        sent?;
                    }
                    Action::Ping => self.socket.ping().await?,
                    Action::Ask(question) => {
                        let answer = Box::pin(self.answer(question)).await;
                        self.feed(Event::Answer(answer));
                    }
                    Action::Settle(acked) => {
                        let (with_topic, late) = settle_others(acked);
                        // Nearly always that was all.
                        if !(with_topic.is_empty() && late.is_empty()) {
                            Box::pin(self.settle(with_topic, late)).await;
                        }
                    }
                    Action::Tell(told) => told.count(&self.node.metrics),
                    Action::Close(close) => return Err(Ended::ByNode(close)),
                }
            }
        }
        Ok(())
    }

    /// Tells the senders of messages with a topic that the client has them, and has what is older deleted. What a sender has given up
    /// waiting for, as those of `late` have, it stores: then it is taken out of storage.
    async fn settle(&mut self, with_topic: Vec<Acked>, mut late: Vec<Late>) {
        let has_deleted = self.delete_older_in_time(&with_topic).await;
        let mut newer = Vec::new();
        for acked in with_topic {
            if !acked.receipt.settle() {
                late.push((acked.version, acked.newer));
            } else if !has_deleted {
                newer.extend(acked.newer.map(|newer| *newer));
            }
        }
        self.delete_late(&mut late).await;
        // What was stored has replaced what was older. What is not may be stored in a moment.
        newer.extend(late.iter().filter_map(|(_, newer)| newer.as_deref().cloned()));
        // By now something may have replaced it that was sent after its sender was answered: that must not go because two clocks differ.
        for newer in &mut newer {
            newer.received_at -= CLOCKS_DIFFER;
        }
        let deleting = self.delete_older(STORAGE_TIMEOUT, newer.iter().collect());
        if let Err(error) = deleting.await {
            // The client is shown it later.
            tracing::warn!(
                error = error_chain(&error),
                "failed to delete older messages of a topic"
            );
        }
        for (version, _) in late {
            self.feed(Event::NotYetStored(version));
        }
    }

    /// Deletes what is stored and older than messages whose senders still wait: until a sender is answered, nothing can have been sent
    /// after its message, whatever the clocks of the endpoint nodes say. Returns whether that is done.
    ///
    /// It may take no more than a part of their wait, and there is none to spare where the client was late: a message must not
    /// count as late because storage is slow.
    async fn delete_older_in_time(&self, acked: &[Acked]) -> bool {
        if !self.mailbox.is_prompt(Instant::now()) {
            return false;
        }
        let awaited = acked.iter().filter(|acked| acked.receipt.is_awaited());
        let newer = awaited.filter_map(|acked| acked.newer.as_deref()).collect();
        self.delete_older(self.node.ack_wait / 4, newer).await.is_ok()
    }

    /// Takes out of storage what its senders have stored by now; leaves what is not there.
    async fn delete_late(&self, late: &mut Vec<Late>) {
        let Some(uaid) = self.client.filter(|_| !late.is_empty()) else {
            return;
        };
        let versions: Vec<&str> = late.iter().map(|(version, _)| &**version).collect();
        let deleting = self.node.store.webpush_delete(uaid, &versions);
        let deleted = store::within(STORAGE_TIMEOUT, deleting).await.unwrap_or_default();
        late.retain(|(version, _)| !deleted.iter().any(|deleted| **deleted == **version));
    }

    /// Deletes what is stored for topics and older than what the client has of them.
    async fn delete_older(&self, limit: Duration, newer: Vec<&Newer>) -> Result<(), store::Error> {
        let Some(uaid) = self.client.filter(|_| !newer.is_empty()) else {
            return Ok(());
        };
        let deleting = self.node.store.webpush_delete_older(uaid, &newer);
        store::within(limit, deleting).await?;
        Ok(())
    }

    async fn answer(&mut self, question: Question) -> Answer {
        let failed = match &question {
            Question::Register { channel, .. } => Answer::NotRegistered {
                channel: *channel,
                why: NotRegistered::Failed,
            },
            Question::Unregister { channel } => Answer::Unregistered {
                channel: *channel,
                done: false,
            },
            Question::Note => Answer::NotNoted,
            _ => Answer::Failed,
        };
        let answered = match question {
            // It has a limit of its own, since it must not be given up between what it does and what it takes back.
            Question::Identify { uaid } => self.identify(uaid).await,
            question => store::within(STORAGE_TIMEOUT, self.ask(question)).await,
        };
        answered.unwrap_or_else(|error| {
            tracing::warn!(error = error_chain(&error), "storage failed a connection");
            failed
        })
    }

    async fn ask(&mut self, question: Question) -> Result<Answer, store::Error> {
        let uaid = self
            .client
            .expect("invariant: nothing else is asked before the client is identified");
        let (node, store) = (&self.node, &self.node.store);
        Ok(match question {
            Question::Identify { .. } => Answer::Failed,
            Question::Note => return self.note_again(uaid).await.map(Answer::Noted),
            Question::Register { channel, key } => return self.register(uaid, channel, key).await,
            Question::Unregister { channel } => {
                store.webpush_unregister(uaid, channel).await?;
                Answer::Unregistered { channel, done: true }
            }
            Question::Read { month } => {
                let now = node.now();
                store
                    .webpush_delete_expired(uaid, month, now, MOST_EXPIRED)
                    .await?;
                let messages = store.webpush_waiting(uaid, month, now, &[], BATCH).await?;
                Metric::WebpushStoredSent.increment(messages.len() as u64);
                Answer::Read(messages)
            }
            Question::Delete { month, ids } => {
                store.webpush_acked(uaid, month, &ids).await?;
                Answer::Deleted
            }
            Question::Move { from, to } => {
                let has_moved = store.webpush_move(uaid, from, to, node.now()).await?;
                Metric::WebpushMoves.increment(u64::from(has_moved));
                Answer::Moved(has_moved)
            }
            Question::Reset => {
                store.webpush_reset(uaid).await?;
                Answer::Reset
            }
        })
    }

    /// Finds out who the client is. It is entered in the node before its row is written and before storage is read: whatever is
    /// stored afterwards finds it here, and whatever was stored before is read.
    async fn identify(&mut self, uaid: Option<Uuid>) -> Result<Answer, store::Error> {
        if let Some(uaid) = uaid {
            let before = self.node.registry.enter(uaid, &self.mailbox);
            match store::within(STORAGE_TIMEOUT, self.connect(uaid)).await {
                Ok(Some(month)) => {
                    if let Some(before) = before {
                        before.end(Close::Replaced);
                    }
                    self.client = Some(uaid);
                    let month = Some(month);
                    return Ok(Answer::Identified { uaid, month });
                }
                unknown => {
                    self.node.registry.withdraw(uaid, &self.mailbox, before);
                    unknown?;
                    // What came in for that identifier is not for the one that follows.
                    self.mailbox = Arc::default();
                }
            }
        }
        let uaid = Uuid::new_v4();
        self.node.registry.enter(uaid, &self.mailbox);
        self.client = Some(uaid);
        Ok(Answer::Identified { uaid, month: None })
    }

    /// Notes this node in the row of a client; returns its month, or `None` when the client is not known.
    async fn connect(&mut self, uaid: Uuid) -> Result<Option<Month>, store::Error> {
        let mut month = None;
        for _ in 0..CONNECTS {
            let (node, connected_at) = (self.node.name.as_str(), self.connected_at);
            let Some(client) = self.node.store.webpush_connect(uaid, node, connected_at).await? else {
                return Ok(None);
            };
            month = Some(client.month);
            if client.node.as_deref() == Some(node) && client.connected_at == connected_at {
                break;
            }
            // A node whose clock is ahead had the client before: it is here now, since it has just said so.
            self.connected_at = client.connected_at + TimeDelta::milliseconds(1);
        }
        Ok(month)
    }

    /// Notes this node once more where an endpoint node has forgotten one: this one, because it did not answer in time, or one where an
    /// earlier connection of the client was noted late. Returns the month of the client.
    async fn note_again(&mut self, uaid: Uuid) -> Result<Option<Month>, store::Error> {
        match self.node.store.webpush_client(uaid).await? {
            Some(client) if client.node.is_none() => self.connect(uaid).await,
            client => Ok(client.map(|client| client.month)),
        }
    }

    async fn register(
        &mut self,
        uaid: Uuid,
        channel: Uuid,
        key: Option<String>,
    ) -> Result<Answer, store::Error> {
        let node = &self.node;
        let count = |outcome| Metric::WebpushRegistrations.increment_with(&[("outcome", outcome)], 1);
        let Some(endpoint) = node.endpoints.make(uaid, channel, key.as_deref()) else {
            count("bad_key");
            return Ok(Answer::NotRegistered {
                channel,
                why: NotRegistered::BadKey,
            });
        };
        if !node.registrations.admits_stranger(self.from) {
            count("too_many");
            return Ok(Answer::NotRegistered {
                channel,
                why: NotRegistered::Failed,
            });
        }
        let registered = node.store.webpush_register(
            uaid,
            Some(&node.name),
            self.connected_at,
            node.month(),
            channel,
            node.max_channels,
        );
        Ok(match registered.await? {
            Registered::Yes { month } => {
                count("registered");
                Answer::Registered {
                    channel,
                    endpoint,
                    month,
                }
            }
            Registered::Full => {
                count("full");
                Answer::NotRegistered {
                    channel,
                    why: NotRegistered::Failed,
                }
            }
        })
    }

    /// Takes nothing any more, tells those who wait for an acknowledgement, and takes leave of the client.
    async fn end(self, ended: Ended) {
        self.mailbox.close();
        if let Some(uaid) = self.client {
            self.node.registry.leave(uaid, &self.mailbox);
        }
        // Their senders store what has not been acknowledged, and tell the node that the client has gone to.
        drop(self.machine);
        drop(self.actions);
        let reason = match ended {
            Ended::ByNode(close) => close.as_str(),
            Ended::Gone(Gone::Closed | Gone::Broken) => "client",
            Ended::Gone(Gone::Protocol(_)) => "protocol",
            Ended::Gone(Gone::Stalled) => "stalled",
        };
        Metric::WebpushConnectionsClosed.increment_with(&[("reason", reason)], 1);
        tracing::debug!(reason, "a connection has ended");
        match ended {
            Ended::ByNode(close) => self.socket.close(close.code(), close.as_str()).await,
            Ended::Gone(Gone::Protocol(code)) => self.socket.close(code, reason).await,
            Ended::Gone(Gone::Closed) => self.socket.part().await,
            Ended::Gone(Gone::Broken | Gone::Stalled) => {}
        }
    }
}

/// Tells the senders of messages without a topic that the client has them. Returns those with a topic, and what its sender has given up
/// waiting for.
fn settle_others(acked: Vec<Acked>) -> (Vec<Acked>, Vec<Late>) {
    let (with_topic, others): (Vec<_>, Vec<_>) = acked.into_iter().partition(|acked| acked.newer.is_some());
    let late = others.into_iter().filter_map(Acked::settle).collect();
    (with_topic, late)
}

impl Acked {
    /// Tells the sender; returns what the sender does not wait for any more.
    fn settle(self) -> Option<Late> {
        (!self.receipt.settle()).then_some((self.version, self.newer))
    }
}

impl Told {
    fn count(self, metrics: &Metrics) {
        match self {
            Self::Acked("100") => metrics.delivered.increment(1),
            Self::Acked(code) => Metric::WebpushAcks.increment_with(&[("code", code)], 1),
            Self::Nacked(code) => Metric::WebpushNacks.increment_with(&[("code", code)], 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the futures that a function makes.
    fn size_of_future<F>(_: impl FnOnce(Arc<Node>, Upgraded, Option<IpAddr>) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn the_future_of_an_idle_connection_is_small() {
        let bytes = size_of_future(serve);
        assert!(bytes <= 1536, "{bytes} bytes for each connection");
    }

    /// The size of the futures that a method makes.
    fn size_of_work<F>(_: impl FnOnce(&'static mut Session) -> F) -> usize {
        size_of::<F>()
    }

    /// So small that the allocator has it at hand.
    #[test]
    fn the_future_of_what_follows_from_a_message_is_small() {
        let bytes = size_of_work(Session::act);
        assert!(bytes <= 1024, "{bytes} bytes twice for each message");
    }
}
