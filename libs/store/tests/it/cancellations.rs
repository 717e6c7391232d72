//! What operators cancel.

use domain::push::PushState;
use domain::reason::PushReason;
use sqlx::PgPool;
use store::Store;
use testkit::push_factory::PushRow;

use crate::pauses::scene::{act, audited, now};

#[testkit::database_test]
async fn what_is_cancelled_says_so_and_is_recorded(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let push = PushRow::in_state(PushState::Scheduled).make(&pool).await;
    let at = now();
    let cancelled = store.cancel_push(push.id, act("a test push", at)).await.unwrap();
    assert_eq!(
        cancelled,
        store::Cancellation::Done(domain::push::PushStatus::Scheduled)
    );
    let view = store.find_push(push.id).await.unwrap().unwrap();
    assert_eq!(
        (view.reason, view.finished_at),
        (Some(PushReason::Cancelled), Some(at))
    );
    let again = store.cancel_push(push.id, act("again", at)).await.unwrap();
    let by = Some(act("", at).by.to_owned());
    assert_eq!(again, store::Cancellation::Before { at, by });
    sqlx::query("DELETE FROM dead_letters")
        .execute(&pool)
        .await
        .unwrap();
    let again = store.cancel_push(push.id, act("again", at)).await.unwrap();
    assert_eq!(again, store::Cancellation::Before { at, by: None });
    assert_eq!(
        audited(&pool).await,
        [("push.cancel".to_owned(), format!("push/{}", push.id))]
    );
}
