//! What pauses stop and what they leave alone, and that none is overtaken by a claim.

use domain::notification::NotificationState;
use domain::push::PushState;
use sqlx::PgPool;
use store::{Lane, Pausable, PauseChange, Store};
use testkit::eventually;
use testkit::subscription_factory::SubscriptionRow;

use super::scene::{act, now, pause, resume, suspended};
use crate::reseller::scene::{claim as claim_notifications, notifications, terms};
use crate::scene::{claim, ids, lead, pushes};

#[testkit::database_test]
async fn a_pause_that_waits_for_a_slow_claim_holds_up_no_other_claim_and_gives_up(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = notifications(&pool, NotificationState::Queued, subscription, 1).await;
    let mut slow = pool.begin().await.unwrap();
    sqlx::query("SELECT pg_advisory_xact_lock_shared(hashtextextended('postrider.lane/reseller', 0))")
        .execute(&mut *slow)
        .await
        .unwrap();
    let pausing = {
        let store = store.clone();
        tokio::spawn(async move {
            let what = Pausable::Subscription(subscription);
            store.pause(&what, act("because", now())).await
        })
    };
    eventually("the pause to wait", async || {
        let waits: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)",
        )
        .fetch_one(&pool)
        .await
        .ok()?;
        waits.then_some(())
    })
    .await;
    let (ids, terms) = ([made[0].id], terms(now()));
    let claims = store.claim_notifications(&ids, &terms);
    let claims = store::within(testkit::PATIENCE, claims).await.unwrap();
    assert_eq!(claims.claimed.len(), 1);
    let given_up = pausing.await.unwrap();
    assert!(
        matches!(
            given_up,
            Err(store::Error::ClaimsUnderWay {
                lane: Lane::Reseller,
                ..
            })
        ),
        "{given_up:?}"
    );
    assert!(!suspended(&pool, subscription).await);
    slow.rollback().await.unwrap();
    assert_eq!(
        pause(&store, &Pausable::Subscription(subscription)).await,
        PauseChange::Changed
    );
}

#[testkit::database_test]
async fn a_paused_push_lane_is_not_claimed_until_it_goes_on(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let queued = ids(&pushes(&pool, PushState::Queued, 2).await);
    let leader = lead(&store).await;
    let lane = Pausable::Lane(Lane::Push);
    assert_eq!(pause(&store, &lane).await, PauseChange::Changed);
    assert_eq!(store.claim_pushes(&queued, claim(&leader)).await.unwrap(), []);
    assert!(store.lane_is_paused(Lane::Push).await.unwrap());
    assert!(!store.lane_is_paused(Lane::Reseller).await.unwrap());
    assert_eq!(resume(&store, &lane).await, PauseChange::Changed);
    assert_eq!(
        store.claim_pushes(&queued, claim(&leader)).await.unwrap().len(),
        2
    );
}

#[testkit::database_test]
async fn a_paused_reseller_lane_leaves_every_notification_as_it_is(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let made = [
        notifications(&pool, NotificationState::Queued, subscription, 1).await,
        notifications(&pool, NotificationState::Pending, subscription, 1).await,
    ]
    .concat();
    let made: Vec<_> = made.iter().map(|one| one.id).collect();
    let lane = Pausable::Lane(Lane::Reseller);
    pause(&store, &lane).await;
    let before = crate::reseller::scene::everything(&pool).await;
    let claims = claim_notifications(&store, &made, &terms(now())).await;
    assert_eq!(claims, Default::default());
    assert_eq!(crate::reseller::scene::everything(&pool).await, before);
    resume(&store, &lane).await;
    let claims = claim_notifications(&store, &made, &terms(now())).await;
    assert_eq!(claims.claimed.len(), 2);
}

#[testkit::database_test]
async fn a_pause_waits_for_claims_under_way_and_older_claims_begin_again(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut claiming = pool.begin().await.unwrap();
    let enter = "SELECT enter_lane('push', 0)";
    let open: bool = sqlx::query_scalar(enter).fetch_one(&mut *claiming).await.unwrap();
    assert!(open);
    let pausing = tokio::spawn({
        let store = store.clone();
        async move { pause(&store, &Pausable::Lane(Lane::Push)).await }
    });
    eventually("the pause to wait for the claim", async || {
        let waits: bool = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                            WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database())",
        )
        .fetch_one(&pool)
        .await
        .ok()?;
        waits.then_some(())
    })
    .await;
    assert!(!pausing.is_finished());
    claiming.commit().await.unwrap();
    assert_eq!(pausing.await.unwrap(), PauseChange::Changed);
    // As a claim whose snapshot is from before the pause would ask.
    let late = sqlx::query_scalar::<_, bool>(enter).fetch_one(&pool).await;
    let state = late
        .unwrap_err()
        .into_database_error()
        .unwrap()
        .code()
        .unwrap()
        .into_owned();
    assert_eq!(state, "40001", "the same claim may be made once more");
    let open: bool = sqlx::query_scalar("SELECT enter_lane('push', 1)")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert!(!open);
}
