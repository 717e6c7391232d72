//! Pauses of all that a reseller has, beside those of its subscriptions and its own.

use domain::key::KeyDigest;
use domain::notification::{NotificationState, RetryPlan};
use domain::subscription::SubscriptionRequest;
use sqlx::PgPool;
use store::webhook::{Addresses, NewSecret, NewSubscription, Subscribed};
use store::{Pausable, PauseChange, Store};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use super::scene::{by_reseller, now, pause, resume, suspended};
use crate::reseller::scene::{claim as claim_notifications, notifications, terms};

/// A subscription as the portal makes one.
async fn subscribe(store: &Store, reseller: &str) -> Uuid {
    let new = NewSubscription {
        id: Uuid::now_v7(),
        reseller: reseller.to_owned(),
        request: SubscriptionRequest {
            description: String::new(),
            url: "https://example.org/hooks".to_owned(),
            event_types: vec![domain::subscription::EventFilter::parse("*").unwrap()],
            email: "ops@example.org".to_owned(),
            timeout_millis: None,
            resend_after_outage: None,
            retry_plan: RetryPlan::Short,
            retry_client_errors: false,
            verify_later: false,
        },
        secret: NewSecret {
            id: Uuid::now_v7(),
            sealed: KeyDigest::of("any bytes").as_bytes().to_vec(),
        },
        created_at: now(),
        addresses: Addresses::Trusted,
    };
    let subscribed = store.insert_subscription(&new, 10, by_reseller()).await;
    assert_eq!(subscribed.unwrap(), Subscribed::Done);
    new.id
}

#[testkit::database_test]
async fn a_paused_reseller_is_held_with_what_it_subscribes_meanwhile(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let (one, foreign) = (
        SubscriptionRow::active().make(&pool).await,
        SubscriptionRow::active().reseller("globex").make(&pool).await,
    );
    let acme = Pausable::Reseller("acme".to_owned());
    pause(&store, &acme).await;
    let new = subscribe(&store, "acme").await;
    assert!(suspended(&pool, one).await && suspended(&pool, new).await);
    assert!(!suspended(&pool, foreign).await);
    let made = notifications(&pool, NotificationState::Queued, one, 1).await;
    let claims = claim_notifications(&store, &[made[0].id], &terms(now())).await;
    assert_eq!((claims.claimed.len(), claims.held), (0, 1));
    resume(&store, &acme).await;
    assert!(!suspended(&pool, one).await && !suspended(&pool, new).await);
}

#[testkit::database_test]
async fn whichever_pause_came_first_each_has_to_end(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let id = SubscriptionRow::active().make(&pool).await;
    let (itself, acme) = (Pausable::Subscription(id), Pausable::Reseller("acme".to_owned()));
    for (first, second) in [(&itself, &acme), (&acme, &itself)] {
        pause(&store, first).await;
        pause(&store, second).await;
        assert_eq!(resume(&store, first).await, PauseChange::Changed);
        assert!(suspended(&pool, id).await, "{second:?} stands");
        assert_eq!(resume(&store, second).await, PauseChange::Changed);
        assert!(!suspended(&pool, id).await);
    }
    pause(&store, &itself).await;
    for paused in [true, false] {
        let view = store
            .pause_subscription("acme", id, paused, by_reseller())
            .await
            .unwrap()
            .unwrap();
        assert_eq!((view.paused_at.is_some(), view.held_at.is_some()), (paused, true));
    }
    assert!(
        suspended(&pool, id).await,
        "its reseller does not lift what an operator has paused"
    );
    assert_eq!(store.pauses_by_resellers(10).await.unwrap(), []);
    store
        .pause_subscription("acme", id, true, by_reseller())
        .await
        .unwrap();
    let own = store.pauses_by_resellers(10).await.unwrap();
    let [own] = &own[..] else { panic!("{own:?}") };
    assert_eq!((own.key.clone(), own.by_reseller), (id.to_string(), true));
    assert_eq!(own.paused_by, "reseller acme");
    resume(&store, &itself).await;
    assert!(suspended(&pool, id).await, "nor the other way round");
}
