//! What is told of pauses that stand: what holds a subscription back, and what waits.

use std::collections::HashMap;

use domain::notification::NotificationState;
use domain::subscription::{HeldBack, PausedBy, SubscriptionState};
use sqlx::PgPool;
use store::{Lane, Pausable, PauseChange, Store};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use super::scene::pause;
use crate::reseller::scene::notifications;

#[testkit::database_test]
async fn what_holds_a_subscription_back_names_the_pause_and_the_missing_answer(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let unverified = SubscriptionRow::in_state(SubscriptionState::PendingVerification);
    let both = unverified.paused().make(&pool).await;
    let unverified = SubscriptionRow::in_state(SubscriptionState::PendingVerification)
        .make(&pool)
        .await;
    let free = SubscriptionRow::active().make(&pool).await;
    let held = |paused_by| HeldBack {
        paused_by,
        is_unverified: true,
    };
    assert_eq!(
        store.held_back(&[both, unverified, free]).await.unwrap(),
        HashMap::from([(both, held(Some(PausedBy::Reseller))), (unverified, held(None))])
    );
}

#[testkit::database_test]
async fn the_widest_pause_is_named_and_what_waits_for_each_is_counted(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().reseller("acme").make(&pool).await;
    let other = SubscriptionRow::active().reseller("other").make(&pool).await;
    for state in [
        NotificationState::Pending,
        NotificationState::Retry,
        NotificationState::Scheduled,
        NotificationState::Sent,
    ] {
        notifications(&pool, state, subscription, 2).await;
        notifications(&pool, state, other, 1).await;
    }
    let named = async || -> HashMap<Uuid, PausedBy> {
        let held = store.held_back(&[subscription, other]).await.unwrap();
        let paused = held
            .into_iter()
            .filter_map(|(id, held)| Some((id, held.paused_by?)));
        paused.collect()
    };
    assert!(named().await.is_empty());
    sqlx::query("UPDATE subscriptions SET paused_at = now() WHERE id = $1")
        .bind(subscription)
        .execute(&pool)
        .await
        .unwrap();
    let mut expected = HashMap::from([(subscription, PausedBy::Reseller)]);
    assert_eq!(named().await, expected);
    let wider = [
        (Pausable::Subscription(subscription), PausedBy::Operator),
        (Pausable::Reseller("acme".to_owned()), PausedBy::AllOfReseller),
    ];
    for (what, by) in wider {
        assert_eq!(pause(&store, &what).await, PauseChange::Changed);
        expected.insert(subscription, by);
        assert_eq!(named().await, expected);
    }
    let mut pauses = store.list_pauses().await.unwrap();
    let own = store.pauses_by_resellers(10).await.unwrap();
    assert_eq!(own[0].name, pauses[0].name);
    assert!(own[0].name.is_some() && pauses[1].name.is_none(), "{pauses:?}");
    pauses.extend(own);
    let waiting = store.waiting_for_pauses(&pauses, 10).await.unwrap();
    let waiting: Vec<_> = waiting.iter().map(|it| (it.scope.as_str(), it.waiting)).collect();
    assert_eq!(
        waiting,
        [("subscription", 6), ("reseller", 6), ("subscription", 6)]
    );
    assert_eq!(store.waiting_for_pauses(&pauses, 1).await.unwrap().len(), 1);

    assert_eq!(store.lane_paused(Lane::Reseller).await.unwrap(), None);
    pause(&store, &Pausable::Lane(Lane::Reseller)).await;
    assert!(store.lane_paused(Lane::Reseller).await.unwrap().is_some());
    assert_eq!(store.lane_paused(Lane::Push).await.unwrap(), None);
    let all = HashMap::from([(subscription, PausedBy::Lane), (other, PausedBy::Lane)]);
    assert_eq!(named().await, all);
}
