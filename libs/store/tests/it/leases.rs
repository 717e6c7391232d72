//! Leases: compare-and-swap on what was seen, an epoch that only grows, one winner.

use sqlx::PgPool;
use store::{LeaseView, Store};
use uuid::Uuid;

#[testkit::database_test]
async fn a_lease_that_was_never_held_is_free(pool: PgPool) {
    let store = Store::from_pool(pool);
    let free = LeaseView {
        holder: None,
        epoch: 0,
        renewals: 0,
    };
    assert_eq!(store.view_lease("push").await.unwrap(), free);
    assert_eq!(
        store.view_lease("push").await.unwrap(),
        free,
        "looking changes nothing"
    );
}

#[testkit::database_test]
async fn a_stale_view_takes_nothing(pool: PgPool) {
    let store = Store::from_pool(pool);
    let seen = store.view_lease("push").await.unwrap();
    let lease = store
        .take_lease("push", seen, Uuid::now_v7())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        store.take_lease("push", seen, Uuid::now_v7()).await.unwrap(),
        None,
        "it was taken since"
    );

    let taken = store.view_lease("push").await.unwrap();
    assert_eq!((taken.holder, taken.epoch), (Some(lease.holder), 1));
    assert!(store.renew_lease(&lease).await.unwrap());
    assert_eq!(
        store.take_lease("push", taken, Uuid::now_v7()).await.unwrap(),
        None,
        "its holder lives"
    );
    assert_ne!(store.view_lease("push").await.unwrap(), taken);
}

#[testkit::database_test]
async fn the_epoch_grows_with_every_holder_and_the_former_one_is_out(pool: PgPool) {
    let store = Store::from_pool(pool);
    let mut former = None;
    for epoch in 1..=4 {
        let seen = store.view_lease("push").await.unwrap();
        let lease = store
            .take_lease("push", seen, Uuid::now_v7())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(lease.epoch, epoch);
        if let Some(former) = former.replace(lease) {
            assert!(!store.renew_lease(&former).await.unwrap());
            assert!(!store.release_lease(&former).await.unwrap());
        }
    }
    assert!(store.renew_lease(&former.unwrap()).await.unwrap());
}

#[testkit::database_test]
async fn a_holder_that_takes_its_own_lease_again_starts_a_new_epoch(pool: PgPool) {
    let store = Store::from_pool(pool);
    let holder = Uuid::now_v7();
    let seen = store.view_lease("push").await.unwrap();
    let first = store.take_lease("push", seen, holder).await.unwrap().unwrap();
    let seen = store.view_lease("push").await.unwrap();
    let second = store.take_lease("push", seen, holder).await.unwrap().unwrap();
    assert_eq!((first.epoch, second.epoch), (1, 2));
    assert!(!store.renew_lease(&first).await.unwrap());
}

#[testkit::database_test]
async fn a_released_lease_is_free_at_once_and_keeps_its_epoch(pool: PgPool) {
    let store = Store::from_pool(pool);
    let seen = store.view_lease("push").await.unwrap();
    let lease = store
        .take_lease("push", seen, Uuid::now_v7())
        .await
        .unwrap()
        .unwrap();
    assert!(store.release_lease(&lease).await.unwrap());
    assert!(!store.release_lease(&lease).await.unwrap());
    assert!(!store.renew_lease(&lease).await.unwrap());
    let free = store.view_lease("push").await.unwrap();
    assert_eq!((free.holder, free.epoch), (None, 1));
    assert_eq!(
        store
            .take_lease("push", free, Uuid::now_v7())
            .await
            .unwrap()
            .unwrap()
            .epoch,
        2
    );
}

#[testkit::database_test]
async fn of_two_takers_at_once_one_wins(pool: PgPool) {
    let (one, other) = (Store::from_pool(pool.clone()), Store::from_pool(pool));
    for epoch in 1..=20 {
        let (seen, same) = tokio::join!(one.view_lease("push"), other.view_lease("push"));
        let (first, second) = tokio::join!(
            one.take_lease("push", seen.unwrap(), Uuid::now_v7()),
            other.take_lease("push", same.unwrap(), Uuid::now_v7()),
        );
        let winners: Vec<_> = [first.unwrap(), second.unwrap()].into_iter().flatten().collect();
        assert_eq!(winners.len(), 1);
        assert_eq!(winners[0].epoch, epoch);
    }
}

#[testkit::database_test]
async fn leases_of_different_names_are_apart(pool: PgPool) {
    let store = Store::from_pool(pool);
    for name in ["send-pending", "send-scheduled"] {
        let seen = store.view_lease(name).await.unwrap();
        assert_eq!(
            store
                .take_lease(name, seen, Uuid::now_v7())
                .await
                .unwrap()
                .unwrap()
                .epoch,
            1
        );
    }
}
