//! In which month a client is read, and when it moves to another.

use serde_json::json;

use super::{CHANNEL, Driven, december, november, stored};
use crate::connection::{Action, Answer, Close, Event, Question};

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
