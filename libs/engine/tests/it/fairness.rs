//! A subscription that hangs, or one with very much, leaves the others their share.

use broker::Queue;
use domain::notification::NotificationStatus;
use engine::webhook::Lane;
use simulators::receiver::Rule;
use testkit::{Installation, PATIENCE};

use crate::rig::{Rig, event};

/// Longer than any test waits.
const HANGING: i32 = 480_000;

/// Accepts `count` events of a type of their own and publishes what they became.
async fn send(rig: &Rig, event_type: &str, count: usize) {
    let events = (0..count).map(|_| {
        let mut event = event(domain::clock::Clock::now(&domain::clock::SystemClock));
        event.body = event.body.replace(&event.event_type, event_type);
        event_type.clone_into(&mut event.event_type);
        event
    });
    let notifications = rig.accept_all(events.collect()).await;
    assert_eq!(notifications.len(), count);
    rig.publish(Queue::ResellerReady, &notifications).await;
}

#[testkit::test]
async fn one_that_hangs_and_one_that_floods_leave_room_for_the_others(mut it: Installation) {
    let delivery = &mut it.config.reseller.delivery;
    delivery.max_timeout = 2 * PATIENCE;
    (delivery.max_in_flight, delivery.max_in_flight_per_subscription) = (32, 8);
    let rig = Rig::new(it).await;
    for name in ["hang", "flood", "calm"] {
        let filter = format!("{name}.*");
        let row = rig
            .subscription()
            .url(&rig.receiver.url(&format!("/{name}")))
            .timeout_millis(HANGING);
        row.event_types(&[&filter]).make(&rig.it.pool).await;
    }
    let hang = Rule {
        hang: true,
        ..Rule::default()
    };
    let slow = Rule {
        delay_millis: Some(1_000),
        ..Rule::default()
    };
    rig.script(vec![hang.at("/hang"), slow.at("/flood")]);
    let engine = rig.start(Lane::First).await;
    send(&rig, "hang.now", 200).await;
    // The first claim on a new connection takes longer than all of the calm ones later, now and then.
    testkit::eventually("the first ones to hang", async || {
        (!rig.arrived_at("/hang").is_empty()).then_some(())
    })
    .await;
    send(&rig, "flood.now", 1_000).await;
    send(&rig, "calm.now", 20).await;
    testkit::eventually("the calm one to have got everything", async || {
        (rig.arrived_at("/calm").len() == 20).then_some(())
    })
    .await;
    let (hanging, flooded) = (rig.arrived_at("/hang").len(), rig.arrived_at("/flood").len());
    assert!(hanging <= 8, "{hanging} hang, each in a slot of its own");
    assert!(
        flooded < 500,
        "{flooded} of the flood came before the last of twenty"
    );
    assert!(rig.receiver.report().max_concurrent <= 32);
    engine.kill();
}

#[testkit::test]
async fn many_that_hang_leave_room_for_one_that_does_not(mut it: Installation) {
    let delivery = &mut it.config.reseller.delivery;
    delivery.max_timeout = 2 * PATIENCE;
    (delivery.max_in_flight, delivery.max_in_flight_per_subscription) = (64, 8);
    let rig = Rig::new(it).await;
    for _ in 0..40 {
        let row = rig
            .subscription()
            .url(&rig.receiver.url("/hang"))
            .timeout_millis(HANGING);
        row.event_types(&["hang.*"]).make(&rig.it.pool).await;
    }
    rig.subscription()
        .url(&rig.receiver.url("/calm"))
        .event_types(&["calm.*"])
        .make(&rig.it.pool)
        .await;
    let hang = Rule {
        hang: true,
        ..Rule::default()
    };
    rig.script(vec![hang.at("/hang")]);
    let engine = rig.start(Lane::First).await;
    let mut event = event(domain::clock::Clock::now(&domain::clock::SystemClock));
    "hang.now".clone_into(&mut event.event_type);
    let hanging = rig.accept_all(vec![event]).await;
    assert_eq!(hanging.len(), 40);
    rig.publish(Queue::ResellerReady, &hanging).await;
    rig.in_flight_becomes(40).await;
    send(&rig, "calm.now", 50).await;
    rig.count_becomes(NotificationStatus::Sent, 50).await;
    assert_eq!(rig.receiver.report().in_flight, 40, "the others still hang");
    engine.kill();
}
