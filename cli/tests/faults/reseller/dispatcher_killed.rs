//! `kill -9` of the dispatcher while one endpoint holds on to what it gets, and others take their time.

use simulators::receiver::Rule;
use testkit::Installation;

use crate::rig::{Delivered, Fleet, SENT, Service, Subscribers, claims_run_out, events};

#[testkit::test]
async fn only_what_was_in_flight_arrives_twice_and_then_as_the_same(it: Installation) {
    let subscribers = Subscribers::usual(&it).await;
    let hang = Rule {
        hang: true,
        ..Rule::default()
    };
    let dawdle = Rule {
        delay_millis: Some(100),
        ..Rule::default()
    };
    subscribers.script(vec![hang.at("/everything"), dawdle]);
    let fleet = Fleet::of(&it).await;
    let [_ingest, dispatcher, _worker] = fleet.start_all().await;
    let all = events("all", 200);
    let callers = fleet.hand_in(all.clone());
    subscribers.in_mid_flight(20).await;
    dispatcher.kill();
    let claims = claims_run_out(&it, Service::Dispatcher).await;
    assert!(claims > 0, "it was not in mid-flight");
    subscribers.script(Vec::new());
    let _dispatcher = fleet.start(Service::Dispatcher).await;
    let answers = callers.finish().await;
    let delivered = Delivered::of(&it, &subscribers, (&all, &answers), |_, _| SENT).await;
    delivered.assert_duplicates_within(claims);
    assert!(delivered.duplicates() > 0, "the fault has brought nothing about");
}
