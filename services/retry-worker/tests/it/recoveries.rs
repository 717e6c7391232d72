//! What the outage of an endpoint gave up arrives by itself once the endpoint answers, while workers come and go.

use domain::notification::{NotificationState, NotificationStatus};
use testkit::notification_factory::NotificationRow;
use testkit::{Installation, eventually};

use crate::lane::{count, receiver_of_a_subscription};
use crate::post::Post;
use crate::rig::start;

/// How many notifications the outage gave up.
const GIVEN_UP: i64 = 40;

#[testkit::test]
async fn what_an_outage_gave_up_arrives_by_itself_and_one_mail_says_how_many(mut it: Installation) {
    let post = Post::open().await;
    post.serve(&mut it.config);
    let (receiver, subscription) = receiver_of_a_subscription(&it).await;
    // An outage begins, gives notifications up, and is over.
    let note = async |sql: &'static str| {
        sqlx::query(sql)
            .bind(subscription)
            .execute(&it.pool)
            .await
            .unwrap();
    };
    note("UPDATE subscriptions SET failing_since = now() WHERE id = $1").await;
    for _ in 0..GIVEN_UP {
        NotificationRow::in_state(NotificationState::GivenUp, subscription)
            .attempts(4)
            .make(&it.pool)
            .await;
    }
    let refused = NotificationRow::in_state(NotificationState::Failed, subscription);
    refused.make(&it.pool).await;
    note("UPDATE subscriptions SET failing_since = NULL WHERE id = $1").await;

    // The first worker is stopped in the middle, and two go on.
    let first = start(&it.config);
    eventually("some of them to arrive", async || {
        (count(&it.pool, NotificationStatus::Sent).await > 0).then_some(())
    })
    .await;
    first.stop().await;
    let others = [start(&it.config), start(&it.config)];
    eventually("all of them to arrive", async || {
        (count(&it.pool, NotificationStatus::Sent).await == GIVEN_UP).then_some(())
    })
    .await;
    let subjects = eventually("the mail to arrive", async || {
        let subjects = post.subjects();
        (!subjects.is_empty()).then_some(subjects)
    })
    .await;
    for worker in others {
        worker.stop().await;
    }
    assert_eq!(subjects.len(), 1, "{subjects:?}");
    assert!(
        subjects[0].contains("40 notifications sent again after an outage"),
        "{subjects:?}"
    );
    assert_eq!(count(&it.pool, NotificationStatus::Failed).await, 1);
    let report = receiver.report();
    assert_eq!(report.distinct_ids, u64::try_from(GIVEN_UP).unwrap());
}
