//! A subscription that changes between the claim and the request.

use broker::Queue;
use domain::notification::NotificationStatus;
use engine::webhook::Lane;
use testkit::{Installation, eventually};

use crate::rig::{Rig, row};

#[testkit::test]
async fn what_was_claimed_for_one_url_never_goes_to_another(it: Installation) {
    let rig = Rig::new(it).await;
    let subscription = rig.subscription().make(&rig.it.pool).await;
    let _engine = rig.start(Lane::First).await;
    // Secrets are read with the endpoint, and not by the claim.
    let mut reading = rig.it.pool.begin().await.expect("a transaction");
    sqlx::query("LOCK TABLE signing_secrets IN ACCESS EXCLUSIVE MODE")
        .execute(&mut *reading)
        .await
        .expect("the lock");
    let sent = rig.send(1).await;
    eventually("the notification to be claimed", async || {
        (row(&rig.it.pool, sent[0].id).await.attempts == 1).then_some(())
    })
    .await;
    sqlx::query("UPDATE subscriptions SET url = $1, state = 'PENDING_VERIFICATION' WHERE id = $2")
        .bind(rig.receiver.url("/unverified"))
        .bind(subscription)
        .execute(&rig.it.pool)
        .await
        .expect("the subscription is changed");
    reading.rollback().await.expect("the lock is released");

    let waiting = rig.settled(sent[0].id, NotificationStatus::Pending).await;
    assert_eq!(waiting.attempts, 0);
    assert!(rig.arrived_at("/unverified").is_empty());
    let attempts: i64 = sqlx::query_scalar("SELECT count(*) FROM delivery_attempts")
        .fetch_one(&rig.it.pool)
        .await
        .expect("attempts can be counted");
    assert_eq!(attempts, 0);

    sqlx::query("UPDATE subscriptions SET state = 'ACTIVE' WHERE id = $1")
        .bind(subscription)
        .execute(&rig.it.pool)
        .await
        .expect("the subscription is changed");
    rig.publish(Queue::ResellerReady, &sent).await;
    let delivered = rig.settled(sent[0].id, NotificationStatus::Sent).await;
    assert_eq!(delivered.attempts, 1);
    assert_eq!(rig.arrived_at("/unverified").len(), 1);
}
