//! What people do about single dead letters, and what the audit log says of it afterwards.

use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::notification::NotificationState;
use domain::push::PushState;
use domain::subscription::SubscriptionState;
use serde_json::{Value, json};
use sqlx::PgPool;
use store::{Act, AuditFilter, AuditView, DeadLetterState, Kept, Resolved, Skipped, Store};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::scene::{POLICY, claim, completion, everything, lead, refused, state_of};

pub(crate) const ANNA: &str = "Anna (019aa2f0-0000-7000-8000-000000000001)";

pub(crate) fn act(note: Option<&'static str>) -> Act<'static> {
    Act {
        by: ANNA,
        note,
        at: SystemClock.now().trunc_subsecs(6),
    }
}

/// The newest dead letter about a push or notification.
pub(crate) async fn dead_letter_of(pool: &PgPool, subject: Uuid) -> Uuid {
    sqlx::query_scalar(
        "SELECT id FROM dead_letters WHERE coalesce(push_id, notification_id) = $1 ORDER BY created_at DESC LIMIT 1",
    )
    .bind(subject)
    .fetch_one(pool)
    .await
    .unwrap()
}

async fn make_dead_letter(pool: &PgPool, reason: &str, push: Option<Uuid>) -> Uuid {
    sqlx::query_scalar(
        "INSERT INTO dead_letters (lane, reason, fingerprint, push_id, detail)
         VALUES ('push', $1, 'broker/rejected', $2, 'rejected') RETURNING id",
    )
    .bind(reason)
    .bind(push)
    .fetch_one(pool)
    .await
    .unwrap()
}

pub(crate) async fn dead_letter(pool: &PgPool, id: Uuid) -> Value {
    sqlx::query_scalar("SELECT to_jsonb(d) FROM dead_letters d WHERE id = $1")
        .bind(id)
        .fetch_one(pool)
        .await
        .unwrap()
}

async fn audit(store: &Store) -> Vec<AuditView> {
    store.list_audit(&AuditFilter::default(), 100).await.unwrap()
}

#[testkit::database_test]
async fn a_replayed_push_is_pending_with_all_of_its_attempts_ahead(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::GivenUp)
        .attempts(POLICY.max_attempts)
        .make(&pool)
        .await;
    let first = dead_letter_of(&pool, push.id.uuid()).await;
    let act = act(Some("Swrve is back"));
    assert_eq!(
        store.replay_dead_letter(first, &act).await.unwrap(),
        Resolved::Done
    );

    let view = store.find_push(push.id).await.unwrap().unwrap();
    assert_eq!(state_of(&store, push.id).await, PushState::Pending);
    assert_eq!(
        (view.attempts, view.replayed_after, view.finished_at),
        (3, 3, None)
    );
    let resolved = dead_letter(&pool, first).await;
    assert_eq!(
        json!([
            resolved["state"],
            resolved["resolved_by"],
            resolved["note"],
            resolved["job_id"]
        ]),
        json!(["REPLAYED", ANNA, "Swrve is back", null])
    );

    // It fails for as long as it may, once more, and ends in a dead letter of its own.
    let leader = lead(&store).await;
    for attempt in 1..=POLICY.max_attempts {
        let claimed = store.claim_pushes(&[push.id], claim(&leader)).await.unwrap();
        let [claimed] = &claimed[..] else {
            panic!("attempt {attempt} is not allowed")
        };
        assert_eq!((claimed.attempts, claimed.replayed_after), (3 + attempt, 3));
        let mut made = push;
        made.lease_token = claimed.lease_token;
        let counted = claimed.attempts - claimed.replayed_after;
        let ended = completion(made, counted, refused(503));
        assert_eq!(store.complete_pushes(&[ended]).await.unwrap().len(), 1);
        sqlx::query(
            "UPDATE push_notifications SET status = 'PENDING', next_attempt_at = NULL WHERE status = 'RETRY'",
        )
        .execute(&pool)
        .await
        .unwrap();
    }
    assert_eq!(state_of(&store, push.id).await, PushState::GivenUp);
    let second = dead_letter_of(&pool, push.id.uuid()).await;
    assert_ne!(second, first);
    assert_eq!(dead_letter(&pool, second).await["state"], "OPEN");
}

/// An attempt whose outcome was lost counts from the replay on, too.
#[testkit::database_test]
async fn the_rescuer_counts_the_attempts_of_a_replayed_push_from_its_replay(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Sending)
        .attempts(POLICY.max_attempts + 1)
        .leased_for(TimeDelta::seconds(-1))
        .make(&pool)
        .await;
    for (replayed_after, state) in [(2, PushState::Pending), (1, PushState::GivenUp)] {
        sqlx::query(
            "UPDATE push_notifications SET replayed_after = $1, status = 'IN_MEMORY', lease_token = $2,
                    leased_until = now() - interval '1 second'",
        )
        .bind(replayed_after)
        .bind(push.lease_token)
        .execute(&pool)
        .await
        .unwrap();
        store.rescue_pushes(9, POLICY.max_attempts).await.unwrap();
        assert_eq!(
            state_of(&store, push.id).await,
            state,
            "replayed after {replayed_after}"
        );
    }
}

#[testkit::database_test]
async fn a_replayed_notification_is_due_as_one_that_its_reseller_sends_again(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for state in [NotificationState::Failed, NotificationState::GivenUp] {
        let subscription = SubscriptionRow::in_state(SubscriptionState::Degraded)
            .make(&pool)
            .await;
        let [ours, theirs] = [0, 1].map(|_| NotificationRow::in_state(state, subscription).attempts(4));
        let (ours, theirs) = (ours.make(&pool).await, theirs.make(&pool).await);
        let act = act(None);
        let letter = dead_letter_of(&pool, ours.id.uuid()).await;
        assert_eq!(
            store.replay_dead_letter(letter, &act).await.unwrap(),
            Resolved::Done
        );
        store.resend_notification("acme", theirs.id, act).await.unwrap();
        let mut rows: Vec<Value> = Vec::new();
        for made in [ours, theirs] {
            let mut row: Value = sqlx::query_scalar("SELECT to_jsonb(n) FROM notifications n WHERE id = $1")
                .bind(made.id.uuid())
                .fetch_one(&pool)
                .await
                .unwrap();
            for own in ["id", "event", "created_at", "reason"] {
                row.as_object_mut().unwrap().remove(own);
            }
            rows.push(row);
        }
        assert_eq!(rows[0], rows[1]);
        assert_eq!(
            (&rows[0]["status"], &rows[0]["resent_after"]),
            (&json!("RETRY"), &json!(4))
        );
    }
}

#[testkit::database_test]
async fn what_its_reseller_sends_again_or_replays_leaves_no_dead_letter_open(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::in_state(SubscriptionState::Active)
        .make(&pool)
        .await;
    let [resent, unfinished] = [NotificationState::GivenUp, NotificationState::Retry]
        .map(|state| NotificationRow::in_state(state, subscription).attempts(4));
    let (resent, unfinished) = (resent.make(&pool).await, unfinished.make(&pool).await);
    let older = dead_letter_of(&pool, resent.id.uuid()).await;
    let newer: Uuid = sqlx::query_scalar(
        "INSERT INTO dead_letters (lane, reason, fingerprint, notification_id, detail)
         VALUES ('reseller', 'REJECTED', 'broker/rejected', $1, 'rejected') RETURNING id",
    )
    .bind(resent.id.uuid())
    .fetch_one(&pool)
    .await
    .unwrap();
    let other: Uuid = sqlx::query_scalar(
        "INSERT INTO dead_letters (lane, reason, fingerprint, notification_id, detail)
         VALUES ('reseller', 'REJECTED', 'broker/rejected', $1, 'rejected') RETURNING id",
    )
    .bind(unfinished.id.uuid())
    .fetch_one(&pool)
    .await
    .unwrap();
    for id in [resent.id, unfinished.id] {
        store.resend_notification("acme", id, act(None)).await.unwrap();
    }
    for id in [older, newer] {
        let letter = dead_letter(&pool, id).await;
        assert_eq!(
            (&letter["state"], &letter["resolved_by"], &letter["note"]),
            (
                &json!("REPLAYED"),
                &json!("reseller acme"),
                &json!("sent again by its reseller")
            )
        );
    }
    assert_eq!(
        dead_letter(&pool, other).await["state"],
        json!("OPEN"),
        "what has not ended is not sent again"
    );
}

#[testkit::database_test]
async fn of_replays_at_once_one_does_it_and_the_others_are_told(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Failed).make(&pool).await;
    let id = dead_letter_of(&pool, push.id.uuid()).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = store.clone();
        tasks.spawn(async move { store.replay_dead_letter(id, &act(None)).await.unwrap() });
    }
    let results = tasks.join_all().await;
    let done = results.iter().filter(|result| **result == Resolved::Done).count();
    let told = Resolved::Before(DeadLetterState::Replayed);
    assert_eq!(
        (done, results.iter().filter(|result| **result == told).count()),
        (1, 7)
    );
    assert_eq!(audit(&store).await.len(), 1);
}

#[testkit::database_test]
async fn what_cannot_be_replayed_says_why_and_stays_as_it_is(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut cases = Vec::new();
    for (state, reason) in [
        (PushState::Scheduled, Skipped::Unfinished),
        (PushState::Pending, Skipped::Unfinished),
        (PushState::Queued, Skipped::Unfinished),
        (PushState::Sending, Skipped::Unfinished),
        (PushState::Retry, Skipped::Unfinished),
        (PushState::Sent, Skipped::Delivered),
    ] {
        let push = PushRow::in_state(state).make(&pool).await;
        cases.push((
            make_dead_letter(&pool, "REJECTED", Some(push.id.uuid())).await,
            reason,
        ));
    }
    let cancelled = PushRow::in_state(PushState::GivenUp).make(&pool).await;
    sqlx::query("UPDATE push_notifications SET reason = 'CANCELLED' WHERE id = $1")
        .bind(cancelled.id.uuid())
        .execute(&pool)
        .await
        .unwrap();
    cases.push((
        dead_letter_of(&pool, cancelled.id.uuid()).await,
        Skipped::Cancelled,
    ));
    cases.push((
        make_dead_letter(&pool, "REJECTED", Some(Uuid::now_v7())).await,
        Skipped::Gone,
    ));
    cases.push((
        make_dead_letter(&pool, "MALFORMED", None).await,
        Skipped::Malformed,
    ));
    for subscription in [
        SubscriptionRow::in_state(SubscriptionState::Deactivated),
        SubscriptionRow::in_state(SubscriptionState::PendingVerification),
        SubscriptionRow::active().deleted(),
    ] {
        let subscription = subscription.make(&pool).await;
        let made = NotificationRow::in_state(NotificationState::Failed, subscription)
            .make(&pool)
            .await;
        cases.push((
            dead_letter_of(&pool, made.id.uuid()).await,
            Skipped::SubscriptionInactive,
        ));
    }
    let before = everything(&pool).await;
    for (letter, reason) in cases {
        let resolved = store.replay_dead_letter(letter, &act(None)).await.unwrap();
        assert_eq!(resolved, Resolved::Refused(reason));
    }
    let unknown = store
        .replay_dead_letter(Uuid::now_v7(), &act(None))
        .await
        .unwrap();
    assert_eq!(unknown, Resolved::Unknown);
    assert_eq!(everything(&pool).await, before);
    assert_eq!(audit(&store).await, []);
}

#[testkit::database_test]
async fn what_was_cancelled_has_a_dead_letter_that_nothing_opens(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Retry).make(&pool).await;
    let subscription = SubscriptionRow::active().make(&pool).await;
    let row = NotificationRow::in_state(NotificationState::Pending, subscription);
    let notification = row.make(&pool).await;
    let note = act(Some("sent by mistake"));
    store.cancel_push(push.id, note).await.unwrap();
    store.cancel_notification(notification.id, note).await.unwrap();
    for (subject, fingerprint) in [
        (push.id.uuid(), "other/cancelled"),
        (notification.id.uuid(), "delivery/cancelled"),
    ] {
        let id = dead_letter_of(&pool, subject).await;
        let before = dead_letter(&pool, id).await;
        assert_eq!(
            (&before["state"], &before["note"]),
            (&json!("DISCARDED"), &json!("sent by mistake"))
        );
        assert_eq!(before["fingerprint"], fingerprint);
        assert_eq!(before["resolved_by"], note.by);
        let replayed = store.replay_dead_letter(id, &act(None)).await.unwrap();
        assert_eq!(replayed, Resolved::Refused(Skipped::Cancelled));
        assert_eq!(dead_letter(&pool, id).await, before);
    }
    let resent = store.resend_notification("acme", notification.id, note).await;
    assert_eq!(resent.unwrap(), store::webhook::Resent::Cancelled);
    assert_eq!(state_of(&store, push.id).await, PushState::Cancelled);
}

#[testkit::database_test]
async fn every_open_dead_letter_about_one_push_is_resolved_by_its_replay(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Failed).make(&pool).await;
    let failed = dead_letter_of(&pool, push.id.uuid()).await;
    let rejected = make_dead_letter(&pool, "REJECTED", Some(push.id.uuid())).await;
    let discarded = make_dead_letter(&pool, "REJECTED", Some(push.id.uuid())).await;
    let known = act(Some("a known hiccup"));
    assert_eq!(
        store.discard_dead_letter(discarded, &known).await.unwrap(),
        Resolved::Done
    );
    assert_eq!(
        store.replay_dead_letter(rejected, &act(None)).await.unwrap(),
        Resolved::Done
    );
    for (id, state) in [
        (failed, "REPLAYED"),
        (rejected, "REPLAYED"),
        (discarded, "DISCARDED"),
    ] {
        assert_eq!(dead_letter(&pool, id).await["state"], state);
    }
    let entries = audit(&store).await;
    assert_eq!(entries[0].details["otherLetters"], json!([failed]));
}

#[testkit::database_test]
async fn a_discard_needs_a_note_and_leaves_the_push_as_it_ended(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Failed).make(&pool).await;
    let id = dead_letter_of(&pool, push.id.uuid()).await;
    let before = everything(&pool).await;
    for nothing in [None, Some(" ")] {
        assert!(store.discard_dead_letter(id, &act(nothing)).await.is_err());
    }
    assert_eq!(everything(&pool).await, before);
    let act = act(Some("the campaign is over"));
    assert_eq!(store.discard_dead_letter(id, &act).await.unwrap(), Resolved::Done);
    assert_eq!(everything(&pool).await["pushes"], before["pushes"]);
    let again = store.replay_dead_letter(id, &act).await.unwrap();
    assert_eq!(again, Resolved::Before(DeadLetterState::Discarded));
}

#[testkit::database_test]
async fn the_log_tells_who_did_what_to_which_and_why_and_can_be_searched(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let start: DateTime<Utc> = "2026-11-21T12:00:00Z".parse().unwrap();
    let mut letters = Vec::new();
    for (minute, by) in [(0, "Anna (1)"), (1, "Anna (2)"), (2, "Annabel (3)")] {
        let push = PushRow::in_state(PushState::Failed).make(&pool).await;
        let id = dead_letter_of(&pool, push.id.uuid()).await;
        let at = start + TimeDelta::minutes(minute);
        let act = Act {
            by,
            note: Some("reason"),
            at,
        };
        let resolved = if minute == 1 {
            store.discard_dead_letter(id, &act).await
        } else {
            store.replay_dead_letter(id, &act).await
        };
        assert_eq!(resolved.unwrap(), Resolved::Done);
        letters.push(id);
    }
    let found = async |filter: AuditFilter| -> Vec<String> {
        let entries = store.list_audit(&filter, 100).await.unwrap();
        entries.into_iter().map(|entry| entry.actor).collect()
    };
    let all = audit(&store).await;
    assert_eq!(all[2].at, start);
    assert_eq!(
        (all[2].actor.as_str(), all[2].action.as_str()),
        ("Anna (1)", "dead-letter.replay")
    );
    assert_eq!(all[2].subject, format!("dead-letter/{}", letters[0]));
    assert_eq!(all[2].note.as_deref(), Some("reason"));

    let by = |actor: &str| AuditFilter {
        actor: Some(actor.to_owned()),
        ..AuditFilter::default()
    };
    assert_eq!(found(by("Anna")).await, ["Anna (2)", "Anna (1)"]);
    assert_eq!(found(by("Anna (1)")).await, ["Anna (1)"]);
    let of = |action: &str| AuditFilter {
        actions: Some(vec![action.to_owned()]),
        ..AuditFilter::default()
    };
    let of_letters = AuditFilter {
        actions: Some(domain::audit::meant("dead-letter")),
        ..AuditFilter::default()
    };
    assert_eq!(found(of_letters).await.len(), 3);
    assert_eq!(found(of("dead-letter.discard")).await, ["Anna (2)"]);
    let without = |action: &str| AuditFilter {
        without: domain::audit::meant(action),
        ..AuditFilter::default()
    };
    assert_eq!(found(without("dead-letter")).await, [] as [&str; 0]);
    assert_eq!(found(without("dead-letter.discard")).await.len(), 2);
    let subject = Some(format!("dead-letter/{}", letters[2]));
    assert_eq!(
        found(AuditFilter {
            subject,
            ..AuditFilter::default()
        })
        .await,
        ["Annabel (3)"]
    );
    let between = AuditFilter {
        since: Some(start + TimeDelta::minutes(1)),
        until: Some(start + TimeDelta::minutes(2)),
        ..AuditFilter::default()
    };
    assert_eq!(found(between).await, ["Anna (2)"]);
    let before = AuditFilter {
        before: Some(all[1].id),
        ..AuditFilter::default()
    };
    assert_eq!(found(before).await, ["Anna (1)"]);
}

#[testkit::database_test]
async fn what_was_resolved_is_forgotten_in_the_end_and_what_is_open_never(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut letters = Vec::new();
    for _ in 0..3 {
        let push = PushRow::in_state(PushState::Failed).make(&pool).await;
        letters.push(dead_letter_of(&pool, push.id.uuid()).await);
    }
    store.replay_dead_letter(letters[0], &act(None)).await.unwrap();
    store
        .discard_dead_letter(letters[1], &act(Some("over")))
        .await
        .unwrap();
    let forget = async |age| {
        let cutoff = store.cutoff(SystemClock.now(), age).await.unwrap();
        store
            .forget(Kept::ResolvedDeadLetters, cutoff, 100)
            .await
            .unwrap()
    };
    assert_eq!(forget(Duration::from_secs(3_600)).await, 0);
    assert_eq!(forget(Duration::ZERO).await, 2);
    assert_eq!(dead_letter(&pool, letters[2]).await["state"], "OPEN");
}
