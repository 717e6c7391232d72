//! The protocol rule by rule, without a socket and with a clock that the tests move.

use chrono::{DateTime, TimeZone as _, Utc};
use serde_json::{Value, json};
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
            Action::Send(text) => serde_json::from_str(&text).unwrap(),
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

#[test]
fn the_first_message_is_a_hello_and_comes_in_time() {
    let mut late = Driven::opened();
    late.pass(4);
    late.nothing();
    late.pass(1);
    assert_eq!(late.closed(), Close::HelloTimeout);

    for message in [
        json!({"messageType": "ping"}),
        json!({}),
        json!({"messageType": "register", "channelID": CHANNEL}),
    ] {
        let mut other = Driven::opened();
        other.say(&message);
        assert_eq!(other.closed(), Close::NoHello);
        other.pass(5);
        other.nothing();
    }
}

#[test]
fn a_hello_is_answered_with_the_identifier() {
    let mut driven = Driven::opened();
    driven.say(&json!({"messageType": "hello", "uaid": "nonsense", "use_webpush": true}));
    assert_eq!(driven.asked(), Question::Identify { uaid: None });
    driven.answered(Answer::Identified {
        uaid: UAID,
        month: None,
    });
    let hello = json!({
        "messageType": "hello", "uaid": "0000000000000000000000000000000a", "status": 200, "use_webpush": true,
        "broadcasts": {},
    });
    assert_eq!(driven.sent(), hello);
    // A client that is not stored has nothing in storage.
    driven.nothing();
}

#[test]
fn what_breaks_the_protocol_ends_the_connection() {
    for (message, close) in [
        (json!({"messageType": "hello"}), Close::SecondHello),
        (json!({"messageType": "greet"}), Close::Malformed),
        (json!(["hello"]), Close::Malformed),
        (
            json!({"messageType": "register", "channelID": "ABC"}),
            Close::Malformed,
        ),
    ] {
        let mut driven = Driven::of_client();
        driven.say(&message);
        assert_eq!(driven.closed(), close);
        assert_eq!(close.code(), 1011);
        driven.happen(Event::Stored);
        driven.nothing();
        assert!(!driven.machine.listens());
    }
    let mut driven = Driven::of_client();
    driven.happen(Event::NotText);
    assert_eq!(driven.closed().code(), 1003);
}

#[test]
fn codes_say_whether_it_is_worth_coming_back() {
    assert_eq!(Close::Reset.code(), 1000);
    assert_eq!(Close::GoingAway.code(), 1001);
    assert_eq!(Close::Replaced.code(), 1011);
}

#[test]
fn a_ping_of_the_protocol_may_come_every_45_seconds() {
    let mut driven = Driven::of_client();
    driven.say(&json!({}));
    assert_eq!(driven.sent(), json!({}));
    driven.pass(45);
    driven.say(&json!({"messageType": "ping"}));
    assert_eq!(driven.sent(), json!({}));
    driven.pass(44);
    driven.say(&json!({}));
    assert_eq!(driven.closed(), Close::PingTooSoon);
}

#[test]
fn a_client_that_does_not_answer_a_ping_of_the_socket_is_gone() {
    let mut driven = Driven::of_client();
    driven.pass(300);
    assert!(matches!(driven.next(), Action::Ping));
    driven.pass(3);
    driven.happen(Event::Pong);
    driven.looked();
    driven.pass(299);
    driven.nothing();
    driven.pass(1);
    assert!(matches!(driven.next(), Action::Ping));
    driven.pass(4);
    assert_eq!(driven.closed(), Close::PongTimeout);
}

#[test]
fn a_channel_gets_its_endpoint() {
    let mut driven = Driven::of_client();
    driven.say(&json!({"messageType": "register", "channelID": CHANNEL, "key": "k"}));
    let register = Question::Register {
        channel: CHANNEL,
        key: Some("k".to_owned()),
    };
    assert_eq!(driven.asked(), register);
    assert!(!driven.machine.listens());
    let endpoint = "https://push.example/wpush/v1/x".to_owned();
    driven.answered(Answer::Registered {
        channel: CHANNEL,
        endpoint: endpoint.clone(),
        month: november(),
    });
    let registered =
        json!({"messageType": "register", "channelID": CHANNEL, "status": 200, "pushEndpoint": endpoint});
    assert_eq!(driven.sent(), registered);
    driven.nothing();
}

#[test]
fn a_channel_without_endpoint_says_whose_fault_that_is() {
    for (why, status) in [(NotRegistered::BadKey, 400), (NotRegistered::Failed, 500)] {
        let mut driven = Driven::of_client();
        driven.say(&json!({"messageType": "register", "channelID": CHANNEL}));
        driven.asked();
        driven.answered(Answer::NotRegistered {
            channel: CHANNEL,
            why,
        });
        assert_eq!(driven.sent()["status"], status);
    }
}

#[test]
fn registrations_of_a_connection_are_bounded() {
    let mut driven = Driven::of_client();
    for _ in 0..2 {
        driven.say(&json!({"messageType": "register", "channelID": CHANNEL}));
        driven.asked();
        driven.answered(Answer::NotRegistered {
            channel: CHANNEL,
            why: NotRegistered::BadKey,
        });
        driven.sent();
    }
    driven.say(&json!({"messageType": "register", "channelID": CHANNEL}));
    assert_eq!(driven.closed(), Close::TooManyRegistrations);
}

#[test]
fn a_channel_that_is_taken_away_is_answered() {
    for (done, status) in [(true, 200), (false, 500)] {
        let mut driven = Driven::of_client();
        driven.say(&json!({"messageType": "unregister", "channelID": CHANNEL, "code": 200}));
        assert_eq!(driven.asked(), Question::Unregister { channel: CHANNEL });
        driven.answered(Answer::Unregistered {
            channel: CHANNEL,
            done,
        });
        let unregistered = json!({"messageType": "unregister", "channelID": CHANNEL, "status": status});
        assert_eq!(driven.sent(), unregistered);
    }
}

#[test]
fn a_direct_message_is_settled_when_it_is_acknowledged() {
    let mut driven = Driven::of_client();
    let mut settled = driven.deliver("1", true);
    driven.nothing();
    settled.try_recv().unwrap_err();
    driven.ack(&["1"]);
    assert_eq!(driven.settled(), (true, "1".to_owned()));
    settled.try_recv().unwrap();
    driven.nothing();
}

#[test]
fn a_message_without_ttl_is_done_with_when_it_was_sent() {
    let mut driven = Driven::of_client();
    driven.deliver("1", false);
    driven.told();
    assert_eq!(driven.asked(), Question::Read { month: november() });
}

#[test]
fn a_connection_that_ends_settles_nothing() {
    let mut driven = Driven::of_client();
    let mut settled = driven.deliver("1", true);
    drop(driven);
    assert_eq!(settled.try_recv(), Err(oneshot::error::TryRecvError::Closed));
}

#[test]
fn no_more_is_delivered_than_may_be_outstanding() {
    let mut driven = Driven::of_client();
    let _settled = ["1", "2", "3"].map(|version| {
        assert!(driven.machine.takes_deliveries(&driven.rules));
        driven.deliver(version, true)
    });
    assert!(!driven.machine.takes_deliveries(&driven.rules));
    driven.ack(&["2"]);
    assert!(driven.machine.takes_deliveries(&driven.rules));
}

#[test]
fn nothing_is_delivered_before_the_hello_is_answered() {
    let driven = Driven::opened();
    assert!(!driven.machine.takes_deliveries(&driven.rules));
}

#[test]
fn the_next_batch_comes_when_everything_is_acknowledged_direct_messages_included() {
    let mut driven = Driven::opened();
    driven.identified(Some(november()));
    driven.answered(Answer::Read(vec![stored(1, "s1"), stored(2, "s2")]));
    assert_eq!(driven.sent()["version"], "s1");
    assert_eq!(driven.sent()["version"], "s2");
    let _settled = driven.deliver("d", true);
    driven.ack(&["s1", "s2"]);
    driven.told();
    driven.nothing();
    driven.ack(&["d"]);
    driven.settled();
    // What was acknowledged is deleted when the batch is complete, by identifier; then comes what is left.
    let delete = Question::Delete {
        month: november(),
        ids: vec![1, 2],
    };
    assert_eq!(driven.asked(), delete);
    driven.answered(Answer::Deleted);
    assert_eq!(driven.asked(), Question::Read { month: november() });
    driven.answered(Answer::Read(vec![stored(3, "s3")]));
    assert_eq!(driven.sent()["version"], "s3");
}

#[test]
fn one_of_two_acknowledged_deletes_neither() {
    let mut driven = Driven::opened();
    driven.identified(Some(november()));
    driven.answered(Answer::Read(vec![stored(1, "s1"), stored(2, "s2")]));
    driven.actions.clear();
    driven.ack(&["s1"]);
    driven.nothing();
}

#[test]
fn an_acknowledgement_of_nothing_changes_nothing() {
    let mut driven = Driven::of_client();
    driven.ack(&["unknown"]);
    driven.nothing();
    driven.say(&json!({"messageType": "nack", "version": "unknown", "code": 302}));
    assert!(matches!(driven.next(), Action::Tell(Told::Nacked("302"))));
    driven.nothing();
}

#[test]
fn codes_of_acknowledgements_are_counted_and_all_of_them_settle() {
    for (code, told) in [
        (json!(100), "100"),
        (json!(101), "101"),
        (json!(102), "102"),
        (json!(null), "100"),
        (json!(7), "100"),
    ] {
        let mut driven = Driven::of_client();
        let _settled = driven.deliver("1", true);
        // Once in one message counts once.
        let update = json!({"channelID": CHANNEL, "version": "1", "code": code});
        driven.say(&json!({"messageType": "ack", "updates": [update, update]}));
        assert!(
            matches!(driven.next(), Action::Tell(Told::Acked(as_told)) if as_told == told),
            "{code}"
        );
        assert_eq!(driven.settled(), (true, "1".to_owned()));
        driven.nothing();
    }
    for (code, told) in [(301, "301"), (303, "303"), (7, "0")] {
        let mut driven = Driven::of_client();
        driven.say(&json!({"messageType": "nack", "version": "1", "code": code}));
        assert!(
            matches!(driven.next(), Action::Tell(Told::Nacked(as_told)) if as_told == told),
            "{code}"
        );
        driven.nothing();
    }
}

#[test]
fn what_is_stored_while_storage_is_read_is_read_as_well() {
    let mut driven = Driven::opened();
    driven.identified(Some(november()));
    // The answer that is on its way may not hold it.
    driven.happen(Event::Stored);
    driven.nothing();
    driven.answered(Answer::Read(Vec::new()));
    driven.noted(november());
    assert_eq!(driven.asked(), Question::Read { month: november() });
    driven.answered(Answer::Read(Vec::new()));
    driven.nothing();
}

#[test]
fn a_client_with_too_many_messages_is_started_afresh() {
    let mut driven = Driven::opened();
    driven.identified(Some(november()));
    for batch in 0..3 {
        let messages: Vec<_> = (0..10).map(|n| stored(n, &format!("{batch}-{n}"))).collect();
        driven.answered(Answer::Read(messages));
        let versions: Vec<String> = (0..10)
            .map(|_| driven.sent()["version"].as_str().unwrap().to_owned())
            .collect();
        driven.ack(&versions.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(matches!(driven.asked(), Question::Delete { .. }));
        driven.answered(Answer::Deleted);
        assert!(matches!(driven.asked(), Question::Read { .. }));
    }
    driven.answered(Answer::Read(vec![stored(31, "31")]));
    assert_eq!(driven.asked(), Question::Reset);
    driven.answered(Answer::Reset);
    assert_eq!(driven.closed(), Close::Reset);
}

#[test]
fn messages_are_counted_from_one_emptying_of_storage_to_the_next() {
    let mut driven = Driven::of_client();
    for round in 0..5 {
        driven.told();
        driven.asked();
        let messages: Vec<_> = (0..10).map(|n| stored(n, &format!("{round}-{n}"))).collect();
        let versions: Vec<_> = messages.iter().map(|message| message.version.clone()).collect();
        driven.answered(Answer::Read(messages));
        driven.actions.clear();
        driven.ack(&versions.iter().map(String::as_str).collect::<Vec<_>>());
        driven.asked();
        driven.answered(Answer::Deleted);
        driven.asked();
        driven.answered(Answer::Read(Vec::new()));
        driven.nothing();
    }
}

#[test]
fn storage_that_fails_ends_the_connection_so_that_the_client_comes_again() {
    let mut driven = Driven::opened();
    driven.identified(Some(november()));
    driven.answered(Answer::Failed);
    assert_eq!(driven.closed(), Close::Storage);
}

/// A message that was acknowledged after its sender had given up waiting is stored afterwards, in spite of that.
#[test]
fn what_was_acknowledged_before_it_was_stored_is_not_sent_again() {
    let mut driven = Driven::of_client();
    let settled = driven.deliver("d", true);
    drop(settled);
    driven.ack(&["d"]);
    assert_eq!(driven.settled(), (false, "d".to_owned()));
    driven.happen(Event::NotYetStored("d".into()));
    driven.told();
    driven.asked();
    driven.answered(Answer::Read(vec![stored(7, "d"), stored(8, "e")]));
    assert_eq!(driven.sent()["version"], "e");
    driven.nothing();
    driven.ack(&["e"]);
    let delete = Question::Delete {
        month: november(),
        ids: vec![7, 8],
    };
    assert_eq!(driven.asked(), delete);
}

#[test]
fn what_was_acknowledged_before_it_was_stored_is_deleted_when_nothing_else_waits() {
    let mut driven = Driven::of_client();
    driven.happen(Event::NotYetStored("d".into()));
    driven.told();
    driven.asked();
    driven.answered(Answer::Read(vec![stored(7, "d")]));
    let delete = Question::Delete {
        month: november(),
        ids: vec![7],
    };
    assert_eq!(driven.asked(), delete);
}

#[test]
fn a_client_is_moved_when_it_has_drained_and_acknowledged_the_earlier_month() {
    let mut driven = Driven::opened();
    driven.month = december();
    driven.identified(Some(november()));
    driven.answered(Answer::Read(vec![stored(1, "s")]));
    driven.sent();
    driven.nothing();
    driven.ack(&["s"]);
    driven.asked();
    driven.answered(Answer::Deleted);
    assert_eq!(driven.asked(), Question::Read { month: november() });
    driven.answered(Answer::Read(Vec::new()));
    let moving = Question::Move {
        from: november(),
        to: december(),
    };
    assert_eq!(driven.asked(), moving);
    // Commands of the client wait until its row is in the new month.
    assert!(!driven.machine.listens());
    driven.happen(Event::Stored);
    driven.nothing();
    driven.answered(Answer::Moved(true));
    driven.noted(december());
    // What came meanwhile is in the new month: the old one was empty when the row went.
    assert_eq!(driven.asked(), Question::Read { month: december() });
    driven.answered(Answer::Read(Vec::new()));
    driven.nothing();
    assert!(driven.machine.listens());
}

#[test]
fn what_is_stored_between_draining_and_moving_is_drained_first() {
    let mut driven = Driven::opened();
    driven.month = december();
    driven.identified(Some(november()));
    driven.answered(Answer::Read(Vec::new()));
    assert!(matches!(driven.asked(), Question::Move { .. }));
    driven.answered(Answer::Moved(false));
    driven.noted(november());
    assert_eq!(driven.asked(), Question::Read { month: november() });
    driven.answered(Answer::Read(vec![stored(1, "s")]));
    assert_eq!(driven.sent()["version"], "s");
    driven.ack(&["s"]);
    driven.asked();
    driven.answered(Answer::Deleted);
    driven.asked();
    driven.answered(Answer::Read(Vec::new()));
    assert!(matches!(driven.asked(), Question::Move { .. }));
}

#[test]
fn a_client_that_was_moved_by_another_node_is_read_where_it_is() {
    let mut driven = Driven::opened();
    driven.month = december();
    driven.identified(Some(november()));
    driven.answered(Answer::Read(Vec::new()));
    assert!(matches!(driven.asked(), Question::Move { .. }));
    driven.answered(Answer::Moved(false));
    driven.noted(december());
    assert_eq!(driven.asked(), Question::Read { month: december() });
    driven.answered(Answer::Read(vec![stored(1, "s")]));
    assert_eq!(driven.sent()["version"], "s");
    driven.ack(&["s"]);
    let delete = Question::Delete {
        month: december(),
        ids: vec![1],
    };
    assert_eq!(driven.asked(), delete);
}

#[test]
fn a_client_that_gets_messages_all_the_time_is_left_in_its_month_after_some_tries() {
    let mut driven = Driven::opened();
    driven.month = december();
    driven.identified(Some(november()));
    driven.answered(Answer::Read(Vec::new()));
    for _ in 0..3 {
        assert!(matches!(driven.asked(), Question::Move { .. }));
        driven.answered(Answer::Moved(false));
        driven.noted(november());
        assert_eq!(driven.asked(), Question::Read { month: november() });
        driven.answered(Answer::Read(Vec::new()));
    }
    driven.nothing();
}

#[test]
fn the_row_says_in_which_month_a_client_is_that_registers() {
    let mut driven = Driven::opened();
    driven.identified(None);
    driven.say(&json!({"messageType": "register", "channelID": CHANNEL}));
    driven.asked();
    driven.answered(Answer::Registered {
        channel: CHANNEL,
        endpoint: String::new(),
        month: december(),
    });
    driven.sent();
    assert_eq!(driven.asked(), Question::Read { month: december() });
}

#[test]
fn each_answered_ping_has_the_node_noted_and_storage_read() {
    let mut driven = Driven::of_client();
    driven.pass(300);
    assert!(matches!(driven.next(), Action::Ping));
    driven.happen(Event::Pong);
    driven.noted(november());
    assert_eq!(driven.asked(), Question::Read { month: november() });
    driven.answered(Answer::Read(Vec::new()));
    driven.nothing();
    // One that was not asked for.
    driven.happen(Event::Pong);
    driven.nothing();
}

#[test]
fn the_node_is_noted_while_something_is_outstanding() {
    let mut driven = Driven::of_client();
    let _settled = driven.deliver("d", true);
    driven.pass(300);
    assert!(matches!(driven.next(), Action::Ping));
    driven.happen(Event::Pong);
    driven.noted(november());
    driven.nothing();
    driven.ack(&["d"]);
    driven.settled();
    assert_eq!(driven.asked(), Question::Read { month: november() });
}

#[test]
fn a_row_that_could_not_be_read_is_read_after_the_next_ping() {
    let mut driven = Driven::of_client();
    driven.happen(Event::Stored);
    assert_eq!(driven.asked(), Question::Note);
    driven.answered(Answer::NotNoted);
    driven.nothing();
    driven.pass(300);
    assert!(matches!(driven.next(), Action::Ping));
    driven.happen(Event::Pong);
    driven.noted(november());
    assert_eq!(driven.asked(), Question::Read { month: november() });
}

#[test]
fn a_node_whose_clock_is_behind_moves_no_client_back() {
    let mut driven = Driven::opened();
    driven.identified(Some(december()));
    driven.answered(Answer::Read(Vec::new()));
    driven.nothing();
}

#[test]
fn a_client_is_moved_on_connecting_alone() {
    let mut driven = Driven::of_client();
    driven.month = december();
    driven.told();
    assert_eq!(driven.asked(), Question::Read { month: november() });
    driven.answered(Answer::Read(Vec::new()));
    driven.nothing();
}

#[test]
fn a_client_that_stays_until_its_month_is_old_is_asked_to_come_back() {
    let mut driven = Driven::of_client();
    driven.pass(300);
    assert!(matches!(driven.next(), Action::Ping));
    driven.happen(Event::Pong);
    driven.looked();
    driven.month = november().plus(1);
    driven.pass(300);
    assert_eq!(driven.closed(), Close::MonthOver);
}

#[test]
fn a_client_that_drains_its_month_is_let_do_so_until_the_month_is_about_to_be_dropped() {
    let mut driven = Driven::opened();
    driven.month = december();
    driven.identified(Some(november()));
    driven.answered(Answer::Read(vec![stored(1, "s")]));
    driven.sent();
    driven.pass(300);
    assert!(matches!(driven.next(), Action::Ping));
    driven.happen(Event::Pong);
    driven.noted(november());
    driven.nothing();
    driven.month = november().plus(2);
    driven.pass(300);
    assert_eq!(driven.closed(), Close::MonthOver);
}

#[test]
fn what_one_message_acknowledges_is_settled_at_once() {
    let mut driven = Driven::of_client();
    let _settled = ["1", "2"].map(|version| driven.deliver(version, true));
    driven.ack(&["2", "1"]);
    let Action::Settle(acked) = driven.next() else {
        panic!("nothing is settled");
    };
    let versions: Vec<&str> = acked.iter().map(|acked| &*acked.version).collect();
    assert_eq!(versions, ["2", "1"]);
    driven.nothing();
}

#[test]
fn as_many_early_acknowledgements_are_remembered_as_may_be_outstanding() {
    let mut driven = Driven::of_client();
    for version in ["1", "2", "3", "4"] {
        driven.happen(Event::NotYetStored(version.into()));
    }
    driven.told();
    driven.asked();
    driven.answered(Answer::Read(
        (1..=4).map(|id| stored(id, &id.to_string())).collect(),
    ));
    assert_eq!(driven.sent()["version"], "1");
    driven.nothing();
}

#[test]
fn a_client_is_told_of_the_broadcasts_that_it_follows_when_they_change() {
    let mut driven = Driven::opened();
    driven.broadcasts = broadcasts(&[("a", "1"), ("b", "1")]);
    driven.say(&json!({"messageType": "hello", "broadcasts": {"a": "0", "b": "1", "c": "1"}}));
    driven.asked();
    driven.answered(Answer::Identified {
        uaid: UAID,
        month: None,
    });
    let said = json!({"a": "1", "errors": {"c": "Broadcast not found"}});
    assert_eq!(driven.sent()["broadcasts"], said);
    driven.happen(Event::Broadcasts);
    driven.nothing();
    driven.broadcasts = broadcasts(&[("a", "1"), ("b", "2"), ("d", "1")]);
    driven.happen(Event::Broadcasts);
    let change = json!({"messageType": "broadcast", "broadcasts": {"b": "2"}});
    assert_eq!(driven.sent(), change);
    driven.say(&json!({"messageType": "broadcast_subscribe", "broadcasts": {"d": "1"}}));
    driven.nothing();
    driven.say(&json!({"messageType": "broadcast_subscribe", "broadcasts": {"e": "1"}}));
    assert_eq!(driven.sent()["broadcasts"]["errors"]["e"], "Broadcast not found");
}

#[test]
fn a_client_says_no_more_than_it_may_and_acknowledgements_of_what_it_was_sent_do_not_count() {
    let mut driven = Driven::of_client();
    let nack = json!({"messageType": "nack", "version": "1"});
    for _ in 0..5 {
        driven.say(&nack);
        assert!(matches!(driven.next(), Action::Tell(_)));
    }
    let settled = driven.deliver("1", true);
    driven.ack(&["1"]);
    assert_eq!(driven.settled(), (true, "1".to_owned()));
    drop(settled);
    driven.actions.clear();
    driven.at += Duration::from_millis(99);
    let before = driven.machine.commands_until;
    driven.at += Duration::from_millis(1);
    driven.say(&nack);
    assert!(matches!(driven.next(), Action::Tell(_)), "one in each gap");
    assert!(driven.machine.commands_until > before);
    driven.say(&nack);
    let close = driven.closed();
    assert_eq!((close, close.code()), (Close::TooManyCommands, 1008));
}

#[test]
fn acknowledgements_of_nothing_count_as_commands() {
    let mut driven = Driven::of_client();
    for _ in 0..5 {
        driven.say(&json!({"messageType": "ack", "updates": []}));
        driven.nothing();
    }
    driven.say(&json!({"messageType": "ack", "updates": []}));
    assert_eq!(driven.closed(), Close::TooManyCommands);
}

#[test]
fn acknowledgements_of_messages_without_ttl_do_not_count() {
    let mut driven = Driven::of_client();
    for _ in 0..20 {
        driven.deliver("1", false);
        driven.ack(&["1"]);
        driven.nothing();
    }
    for _ in 0..5 {
        driven.ack(&["1"]);
        driven.nothing();
    }
    driven.ack(&["1"]);
    assert_eq!(
        driven.closed(),
        Close::TooManyCommands,
        "one for each that was sent"
    );
}

fn broadcasts(versions: &[(&str, &str)]) -> Broadcasts {
    let versions = versions.iter();
    versions
        .map(|(name, version)| ((*name).to_owned(), (*version).to_owned()))
        .collect()
}
