//! Pushes that had ended badly, and are wanted after all.

use domain::clock::{Clock, SystemClock};
use domain::push::{PushState, PushStatus};
use simulators::swrve::Rule;
use sqlx::types::Uuid;
use store::push::PromotionQueue;
use store::{Act, Resolved};
use testkit::Installation;
use testkit::push_factory::PushRow;

use crate::rig::{promote, start, view};

/// Replays the open dead letter about a push, from several callers at once; returns how many of them did it.
async fn replay(it: &Installation, push: Uuid) -> usize {
    let letter: Uuid =
        sqlx::query_scalar("SELECT id FROM dead_letters WHERE push_id = $1 AND state = 'OPEN'")
            .bind(push)
            .fetch_one(&it.pool)
            .await
            .unwrap();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let store = it.store.clone();
        callers.spawn(async move {
            let act = Act {
                by: "Anna (1)",
                note: None,
                at: SystemClock.now(),
            };
            store.replay_dead_letter(letter, &act).await.unwrap()
        });
    }
    let answers = callers.join_all().await;
    answers.iter().filter(|answer| **answer == Resolved::Done).count()
}

#[testkit::test]
async fn a_replayed_push_arrives_once_however_often_it_was_asked_for(it: Installation) {
    let mut ids = Vec::new();
    for state in [PushState::Failed, PushState::GivenUp] {
        let row = PushRow::in_state(state).attempts(it.config.push.retry.max_attempts);
        let id = row.make(&it.pool).await.id;
        assert_eq!(replay(&it, id.uuid()).await, 1);
        ids.push(id);
    }
    let (dispatcher, broker) = (start(&it.config), it.broker());
    assert_eq!(promote(&it, &broker, PromotionQueue::Pending).await.len(), 2);
    for id in &ids {
        it.settled(*id, PushStatus::Sent).await;
    }
    assert_eq!(promote(&it, &broker, PromotionQueue::Pending).await, []);
    dispatcher.stop().await;
    let report = it.sim.report();
    assert_eq!((report.received, report.accepted), (2, 2));
}

#[testkit::test]
async fn a_replayed_push_that_fails_has_its_retries_ahead_of_it(mut it: Installation) {
    it.config.push.retry.max_attempts = 2;
    let unavailable = Rule {
        status: Some(503),
        ..Rule::default()
    };
    it.sim.script(vec![unavailable]).unwrap();
    let push = PushRow::in_state(PushState::GivenUp)
        .attempts(2)
        .make(&it.pool)
        .await;
    assert_eq!(replay(&it, push.id.uuid()).await, 1);
    let (dispatcher, broker) = (start(&it.config), it.broker());
    promote(&it, &broker, PromotionQueue::Pending).await;
    it.settled(push.id, PushStatus::Retry).await;
    let later = SystemClock.now() + 2 * it.config.push.retry.delay;
    promote(&it, &broker, PromotionQueue::Due(later)).await;
    it.settled(push.id, PushStatus::GivenUp).await;
    let ended = view(&it, push.id).await;
    assert_eq!((ended.attempts, ended.replayed_after), (4, 2));
    dispatcher.stop().await;
    let letters: Vec<String> =
        sqlx::query_scalar("SELECT state FROM dead_letters WHERE push_id = $1 ORDER BY created_at")
            .bind(push.id.uuid())
            .fetch_all(&it.pool)
            .await
            .unwrap();
    assert_eq!(letters, ["REPLAYED", "OPEN"]);
}
