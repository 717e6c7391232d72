//! Messages that the broker gave up.

use domain::push::{PushId, PushState};
use serde_json::json;
use sqlx::PgPool;
use store::{BrokerDeadLetter, DeadLetterLane, Store};
use testkit::push_factory::PushRow;

use crate::scene::{count, state_of};

fn dead_letter(push_id: Option<PushId>) -> BrokerDeadLetter {
    BrokerDeadLetter {
        lane: DeadLetterLane::Push,
        id: push_id.map(PushId::uuid),
        detail: "delivery limit of push.ready".to_owned(),
        fingerprint: "broker/delivery_limit".to_owned(),
        message: json!({ "body": "e30=", "headers": { "x-death": [] } }),
    }
}

#[testkit::database_test]
async fn a_push_whose_message_was_given_up_is_due_again(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Queued).make(&pool).await;
    assert!(
        store
            .archive_dead_letter(&dead_letter(Some(push.id)))
            .await
            .unwrap()
    );
    assert_eq!(state_of(&store, push.id).await, PushState::Pending);
    let reasons: Vec<String> = sqlx::query_scalar("SELECT reason FROM dead_letters WHERE push_id = $1")
        .bind(push.id.uuid())
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(reasons, ["REJECTED"]);
}

#[testkit::database_test]
async fn a_push_that_is_elsewhere_stays_there_and_the_message_is_archived(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for state in PushState::ALL
        .into_iter()
        .filter(|state| *state != PushState::Queued)
    {
        let push = PushRow::in_state(state).make(&pool).await;
        let before = count(&pool, "dead_letters").await;
        assert!(
            !store
                .archive_dead_letter(&dead_letter(Some(push.id)))
                .await
                .unwrap()
        );
        assert_eq!(state_of(&store, push.id).await, state);
        assert_eq!(count(&pool, "dead_letters").await, before + 1);
    }
}

#[testkit::database_test]
async fn a_message_that_names_no_push_is_archived_as_malformed(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    assert!(!store.archive_dead_letter(&dead_letter(None)).await.unwrap());
    let (reason, message): (String, serde_json::Value) =
        sqlx::query_as("SELECT reason, message FROM dead_letters")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!((&*reason, message), ("MALFORMED", dead_letter(None).message));
}

#[testkit::database_test]
async fn a_message_of_a_stranger_is_archived_whatever_it_holds(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let strange = BrokerDeadLetter {
        lane: DeadLetterLane::Push,
        id: None,
        detail: "a\0b".to_owned(),
        fingerprint: "\0".to_owned(),
        message: json!({ "na\0me": ["te\0xt", { "n": 1, "null": null }] }),
    };
    store.archive_dead_letter(&strange).await.unwrap();
    let (detail, message): (String, serde_json::Value) =
        sqlx::query_as("SELECT detail, message FROM dead_letters")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(detail, "a\u{fffd}b");
    assert_eq!(
        message,
        json!({ "na\u{fffd}me": ["te\u{fffd}xt", { "n": 1, "null": null }] })
    );
}
