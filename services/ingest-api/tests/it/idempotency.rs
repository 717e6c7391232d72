//! The same request twice.

use domain::key::Role;
use sqlx::PgPool;
use testkit::with_installation;

use crate::running::{Running, location, make_key, problem, push, push_saying, stored};

const HEADER: &str = "idempotency-key";

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_repeated_request_gets_the_first_answer_and_stores_nothing(pool: PgPool) {
    with_installation(pool, async |installation| {
        let service = Running::ready(&installation).await;
        let first = service.post(&push()).header(HEADER, "a").send().await.unwrap();
        assert!(!first.headers().contains_key("idempotent-replayed"));
        let again = service.post(&push()).header(HEADER, "a").send().await.unwrap();
        assert_eq!(again.headers()["idempotent-replayed"], "true");
        assert_eq!(location(&first), location(&again));
        let other = service.post(&push()).header(HEADER, "b").send().await.unwrap();
        assert_ne!(location(&first), location(&other));
        assert_eq!(stored(&installation.pool).await, 2);
        service.stop().await;
    })
    .await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_key_that_comes_with_another_body_is_refused(pool: PgPool) {
    with_installation(pool, async |installation| {
        let service = Running::ready(&installation).await;
        location(&service.post(&push()).header(HEADER, "a").send().await.unwrap());
        let other = service.post(&push_saying("something else")).header(HEADER, "a");
        problem(other.send().await.unwrap(), 422, "idempotency-key-reused").await;
        assert_eq!(stored(&installation.pool).await, 1);
        service.stop().await;
    })
    .await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn callers_cannot_meet_each_others_keys(pool: PgPool) {
    with_installation(pool, async |installation| {
        let service = Running::ready(&installation).await;
        let (_, key) = make_key(&installation.store, &[Role::Ingest]).await;
        let one = service.post(&push()).header(HEADER, "a").send().await.unwrap();
        let request = service.request("POST", "/push").bearer_auth(&key).json(&push());
        let other = request.header(HEADER, "a").send().await.unwrap();
        assert_ne!(location(&one), location(&other));
        service.stop().await;
    })
    .await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn of_many_simultaneous_requests_one_is_stored_and_all_are_answered_alike(pool: PgPool) {
    with_installation(pool, async |installation| {
        let service = Running::ready(&installation).await;
        let requests = (0..32).map(|_| service.post(&push()).header(HEADER, "a").send());
        let answers = futures::future::join_all(requests).await;
        let mut ids: Vec<_> = answers
            .iter()
            .map(|answer| location(answer.as_ref().unwrap()))
            .collect();
        ids.dedup();
        assert_eq!((ids.len(), stored(&installation.pool).await), (1, 1));
        let first = answers.iter().filter(|answer| {
            !answer
                .as_ref()
                .unwrap()
                .headers()
                .contains_key("idempotent-replayed")
        });
        assert_eq!(first.count(), 1);
        service.stop().await;
    })
    .await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_key_is_1_to_255_visible_characters(pool: PgPool) {
    with_installation(pool, async |installation| {
        let service = Running::ready(&installation).await;
        for key in [String::new(), "a b".to_owned(), "ä".to_owned(), "x".repeat(256)] {
            let answer = service
                .post(&push())
                .header(HEADER, key.as_bytes())
                .send()
                .await
                .unwrap();
            problem(answer, 400, "invalid-header").await;
        }
        let twice = service.post(&push()).header(HEADER, "a").header(HEADER, "b");
        problem(twice.send().await.unwrap(), 400, "invalid-header").await;
        location(
            &service
                .post(&push())
                .header(HEADER, "x".repeat(255))
                .send()
                .await
                .unwrap(),
        );
        assert_eq!(stored(&installation.pool).await, 1);
        service.stop().await;
    })
    .await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn the_first_answer_stands_when_the_request_would_be_refused_by_now(pool: PgPool) {
    with_installation(pool, async |mut installation| {
        let service = Running::ready(&installation).await;
        let first = service.post(&push()).header(HEADER, "a").send().await.unwrap();
        let key = service.key.clone();
        service.stop().await;
        installation.config.push.message_max_bytes = 1;
        let service = Running::ready(&installation).await;
        let request = service.request("POST", "/push").bearer_auth(&key).json(&push());
        let again = request.header(HEADER, "a").send().await.unwrap();
        assert_eq!(location(&first), location(&again));
        problem(
            service.post(&push()).header(HEADER, "b").send().await.unwrap(),
            422,
            "validation",
        )
        .await;
        service.stop().await;
    })
    .await;
}
