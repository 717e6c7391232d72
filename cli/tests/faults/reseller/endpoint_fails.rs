//! An endpoint that answers 500 whatever comes.

use domain::notification::NotificationStatus;
use simulators::receiver::Rule;
use testkit::Installation;

use crate::rig::{
    Delivered, Ends, Event, Fleet, RESELLERS, SENT, Subscriber, Subscribers, events_of,
    one_mail_tells_of_given_up,
};

const EVENTS: usize = 12;
const RETRIES: i64 = 2;
const GIVEN_UP: Ends = &[NotificationStatus::GivenUp];

#[testkit::test]
async fn its_notifications_are_given_up_after_their_retries_and_one_mail_tells_of_them(it: Installation) {
    let acme = RESELLERS[0];
    let all = vec![
        Subscriber::new("failing", acme, &["*"]),
        Subscriber::new("working", acme, &["*"]),
    ];
    let subscribers = Subscribers::of(&it, all).await;
    subscribers.script(vec![Rule::answering(500).at("/failing")]);
    let fleet = Fleet::of(&it)
        .await
        .with("POSTRIDER__RESELLER__RETRY__MAX_RETRIES", RETRIES);
    let (fleet, mail_server) = fleet.with_mail_server().await;
    let _processes = fleet.start_all().await;
    let events = events_of(acme, "all", EVENTS);
    let answers = fleet.hand_in(events.clone()).finish().await;
    let ends = |subscriber: &Subscriber, _: &Event| match subscriber.name {
        "failing" => GIVEN_UP,
        _ => SENT,
    };
    let delivered = Delivered::of(&it, &subscribers, (&events, &answers), ends).await;
    delivered.assert_no_duplicates();
    assert_eq!(delivered.attempts(&subscribers.all[0]), [1 + RETRIES; EVENTS]);
    assert_eq!(delivered.attempts(&subscribers.all[1]), [1; EVENTS]);
    one_mail_tells_of_given_up(&it, &mail_server, EVENTS).await;
}
