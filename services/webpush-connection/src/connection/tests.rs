//! The protocol rule by rule, without a socket and with a clock that the tests move.

mod acknowledgements;
mod commands;
mod months;
mod storage;

use chrono::{DateTime, TimeZone as _, Utc};
use serde_json::{Value, json};
use telemetry::traces::Span;
use tokio::sync::oneshot;

use super::*;

const CHANNEL: Uuid = Uuid::from_u128(0xc);
const UAID: Uuid = Uuid::from_u128(0xa);

/// A connection on a clock of its own, with what it wants done.
struct Driven {
    machine: Connection,
    rules: Rules,
    broadcasts: Broadcasts,
    at: Instant,
    month: Month,
    actions: Vec<Action>,
}

impl Driven {
    fn opened() -> Self {
        let rules = Rules {
            hello_timeout: Duration::from_secs(5),
            ping_interval: Duration::from_secs(300),
            pong_timeout: Duration::from_secs(4),
            message_limit: 30,
            most_outstanding: 3,
            most_registrations: 2,
            command_gap: Duration::from_millis(100),
            command_burst: 5,
        };
        let (at, month, broadcasts) = (Instant::now(), november(), Broadcasts::default());
        let moment = Moment {
            rules: &rules,
            at,
            month,
            broadcasts: &broadcasts,
        };
        Self {
            machine: Connection::opened(moment),
            rules,
            broadcasts,
            at,
            month,
            actions: Vec::new(),
        }
    }

    /// A connection of a client whose row is in `month`, with nothing in storage.
    fn of_client() -> Self {
        let mut driven = Self::opened();
        driven.identified(Some(november()));
        driven.answered(Answer::Read(Vec::new()));
        driven.nothing();
        driven
    }

    fn identified(&mut self, month: Option<Month>) {
        self.say(&json!({"messageType": "hello", "uaid": UAID.simple().to_string()}));
        assert_eq!(self.asked(), Question::Identify { uaid: Some(UAID) });
        self.answered(Answer::Identified { uaid: UAID, month });
        assert_eq!(self.sent()["messageType"], "hello");
        if let Some(month) = month {
            assert_eq!(self.asked(), Question::Read { month });
        }
    }

    fn happen(&mut self, event: Event<'_>) {
        let moment = Moment {
            rules: &self.rules,
            at: self.at,
            month: self.month,
            broadcasts: &self.broadcasts,
        };
        self.machine.on(event, moment, &mut self.actions);
    }

    fn say(&mut self, message: &Value) {
        self.happen(Event::Text(&message.to_string()));
    }

    fn answered(&mut self, answer: Answer) {
        self.happen(Event::Answer(answer));
    }

    fn ack(&mut self, versions: &[&str]) {
        let updates: Vec<_> = versions
            .iter()
            .map(|version| json!({"channelID": CHANNEL, "version": version, "code": 100}))
            .collect();
        self.say(&json!({"messageType": "ack", "updates": updates}));
        self.actions.retain(|action| !matches!(action, Action::Tell(_)));
    }

    fn deliver(&mut self, version: &str, is_kept: bool) -> oneshot::Receiver<()> {
        let (receipt, settled) = Receipt::new();
        let delivery = Delivery {
            version: version.into(),
            text: json!({"messageType": "notification", "version": version}).to_string(),
            is_kept,
            newer: None,
            receipt,
            span: Span::none(),
        };
        self.happen(Event::Delivery(delivery));
        assert_eq!(self.sent()["version"], version);
        settled
    }

    /// A node says that something was stored, and the row of the client is as it was.
    fn told(&mut self) {
        self.happen(Event::Stored);
        self.noted(november());
    }

    fn noted(&mut self, month: Month) {
        assert_eq!(self.asked(), Question::Note);
        self.answered(Answer::Noted(Some(month)));
    }

    /// Storage was looked into, and nothing is new.
    fn looked(&mut self) {
        self.noted(november());
        assert_eq!(self.asked(), Question::Read { month: november() });
        self.answered(Answer::Read(Vec::new()));
        self.nothing();
    }

    fn pass(&mut self, seconds: u64) {
        self.at += Duration::from_secs(seconds);
        self.happen(Event::Time);
    }

    fn next(&mut self) -> Action {
        assert!(!self.actions.is_empty(), "nothing is wanted");
        self.actions.remove(0)
    }

    fn sent(&mut self) -> Value {
        match self.next() {
            Action::Send(text) | Action::Notify(text, _) => serde_json::from_str(&text).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn asked(&mut self) -> Question {
        match self.next() {
            Action::Ask(question) => question,
            other => panic!("{other:?}"),
        }
    }

    fn closed(&mut self) -> Close {
        match self.next() {
            Action::Close(close) => close,
            other => panic!("{other:?}"),
        }
    }

    fn settled(&mut self) -> (bool, String) {
        match self.next() {
            Action::Settle(mut acked) => {
                let Acked { receipt, version, .. } = acked.remove(0);
                assert!(acked.is_empty(), "{acked:?}");
                (receipt.settle(), version.into())
            }
            other => panic!("{other:?}"),
        }
    }

    fn nothing(&mut self) {
        assert!(self.actions.is_empty(), "{:?}", self.actions);
    }
}

fn at(month: u32) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, month, 5, 0, 0, 0).unwrap()
}

fn november() -> Month {
    Month::containing(at(11))
}

fn december() -> Month {
    Month::containing(at(12))
}

fn stored(id: i64, version: &str) -> Message {
    Message {
        id,
        channel: CHANNEL,
        topic: None,
        version: version.to_owned(),
        received_at: at(11),
        expires_at: at(12),
        body: None,
    }
}
