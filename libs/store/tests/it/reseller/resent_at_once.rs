//! Several that are sent again by one request.

use domain::clock::{Clock, SystemClock};
use domain::notification::{NotificationState, NotificationStatus};
use domain::subscription::SubscriptionState;
use sqlx::PgPool;
use store::webhook::Resent;
use store::{AuditFilter, Store};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::row;
use crate::scene::{act, open_dead_letters};

#[testkit::database_test]
async fn each_is_sent_again_or_told_with_the_reason(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let first = SubscriptionRow::active().make(&pool).await;
    let second = SubscriptionRow::active().make(&pool).await;
    let off = SubscriptionRow::in_state(SubscriptionState::Deactivated)
        .make(&pool)
        .await;
    let (mut ids, mut expected) = (Vec::new(), Vec::new());
    for (state, subscription, resent) in [
        (NotificationState::Sent, first, Resent::Done),
        (NotificationState::GivenUp, second, Resent::Done),
        (NotificationState::Retry, second, Resent::Done),
        (NotificationState::Cancelled, first, Resent::Cancelled),
        (
            NotificationState::Pending,
            first,
            Resent::Unfinished(NotificationStatus::Pending),
        ),
        (
            NotificationState::Failed,
            off,
            Resent::NotActive(SubscriptionState::Deactivated),
        ),
    ] {
        let made = NotificationRow::in_state(state, subscription)
            .due_in(chrono::TimeDelta::hours(1))
            .make(&pool)
            .await;
        ids.push(made.id.uuid());
        expected.push((made.id, subscription, Some(made.event.to_string()), resent));
    }
    let others = SubscriptionRow::active().make(&pool).await;
    let of_another = NotificationRow::in_state(NotificationState::Sent, others)
        .reseller("another")
        .make(&pool)
        .await;
    ids.extend([of_another.id.uuid(), Uuid::now_v7()]);
    let at = SystemClock.now();
    let open = open_dead_letters(&pool).await;

    let asked = store.resend_each("acme", &ids, act(at)).await.unwrap();

    expected.sort_by_key(|it| it.0);
    let told = asked
        .into_iter()
        .map(|it| (it.id, it.subscription, it.event_id, it.resent));
    assert_eq!(told.collect::<Vec<_>>(), expected);
    assert!(
        open_dead_letters(&pool).await < open,
        "that of the one that was given up is resolved"
    );
    assert_eq!(
        row(&pool, of_another.id).await.state(),
        NotificationState::Sent,
        "that of another reseller is left alone"
    );
    let resent = expected.iter().filter(|it| it.3 == Resent::Done);
    let resent: Vec<_> = resent.map(|it| format!("notification/{}", it.0)).collect();
    let acts = store.list_audit(&AuditFilter::default(), 100).await.unwrap();
    let mut subjects: Vec<_> = acts.iter().map(|act| act.subject.clone()).collect();
    subjects.sort();
    assert_eq!(subjects, resent, "an entry for each that is sent again");
    assert!(acts.iter().all(|act| act.action == "notification.resend"));

    let again = store.resend_each("acme", &ids, act(at)).await.unwrap();
    assert!(
        again.iter().all(|it| it.resent != Resent::Done),
        "once is enough: {again:?}"
    );
    assert_eq!(
        store
            .list_audit(&AuditFilter::default(), 100)
            .await
            .unwrap()
            .len(),
        resent.len()
    );
}
