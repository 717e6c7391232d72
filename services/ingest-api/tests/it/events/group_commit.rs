//! Both lanes at once, and batches among single events.

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::{PgPool, Postgres, Transaction};
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};

use crate::events::{count, event, event_with};
use crate::running::{Running, problem, push, stored};

async fn hold_up(pool: &PgPool, table: &str) -> Transaction<'static, Postgres> {
    let mut transaction = pool.begin().await.unwrap();
    let lock = format!("LOCK TABLE {table} IN EXCLUSIVE MODE");
    sqlx::query(sqlx::AssertSqlSafe(lock))
        .execute(&mut *transaction)
        .await
        .unwrap();
    transaction
}

async fn until_a_writer_waits(pool: &PgPool, table: &str) {
    eventually("a writer to wait for the table", async || {
        let waiting: i64 =
            sqlx::query_scalar("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = $1::regclass")
                .bind(table)
                .fetch_one(pool)
                .await
                .unwrap();
        (waiting > 0).then_some(())
    })
    .await;
}

fn of_reseller(reseller: &str) -> Value {
    event_with(json!({"resellerId": reseller}))
}

async fn stored_of(pool: &PgPool, reseller: &str) -> i64 {
    sqlx::query_scalar("SELECT count(*) FROM events WHERE reseller_id = $1")
        .bind(reseller)
        .fetch_one(pool)
        .await
        .unwrap()
}

#[testkit::test]
async fn a_lane_that_is_held_up_is_not_felt_in_the_other(it: Installation) {
    let service = Running::ready(&it).await;
    let held = hold_up(&it.pool, "events").await;
    let waiting = service.post_event(&event()).send();
    let meanwhile = async {
        until_a_writer_waits(&it.pool, "events").await;
        let pushes = (0..50).map(|_| service.post(&push()).send());
        for answer in futures::future::join_all(pushes).await {
            assert_eq!(answer.unwrap().status(), StatusCode::ACCEPTED);
        }
        held.rollback().await.unwrap();
    };
    let (answer, ()) = futures::join!(waiting, meanwhile);
    assert_eq!(answer.unwrap().status(), StatusCode::ACCEPTED);
    assert_eq!(stored(&it.pool).await, 50);
    assert_eq!(count(&it.pool, "events").await, 1);
}

#[testkit::test]
async fn an_event_that_the_database_refuses_takes_neither_neighbours_nor_batches_with_it(
    mut it: Installation,
) {
    it.config.ingest.writers = 1;
    sqlx::query("ALTER TABLE events ADD CHECK (reseller_id <> 'poison')")
        .execute(&it.pool)
        .await
        .unwrap();
    let service = Running::ready(&it).await;
    // Everything but the first arrives while the writer is busy and so becomes one batch.
    let held = hold_up(&it.pool, "events").await;
    let singles = (0..10).map(|number| {
        let body = of_reseller(if number == 5 { "poison" } else { "single" });
        service.post_event(&body).send()
    });
    let good = service
        .post_batch(&[of_reseller("good"), of_reseller("good")])
        .send();
    let bad = service
        .post_batch(&[of_reseller("bad"), of_reseller("poison")])
        .send();
    let release = async {
        until_a_writer_waits(&it.pool, "events").await;
        held.rollback().await.unwrap();
    };
    let (singles, good, bad, ()) = futures::join!(futures::future::join_all(singles), good, bad, release);
    for (number, answer) in singles.into_iter().enumerate() {
        let answer = answer.unwrap();
        if number == 5 {
            problem(answer, 500, "internal").await;
        } else {
            assert_eq!(answer.status(), StatusCode::ACCEPTED);
        }
    }
    assert_eq!(good.unwrap().status(), StatusCode::ACCEPTED);
    problem(bad.unwrap(), 500, "internal").await;
    for (reseller, stored) in [("single", 9), ("good", 2), ("bad", 0), ("poison", 0)] {
        assert_eq!(stored_of(&it.pool, reseller).await, stored, "{reseller}");
    }
}

#[testkit::test]
async fn an_event_whose_caller_was_told_that_it_is_late_is_not_written_afterwards(mut it: Installation) {
    it.config.ingest.writers = 1;
    it.config.ingest.request_timeout = Duration::from_secs(4);
    let service = Running::ready(&it).await;
    // Known before the clock of the two requests starts.
    service.accepted_event(&of_reseller("before")).await;
    let held = hold_up(&it.pool, "events").await;
    let second = async {
        until_a_writer_waits(&it.pool, "events").await;
        service.post_event(&of_reseller("second")).send().await
    };
    let (first, second) = futures::join!(service.post_event(&of_reseller("first")).send(), second);
    for answer in [first, second] {
        problem(answer.unwrap(), 503, "unavailable").await;
    }
    held.rollback().await.unwrap();
    eventually("the writer to go on", async || {
        let answer = service.post_event(&of_reseller("third")).send().await.unwrap();
        (answer.status() == StatusCode::ACCEPTED).then_some(())
    })
    .await;
    assert_eq!(stored_of(&it.pool, "second").await, 0);
}

#[testkit::test]
async fn what_was_accepted_before_the_stop_is_published_before_the_end(it: Installation) {
    let service = Running::ready(&it).await;
    SubscriptionRow::active().make(&it.pool).await;
    for _ in 0..20 {
        service.accepted_event(&event()).await;
    }
    service.stop().await;
    let broker = it.broker();
    eventually("20 messages in the queue", async || {
        (broker.depth(broker::Queue::ResellerReady).await.ok()?.messages == 20).then_some(())
    })
    .await;
    broker.close().await;
}
