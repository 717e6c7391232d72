//! Many pushes in one transaction: who is answered what when it goes wrong.

use std::time::Duration;

use reqwest::StatusCode;
use sqlx::{PgPool, Postgres, Transaction};
use testkit::{Installation, eventually};

use crate::running::{Running, problem, push, push_saying, stored_saying};

/// Keeps writers waiting until it is dropped.
async fn hold_up_writers(pool: &PgPool) -> Transaction<'static, Postgres> {
    let mut transaction = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE push_notifications IN EXCLUSIVE MODE")
        .execute(&mut *transaction)
        .await
        .unwrap();
    transaction
}

async fn until_a_writer_waits(pool: &PgPool) {
    eventually("a writer to wait for the table", async || {
        let waiting: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'push_notifications'::regclass",
        )
        .fetch_one(pool)
        .await
        .unwrap();
        (waiting > 0).then_some(())
    })
    .await;
}

#[testkit::test]
async fn a_push_that_the_database_refuses_does_not_take_its_neighbours_with_it(mut it: Installation) {
    it.config.ingest.writers = 1;
    sqlx::query("ALTER TABLE push_notifications ADD CHECK (message <> 'poison')")
        .execute(&it.pool)
        .await
        .unwrap();
    let service = Running::ready(&it).await;
    // Everything but the first arrives while the writer is busy and so becomes one batch.
    let held = hold_up_writers(&it.pool).await;
    let requests = (0..20).map(|number| {
        let body = push_saying(if number == 10 { "poison" } else { "harmless" });
        service.post(&body).send()
    });
    let release = async {
        until_a_writer_waits(&it.pool).await;
        held.rollback().await.unwrap();
    };
    let (answers, ()) = futures::join!(futures::future::join_all(requests), release);
    for (number, answer) in answers.into_iter().enumerate() {
        let answer = answer.unwrap();
        if number == 10 {
            let problem = problem(answer, 500, "internal").await;
            assert!(!problem.to_string().contains("check"), "{problem}");
        } else {
            assert_eq!(answer.status(), StatusCode::ACCEPTED);
        }
    }
    assert_eq!(stored_saying(&it.pool, "harmless").await, 19);
    assert_eq!(stored_saying(&it.pool, "poison").await, 0);
}

#[testkit::test]
async fn a_push_whose_caller_was_told_that_it_is_late_is_not_written_afterwards(mut it: Installation) {
    it.config.ingest.writers = 1;
    it.config.ingest.request_timeout = Duration::from_secs(4);
    let service = Running::ready(&it).await;
    let held = hold_up_writers(&it.pool).await;
    let second = async {
        until_a_writer_waits(&it.pool).await;
        service.post(&push_saying("second")).send().await
    };
    let (first, second) = futures::join!(service.post(&push_saying("first")).send(), second);
    for answer in [first, second] {
        problem(answer.unwrap(), 503, "unavailable").await;
    }
    held.rollback().await.unwrap();
    // The channel is first in, first out: this one's answer means that the second has been dealt with.
    eventually("the writer to go on", async || {
        let answer = service.post(&push_saying("third")).send().await.unwrap();
        (answer.status() == StatusCode::ACCEPTED).then_some(())
    })
    .await;
    assert_eq!(stored_saying(&it.pool, "second").await, 0);
}

#[testkit::test]
async fn more_pushes_than_can_wait_are_refused_at_once(mut it: Installation) {
    it.config.ingest.writers = 1;
    it.config.ingest.batch_rows = 1;
    let service = Running::ready(&it).await;
    let held = hold_up_writers(&it.pool).await;
    let mut requests = tokio::task::JoinSet::new();
    requests.spawn(service.post(&push()).send());
    until_a_writer_waits(&it.pool).await;
    for _ in 0..7 {
        requests.spawn(service.post(&push()).send());
    }
    // One is being written and two wait; the others are answered although nothing moves.
    for _ in 0..5 {
        let answer = requests.join_next().await.unwrap().unwrap().unwrap();
        assert_eq!(answer.headers()["retry-after"], "1");
        problem(answer, 503, "unavailable").await;
    }
    held.rollback().await.unwrap();
    for answer in requests.join_all().await {
        assert_eq!(answer.unwrap().status(), StatusCode::ACCEPTED);
    }
}
