//! What fails is tried again in its own lane, as often as it may.

use broker::Queue;
use chrono::TimeDelta;
use domain::clock::Clock;
use domain::notification::{NotificationStatus, QUEUE_LEASE};
use engine::webhook::Lane;
use simulators::receiver::Rule;
use store::webhook::Resent;
use testkit::Installation;

use crate::rig::{Rig, frozen, promoted};

async fn count(rig: &Rig, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql)
        .fetch_one(&rig.it.pool)
        .await
        .expect("it can be counted")
}

#[testkit::test]
async fn after_the_last_retry_it_is_given_up_told_and_kept_and_a_resend_begins_again(it: Installation) {
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    rig.script(vec![Rule::answering(500)]);
    let clock = frozen();
    let _first = rig.start_at(Lane::First, clock.clone()).await;
    let _retry = rig.start_at(Lane::Retry, clock.clone()).await;
    let sent = rig.send(1).await;
    for life in 1..=2 {
        for _ in 0..3 {
            rig.settled(sent[0].id, NotificationStatus::Retry).await;
            clock.advance(TimeDelta::hours(2));
            assert_eq!(rig.promote(clock.now()).await, 1);
        }
        let row = rig.settled(sent[0].id, NotificationStatus::GivenUp).await;
        assert_eq!(row.attempts, 4 * life);
        assert_eq!(row.reason.as_deref(), Some("delivery/http/500/empty"));
        let letters = count(
            &rig,
            "SELECT count(*) FROM dead_letters WHERE reason = 'GIVEN_UP'",
        )
        .await;
        assert_eq!(letters, i64::from(life));
        let told =
            "SELECT coalesce(sum(occurrences), 0)::bigint FROM emails WHERE kind = 'RETRIES_EXHAUSTED'";
        assert_eq!(count(&rig, told).await, i64::from(life));
        if life == 1 {
            let resent = rig
                .it
                .store
                .resend_notification("acme", sent[0].id, testkit::act_of_a_reseller(clock.now()))
                .await;
            assert_eq!(resent.expect("it is resent"), Resent::Done);
            rig.promote(clock.now()).await;
        }
    }
    assert_eq!(rig.arrived_at("/hook").len(), 8);
}

#[testkit::test]
async fn retries_end_when_the_subscription_does(it: Installation) {
    let rig = Rig::new(it).await;
    let subscription = rig.subscription().make(&rig.it.pool).await;
    rig.script(vec![Rule::answering(500)]);
    let clock = frozen();
    let _first = rig.start_at(Lane::First, clock.clone()).await;
    let _retry = rig.start_at(Lane::Retry, clock.clone()).await;
    let sent = rig.send(1).await;
    rig.settled(sent[0].id, NotificationStatus::Retry).await;
    clock.advance(TimeDelta::hours(2));
    let promotion = rig
        .it
        .store
        .promote_retries(clock.now(), None, &[], 9, 9, QUEUE_LEASE)
        .await;
    sqlx::query("UPDATE subscriptions SET state = 'DEACTIVATED' WHERE id = $1")
        .bind(subscription)
        .execute(&rig.it.pool)
        .await
        .expect("it is deactivated");
    let promoted = promoted(promotion.expect("it is promoted").notifications);
    rig.publish(Queue::ResellerRetry, &promoted).await;
    let row = rig.settled(sent[0].id, NotificationStatus::GivenUp).await;
    assert_eq!(
        (row.attempts, row.reason.as_deref()),
        (1, Some("SUBSCRIPTION_DEACTIVATED"))
    );
    assert_eq!(rig.arrived_at("/hook").len(), 1);
}

#[testkit::test]
async fn retries_have_slots_of_their_own(mut it: Installation) {
    it.config.reseller.retry.max_in_flight = 4;
    let rig = Rig::new(it).await;
    rig.subscription()
        .url(&rig.receiver.url("/bad"))
        .event_types(&["domain.*"])
        .make(&rig.it.pool)
        .await;
    let hang = Rule {
        hang: true,
        ..Rule::default()
    };
    rig.script(vec![Rule::answering(500).at("/bad").first(1), hang.at("/bad")]);
    let clock = frozen();
    let first = rig.start_at(Lane::First, clock.clone()).await;
    let retry = rig.start_at(Lane::Retry, clock.clone()).await;
    rig.send(20).await;
    rig.count_becomes(NotificationStatus::Retry, 20).await;
    clock.advance(TimeDelta::hours(2));
    assert_eq!(rig.promote(clock.now()).await, 20);
    // At least one hangs in the retry lane by now; first attempts do not notice.
    testkit::eventually("retries to hang", async || {
        (rig.receiver.report().in_flight > 0).then_some(())
    })
    .await;
    rig.subscription().make(&rig.it.pool).await;
    rig.send(10).await;
    rig.count_becomes(NotificationStatus::Sent, 10).await;
    assert!(rig.receiver.report().in_flight > 0, "retries still hang");
    first.stop().await;
    retry.kill();
}
