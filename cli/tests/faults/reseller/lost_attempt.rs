//! `kill -9` of the dispatcher in the middle of the only attempt that a notification has.

use domain::notification::NotificationStatus;
use simulators::receiver::Rule;
use testkit::Installation;

use crate::rig::{
    Delivered, Ends, Fleet, RESELLERS, Service, Subscriber, Subscribers, claims_run_out, events_of,
    one_mail_tells_of_given_up,
};

const EVENTS: usize = 5;
const GIVEN_UP: Ends = &[NotificationStatus::GivenUp];

#[testkit::test]
async fn what_was_given_up_because_its_last_attempt_was_lost_is_told_by_mail_as_well(it: Installation) {
    let acme = RESELLERS[0];
    let subscribers = Subscribers::of(&it, vec![Subscriber::new("hanging", acme, &["*"])]).await;
    subscribers.script(vec![Rule {
        hang: true,
        ..Rule::default()
    }]);
    let fleet = Fleet::of(&it)
        .await
        .with("POSTRIDER__RESELLER__RETRY__MAX_RETRIES", 0)
        // None of them may end by itself.
        .with("POSTRIDER__RESELLER__DELIVERY__TIMEOUT_MILLIS", 600_000)
        .with("POSTRIDER__RESELLER__DELIVERY__MAX_TIMEOUT_MILLIS", 600_000);
    let (fleet, mail_server) = fleet.with_mail_server().await;
    let [_ingest, dispatcher, _worker] = fleet.start_all().await;
    let events = events_of(acme, "all", EVENTS);
    let answers = fleet.hand_in(events.clone()).finish().await;
    subscribers.in_mid_flight(EVENTS as u64).await;
    dispatcher.kill();
    assert_eq!(claims_run_out(&it, Service::Dispatcher).await, EVENTS as u64);
    let lost = Delivered::of(&it, &subscribers, (&events, &answers), |_, _| GIVEN_UP).await;
    lost.assert_duplicates_within(EVENTS as u64);
    one_mail_tells_of_given_up(&it, &mail_server, EVENTS).await;
}
