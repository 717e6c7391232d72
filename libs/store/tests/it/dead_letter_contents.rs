//! What a dead letter says of what it is about, wherever it was written; and what is shown beside it.

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationState;
use domain::push::{Platform, PushState, SendOutcome};
use serde_json::json;
use sqlx::PgPool;
use store::{
    BrokerDeadLetter, DeadLetterFilter, DeadLetterLane, DeadLetterOrder, DeadLetterSubject, DeadLetterView,
    Store,
};
use testkit::notification_factory::{EVENT_TYPE, NotificationRow};
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::{answered, completion as delivery};
use crate::scene::completion;

async fn only_dead_letter(store: &Store, about: Uuid) -> DeadLetterView {
    let filter = DeadLetterFilter::default();
    let page = store.list_dead_letters(&filter, DeadLetterOrder::Newest, None, 100);
    let letters = page.await.unwrap().items;
    let mut about_it = letters
        .into_iter()
        .filter(|letter| letter.push == Some(about) || letter.notification == Some(about));
    let letter = about_it.next().expect("a dead letter should be there");
    assert_eq!(about_it.next(), None);
    letter
}

fn given_up_by_the_broker(lane: DeadLetterLane, id: Uuid) -> BrokerDeadLetter {
    BrokerDeadLetter {
        lane,
        id: Some(id),
        detail: "the broker gave the message up: delivery_limit".to_owned(),
        fingerprint: "broker/delivery_limit".to_owned(),
        message: json!({"reason": "delivery_limit", "queue": "push.ready", "count": 1}),
    }
}

#[testkit::database_test]
async fn a_dead_letter_about_a_push_names_its_prototype_and_swrves_code(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let refused = |code| SendOutcome::Refused {
        status: 400,
        code,
        message: "no".to_owned(),
    };
    for (outcome, target) in [
        (refused(Some(1_042)), "1042"),
        (refused(None), "400"),
        (
            SendOutcome::Internal {
                chain: "ours".to_owned(),
            },
            "",
        ),
    ] {
        let push = PushRow::in_state(PushState::Sending).make(&pool).await;
        store
            .complete_pushes(&[completion(push, 1, outcome)])
            .await
            .unwrap();
        let letter = only_dead_letter(&store, push.id.uuid()).await;
        assert_eq!(
            (letter.prototype.as_deref(), &*letter.target),
            (Some("Hello"), target)
        );
    }
    let lost = PushRow::in_state(PushState::Sending).attempts(3);
    let lost = lost.leased_for(TimeDelta::minutes(-1)).make(&pool).await;
    assert_eq!(store.rescue_pushes(10, 3).await.unwrap().given_up, 1);
    let rejected = PushRow::in_state(PushState::Queued).make(&pool).await;
    store
        .archive_dead_letter(&given_up_by_the_broker(DeadLetterLane::Push, rejected.id.uuid()))
        .await
        .unwrap();
    for push in [lost, rejected] {
        let letter = only_dead_letter(&store, push.id.uuid()).await;
        assert_eq!(
            (letter.prototype.as_deref(), &*letter.target),
            (Some("Hello"), "")
        );
    }
}

/// `push.pushKeyMaxBytes` allows prototypes that no index could hold.
#[testkit::database_test]
async fn a_prototype_however_long_does_not_keep_its_push_from_ending(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let (push, lost) = (
        PushRow::in_state(PushState::Sending),
        PushRow::in_state(PushState::Sending),
    );
    let push = push.make(&pool).await;
    let lost = lost
        .attempts(3)
        .leased_for(TimeDelta::minutes(-1))
        .make(&pool)
        .await;
    // Text that does not become short by being compressed.
    let long: String = sqlx::query_scalar(
        "UPDATE push_notifications SET message_prototype_key =
             (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 2000) AS n) RETURNING message_prototype_key",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    let outcome = SendOutcome::PrototypeKeyMissing {
        platform: Platform::Ios,
        prototype: Some(long.clone()),
    };
    let completed = store
        .complete_pushes(&[completion(push, 1, outcome)])
        .await
        .unwrap();
    assert_eq!(completed.len(), 1);
    assert_eq!(store.rescue_pushes(10, 3).await.unwrap().given_up, 1);
    for push in [push, lost] {
        let letter = only_dead_letter(&store, push.id.uuid()).await;
        assert!(long.starts_with(&letter.prototype.unwrap()));
    }
}

#[testkit::database_test]
async fn a_dead_letter_about_a_notification_names_its_reseller_and_the_endpoint_of_the_attempt(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let failed = NotificationRow::in_state(NotificationState::Sending, subscription)
        .make(&pool)
        .await;
    sqlx::query(
        "UPDATE delivery_attempts SET url = 'https://User:Secret@Hooks.Acme.example:8443/x?y=https://other'",
    )
    .execute(&pool)
    .await
    .unwrap();
    store
        .complete_deliveries(&[delivery(&failed, 1, answered(404))], SystemClock.now())
        .await
        .unwrap();
    let lost = NotificationRow::in_state(NotificationState::Sending, subscription).attempts(4);
    let lost = lost.leased_for(TimeDelta::minutes(-1)).make(&pool).await;
    let rescued = store
        .rescue_notifications(SystemClock.now(), 10, 3)
        .await
        .unwrap();
    assert_eq!(rescued.given_up, 1);
    let rejected = NotificationRow::in_state(NotificationState::Queued, subscription)
        .make(&pool)
        .await;
    store
        .archive_dead_letter(&given_up_by_the_broker(
            DeadLetterLane::Reseller,
            rejected.id.uuid(),
        ))
        .await
        .unwrap();
    for (notification, target) in [
        (failed, "https://hooks.acme.example:8443"),
        (lost, "https://acme.example"),
        (rejected, ""),
    ] {
        let letter = only_dead_letter(&store, notification.id.uuid()).await;
        assert_eq!(letter.target, target);
        assert_eq!(
            (
                letter.subscription,
                letter.reseller.as_deref(),
                letter.event_type.as_deref()
            ),
            (Some(subscription), Some("acme"), Some(EVENT_TYPE))
        );
    }
}

#[testkit::database_test]
async fn a_dead_letter_is_shown_with_the_whole_history_of_what_it_is_about(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let push = PushRow::in_state(PushState::GivenUp)
        .attempts(3)
        .traceparent(trace);
    let push = push.make(&pool).await;
    let letter = only_dead_letter(&store, push.id.uuid()).await;
    let shown = store.show_dead_letter(letter.id).await.unwrap().unwrap();
    assert_eq!(shown.dead_letter, letter);
    let Some(DeadLetterSubject::Push {
        story,
        message,
        traceparent,
    }) = shown.subject
    else {
        panic!("a push should be shown, not {:?}", shown.subject)
    };
    assert_eq!(
        (&*message, traceparent.as_deref()),
        ("Hello client!", Some(trace))
    );
    assert_eq!((story.push.history.len(), story.dead_letters.len()), (3, 1));

    let subscription = SubscriptionRow::active().make(&pool).await;
    let notification = NotificationRow::in_state(NotificationState::Failed, subscription)
        .make(&pool)
        .await;
    let letter = only_dead_letter(&store, notification.id.uuid()).await;
    let shown = store.show_dead_letter(letter.id).await.unwrap().unwrap();
    assert!(matches!(
        shown.subject,
        Some(DeadLetterSubject::Notification { body: Some(body), .. }) if body.contains("example.lv")
    ));

    // The months of its subject may be gone: the dead letter stays.
    sqlx::query("DELETE FROM notifications")
        .execute(&pool)
        .await
        .unwrap();
    let shown = store.show_dead_letter(letter.id).await.unwrap().unwrap();
    assert!(shown.subject.is_none());
    assert!(
        store
            .show_dead_letter(Uuid::from_u128(1))
            .await
            .unwrap()
            .is_none()
    );
}
