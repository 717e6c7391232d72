//! What a recovery after a restore ends and leaves alone, that nothing of before is valid any more, and that it can be interrupted.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationState;
use domain::push::{PushState, SendOutcome};
use sqlx::PgPool;
use store::push::PromotionQueue;
use store::{Act, AfterRestore, Gap, Lane, NotRecovered, Pausable, PossiblySent, Resolved, Store};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::reseller::scene::{
    answered, claim as claim_notifications, completion as delivery, promote_due_ids, terms,
};
use crate::scene::{LONG, claim, completion, count, lead, state_of};

pub(crate) fn now() -> DateTime<Utc> {
    SystemClock.now().trunc_subsecs(6)
}

pub(crate) fn act() -> Act<'static> {
    Act {
        by: "Anna (1)",
        note: None,
        at: now(),
    }
}

/// A loss just now of a database that was restored to a minute before.
pub(crate) fn gap() -> Gap {
    Gap {
        restored_to: now() - TimeDelta::minutes(1),
        lost_at: now(),
    }
}

pub(crate) async fn recover(store: &Store, gap: Gap) -> AfterRestore {
    store
        .recover_after_restore(gap, act(), |_| ())
        .await
        .unwrap()
        .expect("nothing is in the way")
}

/// Recovers from a loss just now; tells how many were ended as possibly sent.
pub(crate) async fn quarantine(store: &Store) -> u64 {
    let mut ended = 0;
    let recovered = store
        .recover_after_restore(gap(), act(), |count| ended = count)
        .await;
    recovered.unwrap().expect("nothing is in the way");
    ended
}

/// The next recovery can end no notification, and fails in the middle if one waits.
pub(crate) async fn break_off(pool: &PgPool) {
    sqlx::query("ALTER TABLE notifications ADD CONSTRAINT broken CHECK (status <> 'GIVEN_UP') NOT VALID")
        .execute(pool)
        .await
        .unwrap();
}

/// The next recovery is through again.
pub(crate) async fn go_on(pool: &PgPool) {
    sqlx::query("ALTER TABLE notifications DROP CONSTRAINT broken")
        .execute(pool)
        .await
        .unwrap();
}

async fn everything(pool: &PgPool) -> String {
    sqlx::query_scalar(
        "SELECT concat((SELECT jsonb_agg(to_jsonb(t) ORDER BY id) FROM push_notifications t),
                       (SELECT jsonb_agg(to_jsonb(t) ORDER BY id) FROM notifications t),
                       (SELECT jsonb_agg(to_jsonb(t) ORDER BY id) FROM dead_letters t),
                       (SELECT jsonb_agg(to_jsonb(t) ORDER BY name) FROM leases t),
                       (SELECT jsonb_agg(to_jsonb(t) ORDER BY name) FROM lanes t),
                       (SELECT jsonb_agg(to_jsonb(t) ORDER BY id) FROM audit_log t))",
    )
    .fetch_one(pool)
    .await
    .unwrap()
}

fn classes(possibly_sent: &[PossiblySent]) -> Vec<(&str, &str, u64)> {
    possibly_sent
        .iter()
        .map(|one| (one.lane.as_str(), one.class.as_str(), one.count))
        .collect()
}

const CLASSES: [(&str, &str, u64); 10] = [
    ("push", "pending", 1),
    ("push", "queued", 1),
    ("push", "retry", 1),
    ("push", "scheduled", 1),
    ("push", "sending", 1),
    ("reseller", "pending", 1),
    ("reseller", "queued", 1),
    ("reseller", "retry", 1),
    ("reseller", "scheduled", 1),
    ("reseller", "sending", 1),
];

#[testkit::database_test]
async fn what_may_have_been_sent_is_held_by_class_and_sent_again_by_a_replay_alone(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let (mut pushes, mut notifications) = (Vec::new(), Vec::new());
    for state in PushState::ALL {
        pushes.push((PushRow::in_state(state).make(&pool).await, state));
        let row = NotificationRow::in_state(state, subscription);
        notifications.push(row.make(&pool).await);
    }
    let later = PushRow::in_state(PushState::Scheduled).due_in(TimeDelta::hours(1));
    let later = later.make(&pool).await;
    let hastened = PushRow::in_state(PushState::Retry).due_in(TimeDelta::days(1));
    let hastened = hastened.make(&pool).await;
    let gap = gap();
    let mut expected = CLASSES.to_vec();
    expected[2].2 = 2;
    let counted = store.count_possibly_sent(gap.lost_at).await.unwrap();
    assert_eq!(classes(&counted), expected);
    assert_eq!(count(&pool, "audit_log").await, 0, "counting changes nothing");
    let recovered = recover(&store, gap).await;
    assert_eq!(classes(&recovered.possibly_sent), expected);
    assert_eq!((recovered.gap, recovered.done_before), (gap, None));
    for (push, state) in &pushes {
        let now = if state.status().is_terminal() {
            *state
        } else {
            PushState::GivenUp
        };
        assert_eq!(state_of(&store, push.id).await, now, "{state:?}");
    }
    assert_eq!(state_of(&store, later.id).await, PushState::Scheduled);
    assert_eq!(state_of(&store, hastened.id).await, PushState::GivenUp);

    // Whatever messages there still are, nothing is claimed; what is under way somewhere cannot be recorded; nothing is promoted.
    let leader = lead(&store).await;
    let ids: Vec<_> = pushes.iter().map(|(push, _)| push.id).collect();
    assert_eq!(store.claim_pushes(&ids, claim(&leader)).await.unwrap(), []);
    let notification_ids: Vec<_> = notifications.iter().map(|made| made.id).collect();
    let claims = claim_notifications(&store, &notification_ids, &terms(now())).await;
    assert_eq!(claims.claimed.len(), 0);
    for (push, _) in &pushes {
        let sent = completion(*push, 1, SendOutcome::Delivered);
        assert!(store.complete_pushes(&[sent]).await.unwrap().is_empty());
    }
    for made in &notifications {
        let delivered = delivery(made, 1, answered(200));
        let completed = store.complete_deliveries(&[delivered], now()).await.unwrap();
        assert!(completed.is_empty());
    }
    for queue in [PromotionQueue::Pending, PromotionQueue::Due(now())] {
        assert_eq!(store.promote_pushes(queue, 99, LONG).await.unwrap(), []);
    }
    assert_eq!(promote_due_ids(&store, &pool, now()).await, []);

    // A replay by class sends again.
    let letters: Vec<(uuid::Uuid, Option<uuid::Uuid>)> = sqlx::query_as(
        "SELECT id, push_id FROM dead_letters WHERE fingerprint = 'recovery/possibly-sent/queued' AND error_type = 'OTHER'
         ORDER BY push_id NULLS LAST",
    )
    .fetch_all(&pool)
    .await
    .unwrap();
    assert_eq!(letters.len(), 2);
    for (letter, _) in &letters {
        assert_eq!(
            store.replay_dead_letter(*letter, &act()).await.unwrap(),
            Resolved::Done
        );
    }
    let released: Vec<_> = ids
        .iter()
        .filter(|id| Some(id.uuid()) == letters[0].1)
        .copied()
        .collect();
    assert_eq!(
        store.claim_pushes(&released, claim(&leader)).await.unwrap().len(),
        1
    );
    assert_eq!(promote_due_ids(&store, &pool, now()).await.len(), 1);

    let before = everything(&pool).await;
    let again = recover(&store, gap).await;
    assert!(again.done_before.is_some());
    expected.retain(|(_, class, _)| *class != "queued");
    assert_eq!(classes(&again.possibly_sent), expected, "what is held still");
    assert_eq!(everything(&pool).await, before, "a second run changes nothing");
}

#[testkit::database_test]
async fn no_lease_and_no_claim_of_before_is_one_any_more(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let leader = lead(&store).await;
    let seen = store.view_lease("push").await.unwrap();
    recover(&store, gap()).await;
    assert!(!store.renew_lease(&leader).await.unwrap());
    let taken = store.take_lease("push", seen, leader.holder).await.unwrap();
    assert_eq!(taken, None, "by what was seen before");
    let next = lead(&store).await;
    assert!(next.epoch > leader.epoch + 1_000_000, "{}", next.epoch);
    let push = PushRow::in_state(PushState::Pending).make(&pool).await;
    assert_eq!(store.claim_pushes(&[push.id], claim(&leader)).await.unwrap(), []);
}

#[testkit::database_test]
async fn an_interrupted_recovery_sends_nothing_and_goes_on(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let by_hand = Act {
        note: Some("because"),
        ..act()
    };
    store.pause(&Pausable::Lane(Lane::Push), by_hand).await.unwrap();
    let push = PushRow::in_state(PushState::Pending).make(&pool).await;
    let waiting = NotificationRow::in_state(NotificationState::Pending, subscription);
    let waiting = waiting.make(&pool).await;
    break_off(&pool).await;
    let gap = gap();
    store.recover_after_restore(gap, act(), |_| ()).await.unwrap_err();
    assert_eq!(state_of(&store, push.id).await, PushState::GivenUp);
    let claims = claim_notifications(&store, &[waiting.id], &terms(now())).await;
    assert_eq!(claims.claimed.len(), 0, "the lane is paused");
    // A service that is started now is no reason to take the gap for shorter.
    lead(&store).await;
    let noted = store.restored_to(gap.lost_at).await.unwrap();
    assert_eq!(noted, Some(gap.restored_to));
    let gap = Gap {
        lost_at: now(),
        ..gap
    };
    go_on(&pool).await;
    let recovered = recover(&store, gap).await;
    assert_eq!(
        classes(&recovered.possibly_sent),
        [("push", "pending", 1), ("reseller", "pending", 1)]
    );
    assert!(!store.lane_is_paused(Lane::Reseller).await.unwrap());
    assert!(
        store.lane_is_paused(Lane::Push).await.unwrap(),
        "an operator's pause stays"
    );
}

#[testkit::database_test]
async fn nothing_is_touched_while_services_run_or_have_run_since(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    PushRow::in_state(PushState::Pending).make(&pool).await;
    let mut service = pool.acquire().await.unwrap();
    for name in [
        "postrider-dispatcher",
        "postrider-retry-worker",
        "postrider-ingest-api",
        "ingest-api",
        "operator-api",
        "reseller-portal",
        "webpush-endpoint",
        "webpush-connection",
    ] {
        sqlx::query("SELECT set_config('application_name', $1, false)")
            .bind(name)
            .execute(&mut *service)
            .await
            .unwrap();
        let refused = store.recover_after_restore(gap(), act(), |_| ()).await.unwrap();
        assert_eq!(refused, Err(NotRecovered::Connected(vec![name.to_owned()])));
    }
    drop(service.detach());
    lead(&store).await;
    let seen: DateTime<Utc> = sqlx::query_scalar("SELECT max(renewed_at) FROM leases")
        .fetch_one(&pool)
        .await
        .unwrap();
    let lost_before = Gap {
        restored_to: seen - TimeDelta::minutes(2),
        lost_at: seen - TimeDelta::minutes(1),
    };
    let refused = async || {
        store
            .recover_after_restore(lost_before, act(), |_| ())
            .await
            .unwrap()
    };
    testkit::eventually("the session ends", async || {
        (refused().await == Err(NotRecovered::Newer(seen))).then_some(())
    })
    .await;
    assert_eq!(count(&pool, "audit_log").await, 0);
}

#[testkit::database_test]
async fn a_gap_is_told_as_it_was_noted_and_never_backwards(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    lead(&store).await;
    let (replayed, seen): (Option<DateTime<Utc>>, DateTime<Utc>) =
        sqlx::query_as("SELECT pg_last_xact_replay_timestamp(), max(renewed_at) FROM leases")
            .fetch_one(&pool)
            .await
            .unwrap();
    let gap = gap();
    let unnoted = store.restored_to(gap.lost_at).await.unwrap();
    assert_eq!(unnoted, Some(replayed.unwrap_or(seen)));
    let backwards = Gap {
        restored_to: gap.lost_at + TimeDelta::seconds(1),
        ..gap
    };
    let refused = store.recover_after_restore(backwards, act(), |_| ()).await;
    assert_eq!(
        refused.unwrap(),
        Err(NotRecovered::RestoredLater(backwards.restored_to))
    );
    assert_eq!(count(&pool, "audit_log").await, 0);
    recover(&store, gap).await;
    // Services run, and it is asked once more.
    lead(&store).await;
    let noted = store.restored_to(gap.lost_at).await.unwrap();
    assert_eq!(noted, Some(gap.restored_to));
    let again = recover(&store, backwards).await;
    assert_eq!((again.gap, again.done_before.is_some()), (gap, true));
}

#[testkit::database_test]
async fn what_a_service_rescued_that_came_too_early_was_sending(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let second = TimeDelta::seconds(-1);
    let push = PushRow::in_state(PushState::Sending).leased_for(second);
    push.make(&pool).await;
    let notification = NotificationRow::in_state(NotificationState::Sending, subscription).leased_for(second);
    notification.make(&pool).await;
    assert_eq!(store.rescue_pushes(9, 3).await.unwrap().pending, 1);
    let rescued = store.rescue_notifications(now(), 9, 3).await.unwrap();
    assert_eq!(rescued.retry, 1);
    let recovered = recover(&store, gap()).await;
    assert_eq!(
        classes(&recovered.possibly_sent),
        [("push", "sending", 1), ("reseller", "sending", 1)]
    );
}

#[testkit::database_test]
async fn what_was_in_memory_is_held_before_what_waited(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let push = PushRow::in_state(PushState::Pending).make(&pool).await;
    NotificationRow::in_state(NotificationState::Sending, subscription)
        .make(&pool)
        .await;
    sqlx::query(
        "ALTER TABLE push_notifications ADD CONSTRAINT broken CHECK (status <> 'GIVEN_UP') NOT VALID",
    )
    .execute(&pool)
    .await
    .unwrap();
    store
        .recover_after_restore(gap(), act(), |_| ())
        .await
        .unwrap_err();
    assert_eq!(state_of(&store, push.id).await, PushState::Pending);
    let held: Vec<String> = sqlx::query_scalar("SELECT fingerprint FROM dead_letters")
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(held, ["recovery/possibly-sent/sending"]);
}
