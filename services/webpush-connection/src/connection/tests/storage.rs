//! When storage is read and the node noted, and what follows from what is in it.

use super::{Driven, november, stored};
use crate::connection::{Action, Answer, Close, Event, Question};

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
