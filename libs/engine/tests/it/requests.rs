//! What arrives: the same identifier, key and bytes on every attempt, signed again each time.

use chrono::TimeDelta;
use domain::clock::Clock;
use domain::notification::NotificationStatus;
use engine::webhook::Lane;
use simulators::receiver::Rule;
use store::webhook::Resent;
use testkit::Installation;

use crate::rig::{Rig, event, frozen};

#[testkit::test]
async fn an_accepted_notification_is_sent_signed_and_settled(it: Installation) {
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    let _engine = rig.start(Lane::First).await;
    let sent = rig.send(3).await;
    assert_eq!(sent.len(), 3);
    for notification in sent {
        let row = rig.settled(notification.id, NotificationStatus::Sent).await;
        assert_eq!((row.attempts, row.next_attempt_at), (1, None));
    }
    for received in rig.receiver.received(0, 10).items {
        assert!(received.verdict.is_believed(), "{received:?}");
        assert_eq!(received.headers["webhook-id"], received.headers["event-id"]);
    }
}

#[testkit::test]
async fn every_attempt_and_resend_has_the_same_identifier_key_and_bytes(it: Installation) {
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    rig.script(vec![Rule::answering(503).first(2)]);
    let clock = frozen();
    let _first = rig.start_at(Lane::First, clock.clone()).await;
    let _retry = rig.start_at(Lane::Retry, clock.clone()).await;
    let mut event = event(clock.now());
    event.event_id = "order:17_a".to_owned();
    // Neither sorted nor tidy: it is passed on as it came.
    event.body =
        "{\"id\":\"order:17_a\",\"type\":\"domain.created\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\
                  \"data\":{\"z\": 1.50, \"a\":\"ā\\u0041\"}}"
            .to_owned();
    event.traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned());
    let body = event.body.clone();
    let sent = rig.accept_all(vec![event]).await;
    rig.publish(broker::Queue::ResellerReady, &sent).await;
    for _ in 0..2 {
        rig.settled(sent[0].id, NotificationStatus::Retry).await;
        clock.advance(TimeDelta::hours(1));
        assert_eq!(rig.promote(clock.now()).await, 1);
    }
    rig.settled(sent[0].id, NotificationStatus::Sent).await;
    clock.advance(TimeDelta::hours(1));
    let resent = rig
        .it
        .store
        .resend_notification("acme", sent[0].id, testkit::act_of_a_reseller(clock.now()))
        .await;
    assert_eq!(resent.expect("it is resent"), Resent::Done);
    assert_eq!(rig.promote(clock.now()).await, 1);
    let row = rig.settled(sent[0].id, NotificationStatus::Sent).await;
    assert_eq!(row.attempts, 4);
    let arrived = rig.arrived_at("/hook");
    assert_eq!(arrived.len(), 4);
    for (n, received) in arrived.iter().enumerate() {
        assert!(received.verdict.is_believed(), "{received:?}");
        assert_eq!(received.body, body);
        for header in ["webhook-id", "event-id"] {
            assert_eq!(received.headers[header], "order:17_a");
        }
        let key = signing::idempotency_key(body.as_bytes());
        assert_eq!(received.headers["idempotency-key"], key);
        assert_eq!(received.headers["content-type"], "application/json");
        assert!(received.headers["traceparent"].starts_with("00-0af7651916cd43dd8448eb211c80319c-"));
        // Signed with the time of the attempt.
        let at = clock.now() - TimeDelta::hours(3 - i64::try_from(n).expect("few"));
        assert_eq!(received.headers["webhook-timestamp"], at.timestamp().to_string());
    }
}

#[testkit::test]
async fn each_subscription_gets_the_same_bytes_under_the_same_identifier(it: Installation) {
    let rig = Rig::new(it).await;
    for path in ["/a", "/b", "/c"] {
        rig.subscription()
            .url(&rig.receiver.url(path))
            .make(&rig.it.pool)
            .await;
    }
    let _engine = rig.start(Lane::First).await;
    rig.send(1).await;
    rig.count_becomes(NotificationStatus::Sent, 3).await;
    let all = ["/a", "/b", "/c"].map(|path| rig.arrived_at(path));
    assert!(all.iter().all(|arrived| arrived.len() == 1));
    assert!(all.iter().all(|arrived| arrived[0].body == all[0][0].body));
    assert!(all.iter().all(|arrived| arrived[0].id == all[0][0].id));
}
