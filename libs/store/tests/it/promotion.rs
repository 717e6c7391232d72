//! Promotion: order, limit, due time, and two promoters at once.

use std::collections::HashSet;

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::push::{PushId, PushState};
use sqlx::PgPool;
use store::Store;
use store::push::{Promoted, PromotionQueue};
use testkit::push_factory::PushRow;

use crate::scene::{LONG, ids, pushes, state_of};

fn promoted_ids(promoted: &[Promoted]) -> Vec<PushId> {
    promoted.iter().map(|push| push.id).collect()
}

#[testkit::database_test]
async fn pending_pushes_go_out_oldest_first_up_to_the_limit(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let now = SystemClock.now();
    let mut by_age = Vec::new();
    // Stored in another order than accepted.
    for age in [3, 9, 1, 7, 5] {
        let row = PushRow::in_state(PushState::Pending).created_at(now - TimeDelta::seconds(age));
        by_age.push((age, row.traceparent("00-aa-bb-01").make(&pool).await.id));
    }
    by_age.sort_by_key(|(age, _)| -age);
    let oldest_first: Vec<PushId> = by_age.iter().map(|(_, id)| *id).collect();

    let first = store
        .promote_pushes(PromotionQueue::Pending, 3, LONG)
        .await
        .unwrap();
    assert_eq!(promoted_ids(&first), oldest_first[..3]);
    assert!(
        first
            .iter()
            .all(|push| push.traceparent.as_deref() == Some("00-aa-bb-01"))
    );
    assert_eq!(state_of(&store, oldest_first[3]).await, PushState::Pending);
    let promoted = store.find_push(oldest_first[0]).await.unwrap().unwrap();
    assert_eq!(promoted.leased_until, Some(promoted.updated_at + LONG));

    let second = store
        .promote_pushes(PromotionQueue::Pending, 3, LONG)
        .await
        .unwrap();
    assert_eq!(promoted_ids(&second), oldest_first[3..]);
}

#[testkit::database_test]
async fn due_pushes_go_out_longest_overdue_first_and_future_ones_stay(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut due = Vec::new();
    for (state, minutes) in [
        (PushState::Retry, -3),
        (PushState::Scheduled, -9),
        (PushState::Retry, -6),
    ] {
        due.push((
            minutes,
            PushRow::in_state(state)
                .due_in(TimeDelta::minutes(minutes))
                .make(&pool)
                .await
                .id,
        ));
    }
    due.sort_unstable();
    let longest_first: Vec<PushId> = due.iter().map(|(_, id)| *id).collect();
    for state in [PushState::Retry, PushState::Scheduled] {
        PushRow::in_state(state)
            .due_in(TimeDelta::minutes(10))
            .make(&pool)
            .await;
    }
    let now = SystemClock.now();

    let first = store
        .promote_pushes(PromotionQueue::Due(now), 2, LONG)
        .await
        .unwrap();
    assert_eq!(promoted_ids(&first), longest_first[..2]);
    let second = store
        .promote_pushes(PromotionQueue::Due(now), 9, LONG)
        .await
        .unwrap();
    assert_eq!(promoted_ids(&second), longest_first[2..]);
    assert_eq!(
        store
            .promote_pushes(PromotionQueue::Due(now), 9, LONG)
            .await
            .unwrap(),
        []
    );

    let later = now + TimeDelta::minutes(20);
    assert_eq!(
        store
            .promote_pushes(PromotionQueue::Due(later), 9, LONG)
            .await
            .unwrap()
            .len(),
        2
    );
}

#[testkit::database_test]
async fn promotion_crosses_months(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let now = SystemClock.now();
    let recent = PushRow::in_state(PushState::Pending).make(&pool).await;
    let month_ago: chrono::DateTime<chrono::Utc> = sqlx::query_scalar(
        "SELECT date_trunc('month', $1 AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '1 day'",
    )
    .bind(now)
    .fetch_one(&pool)
    .await
    .unwrap();
    let old = PushRow::in_state(PushState::Pending)
        .created_at(month_ago)
        .make(&pool)
        .await;
    let promoted = store
        .promote_pushes(PromotionQueue::Pending, 9, LONG)
        .await
        .unwrap();
    assert_eq!(promoted_ids(&promoted), [old.id, recent.id]);
}

/// A promoter in the middle of its transaction holds the head of the queue; the other takes what follows.
#[testkit::database_test]
async fn a_promoter_passes_over_what_another_holds(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let waiting = ids(&pushes(&pool, PushState::Pending, 6).await);
    let mut other = pool.begin().await.unwrap();
    sqlx::query("SELECT FROM push_notifications WHERE status = 'PENDING' ORDER BY id LIMIT 2 FOR UPDATE")
        .execute(&mut *other)
        .await
        .unwrap();
    let promotion = store.promote_pushes(PromotionQueue::Pending, 3, LONG);
    let promoted = tokio::time::timeout(testkit::PATIENCE, promotion)
        .await
        .expect("a promoter should not wait for another")
        .unwrap();
    assert_eq!(promoted_ids(&promoted), waiting[2..5]);
    other.rollback().await.unwrap();
}

#[testkit::database_test]
async fn two_promoters_at_once_promote_disjoint_sets_that_cover_all(pool: PgPool) {
    let (one, other) = (Store::from_pool(pool.clone()), Store::from_pool(pool.clone()));
    for (state, queue) in [
        (PushState::Pending, PromotionQueue::Pending),
        (PushState::Retry, PromotionQueue::Due(SystemClock.now())),
    ] {
        let waiting = ids(&pushes(&pool, state, 100).await);
        let mut promoted = Vec::new();
        while promoted.len() < waiting.len() {
            let (first, second) = tokio::join!(
                one.promote_pushes(queue, 20, LONG),
                other.promote_pushes(queue, 20, LONG)
            );
            let turn = promoted_ids(&[first.unwrap(), second.unwrap()].concat());
            assert!(
                !turn.is_empty(),
                "{} of 100 promoted, the others are stuck",
                promoted.len()
            );
            promoted.extend(turn);
        }
        assert_eq!(promoted.len(), 100, "none twice");
        assert_eq!(
            promoted.into_iter().collect::<HashSet<_>>(),
            waiting.into_iter().collect()
        );
    }
}

#[testkit::database_test]
async fn only_what_was_not_enqueued_is_marked_so(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let queued = ids(&pushes(&pool, PushState::Queued, 2).await);
    let sending = PushRow::in_state(PushState::Sending).make(&pool).await.id;
    let sent = PushRow::in_state(PushState::Sent).make(&pool).await.id;
    let batch = [queued[0], queued[0], sending, sent];
    assert_eq!(store.mark_not_enqueued(&batch).await.unwrap(), 1);
    assert_eq!(state_of(&store, queued[0]).await, PushState::Pending);
    assert_eq!(
        state_of(&store, queued[1]).await,
        PushState::Queued,
        "it was not named"
    );
    assert_eq!(state_of(&store, sending).await, PushState::Sending);
    assert_eq!(state_of(&store, sent).await, PushState::Sent);
}
