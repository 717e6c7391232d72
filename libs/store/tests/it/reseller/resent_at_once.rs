//! Several that are sent again by one request.

use domain::clock::{Clock, SystemClock};
use domain::notification::{NotificationState, NotificationStatus};
use domain::subscription::SubscriptionState;
use sqlx::PgPool;
use store::webhook::{BulkResent, Resent, ToResend};
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

#[testkit::database_test]
async fn who_sent_several_again_is_told_of_each(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = NotificationRow::in_state(NotificationState::Sent, subscription)
        .make(&pool)
        .await;
    let which = ToResend::Ids(vec![made.id.uuid()]);
    let act = act(SystemClock.now());
    let resent = store.resend_notifications(("acme", subscription), &which, 10, act);
    assert!(matches!(resent.await.unwrap(), BulkResent::Done(_)));
    let timeline = async || {
        let told = store.notification_timeline(made.id.uuid()).await.unwrap();
        told.unwrap()
    };
    let told = timeline().await;
    let last = told.acts.last().expect("an act");
    assert_eq!((&*last.action, &*last.actor), ("subscription.resend", act.by));
    assert_eq!(told.resent_at, Some(last.at));

    // One that was sent again by itself has an act of its own, and the earlier one of several is none of it.
    sqlx::query("UPDATE notifications SET status = 'SENT', next_attempt_at = NULL, reason = NULL, finished_at = now() WHERE id = $1")
        .bind(made.id.uuid())
        .execute(&pool)
        .await
        .unwrap();
    let later = store::Act {
        at: act.at + chrono::TimeDelta::seconds(1),
        ..act
    };
    let again = store.resend_notification("acme", made.id, later).await.unwrap();
    assert_eq!(again, Resent::Done);
    let actions: Vec<_> = timeline().await.acts.into_iter().map(|act| act.action).collect();
    assert_eq!(actions, ["notification.resend"]);
}
