//! Every state × every event, driven through the store, must come out as `domain::lifecycle::transition` says: the same next
//! state, or a refusal that leaves every byte as it was.

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::lifecycle::{Attempts, Event, transition};
use domain::push::{PushState, PushStatus, SendOutcome};
use domain::reason::PushReason;
use serde_json::Value;
use sqlx::PgPool;
use store::push::{Completion, PromotionQueue, PushView, Release};
use store::{Act, Cancellation, Resolved, Store};
use testkit::push_factory::{MadePush, PushRow};

use crate::after_restore::quarantine;
use crate::scene::{LONG, POLICY, claim, count, everything, lead, open_dead_letters, refused};

/// Drives `event`; tells whether the store says that it happened.
async fn drive(store: &Store, event: Event, push: MadePush, next: Option<PushState>) -> bool {
    match event {
        Event::Enqueue => {
            let due = PromotionQueue::Due(SystemClock.now());
            let promoted = [
                store
                    .promote_pushes(PromotionQueue::Pending, 9, LONG)
                    .await
                    .unwrap(),
                store.promote_pushes(due, 9, LONG).await.unwrap(),
            ];
            promoted.concat().iter().any(|promoted| promoted.id == push.id)
        }
        Event::Spill => store.mark_not_enqueued(&[push.id]).await.unwrap() == 1,
        Event::Claim => {
            let leader = lead(store).await;
            let claimed = store.claim_pushes(&[push.id], claim(&leader)).await.unwrap();
            claimed.iter().any(|claimed| claimed.id == push.id)
        }
        Event::HandBack | Event::Postpone => release(store, push, event).await,
        Event::Succeed => complete(store, push, SendOutcome::Delivered, next, PushStatus::Sent).await,
        Event::FailRetryable => complete(store, push, refused(503), next, PushStatus::Retry).await,
        Event::FailPermanently => complete(store, push, refused(400), next, PushStatus::Failed).await,
        Event::Rescue => {
            let rescued = store.rescue_pushes(9, POLICY.max_attempts).await.unwrap();
            rescued.pending + rescued.given_up == 1
        }
        Event::Resend => replay_by_dead_letter(store, push).await,
        Event::Cancel => {
            let cancelled = store.cancel_push(push.id, act()).await.unwrap();
            matches!(cancelled, Cancellation::Done(_))
        }
        Event::Quarantine => quarantine(store).await == 1,
        Event::Defer | Event::Hold | Event::Abandon | Event::EndResend => {
            unreachable!("no statement does that to a push")
        }
    }
}

fn act() -> Act<'static> {
    Act {
        by: "Anna (1)",
        note: None,
        at: SystemClock.now(),
    }
}

/// Replays it by its dead letter, which has the identifier of the push: see [`dead_letter_about`].
async fn replay_by_dead_letter(store: &Store, push: MadePush) -> bool {
    store.replay_dead_letter(push.id.uuid(), &act()).await.unwrap() == Resolved::Done
}

/// Makes sure that there is a dead letter about the push, whatever its state.
async fn dead_letter_about(pool: &PgPool, push: MadePush) {
    sqlx::query(
        "WITH known AS (UPDATE dead_letters SET id = push_id WHERE push_id = $1 RETURNING id)
         INSERT INTO dead_letters (id, lane, reason, fingerprint, push_id, detail)
         SELECT $1, 'push', 'REJECTED', 'broker/rejected', $1, 'rejected' WHERE NOT EXISTS (SELECT FROM known)",
    )
    .bind(push.id.uuid())
    .execute(pool)
    .await
    .unwrap();
}

async fn release(store: &Store, push: MadePush, event: Event) -> bool {
    let release = Release {
        id: push.id,
        lease_token: push.lease_token,
        deferred_to: (event == Event::Postpone).then(|| SystemClock.now() + TimeDelta::hours(1)),
    };
    let released = store.release_pushes(&[release], LONG).await.unwrap();
    released.contains(&push.id)
}

async fn complete(
    store: &Store,
    push: MadePush,
    outcome: SendOutcome,
    next: Option<PushState>,
    otherwise: PushStatus,
) -> bool {
    let status = next.map_or(otherwise, PushState::status);
    let completion = Completion {
        id: push.id,
        lease_token: push.lease_token,
        status,
        next_attempt_at: (status == PushStatus::Retry).then(|| SystemClock.now()),
        millis: 983,
        response_status: None,
        classification: outcome.classification(),
    };
    let completed = store.complete_pushes(&[completion]).await.unwrap();
    completed.contains(&push.id)
}

/// The attempts that a push has had after `event`, and how the last one stands.
fn expected_history(state: PushState, event: Event, attempts: u32) -> (u32, Option<&'static str>) {
    match event {
        Event::Claim => (attempts + 1, Some("IN_PROCESS")),
        Event::HandBack | Event::Postpone => (attempts - 1, (attempts > 1).then_some("ERROR")),
        Event::Succeed => (attempts, Some("OK")),
        Event::FailRetryable | Event::FailPermanently => (attempts, Some("ERROR")),
        _ => {
            let claimed = state == PushState::Sending;
            (attempts, (claimed || attempts > 0).then_some("ERROR"))
        }
    }
}

fn assert_history(push: &PushView, (attempts, last): (u32, Option<&str>), case: &str) {
    assert_eq!(push.attempts, attempts, "attempts: {case}");
    let numbers: Vec<u32> = push.history.iter().map(|attempt| attempt.number).collect();
    assert_eq!(
        numbers,
        (1..=attempts).collect::<Vec<_>>(),
        "attempt rows: {case}"
    );
    let status = push.history.last().map(|attempt| attempt.status.as_str());
    assert_eq!(status, last, "last attempt: {case}");
}

async fn check(pool: &PgPool, event: Event, state: PushState, attempts: u32) {
    let case = format!("{event:?} of a push that is {state:?} after {attempts} attempts");
    let store = Store::from_pool(pool.clone());
    let mut row = PushRow::in_state(state).attempts(attempts);
    if event == Event::Rescue {
        row = row.leased_for(TimeDelta::seconds(-1));
    }
    let push = row.make(pool).await;
    if event == Event::Resend {
        dead_letter_about(pool, push).await;
    }
    let before = everything(pool).await;
    let counted = Attempts {
        total: attempts,
        before_resend: 0,
    };
    let expected = transition(state, event, counted, &POLICY.rules());

    let happened = drive(&store, event, push, expected.ok()).await;

    assert_eq!(happened, expected.is_ok(), "{case}");
    let Ok(next) = expected else {
        assert_eq!(everything(pool).await, before, "changed by a refused {case}");
        return;
    };
    let after = store.find_push(push.id).await.unwrap().unwrap();
    let state = PushState::of(
        after.status,
        after.claimed,
        after.reason == Some(PushReason::Cancelled),
    );
    assert_eq!(state, next, "{case}");
    assert_history(&after, expected_history(state, event, attempts), &case);
    let ended_badly = matches!(
        next,
        PushState::Failed | PushState::GivenUp | PushState::Cancelled
    );
    let letters = i64::from(event == Event::Resend || ended_badly);
    assert_eq!(count(pool, "dead_letters").await, letters, "dead letters: {case}");
    // What was cancelled is nothing that an operator has to mend.
    let open = i64::from(matches!(next, PushState::Failed | PushState::GivenUp));
    assert_eq!(open_dead_letters(pool).await, open, "open dead letters: {case}");
}

async fn mirrors_the_domain(pool: &PgPool, event: Event) {
    assert!(
        !POLICY.rules().never.contains(&event),
        "no statement does that to a push"
    );
    for state in PushState::ALL {
        for attempts in [
            POLICY.max_attempts - 2,
            POLICY.max_attempts - 1,
            POLICY.max_attempts,
        ] {
            check(pool, event, state, attempts).await;
            for table in ["push_notifications", "send_attempts", "dead_letters"] {
                sqlx::query(sqlx::AssertSqlSafe(format!("DELETE FROM {table}")))
                    .execute(pool)
                    .await
                    .unwrap();
            }
            let empty: Value = everything(pool).await;
            assert!(empty["pushes"].is_null(), "each case starts from nothing");
        }
    }
}

#[testkit::database_test]
async fn enqueue_mirrors_the_domain(pool: PgPool) {
    mirrors_the_domain(&pool, Event::Enqueue).await;
}

#[testkit::database_test]
async fn spill_mirrors_the_domain(pool: PgPool) {
    mirrors_the_domain(&pool, Event::Spill).await;
}

#[testkit::database_test]
async fn claim_mirrors_the_domain(pool: PgPool) {
    mirrors_the_domain(&pool, Event::Claim).await;
}

#[testkit::database_test]
async fn hand_back_mirrors_the_domain(pool: PgPool) {
    mirrors_the_domain(&pool, Event::HandBack).await;
}

#[testkit::database_test]
async fn postpone_mirrors_the_domain(pool: PgPool) {
    mirrors_the_domain(&pool, Event::Postpone).await;
}

#[testkit::database_test]
async fn succeed_mirrors_the_domain(pool: PgPool) {
    mirrors_the_domain(&pool, Event::Succeed).await;
}

#[testkit::database_test]
async fn fail_retryable_mirrors_the_domain(pool: PgPool) {
    mirrors_the_domain(&pool, Event::FailRetryable).await;
}

#[testkit::database_test]
async fn fail_permanently_mirrors_the_domain(pool: PgPool) {
    mirrors_the_domain(&pool, Event::FailPermanently).await;
}

#[testkit::database_test]
async fn rescue_mirrors_the_domain(pool: PgPool) {
    mirrors_the_domain(&pool, Event::Rescue).await;
}

#[testkit::database_test]
async fn resend_mirrors_the_domain(pool: PgPool) {
    mirrors_the_domain(&pool, Event::Resend).await;
}

#[testkit::database_test]
async fn cancel_mirrors_the_domain(pool: PgPool) {
    mirrors_the_domain(&pool, Event::Cancel).await;
}

#[testkit::database_test]
async fn quarantine_mirrors_the_domain(pool: PgPool) {
    mirrors_the_domain(&pool, Event::Quarantine).await;
}
