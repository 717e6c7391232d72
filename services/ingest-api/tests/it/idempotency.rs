//! The same request twice.

use domain::key::Role;
use testkit::Installation;

use crate::running::{Running, location, make_key, problem, push, push_saying, stored};

const HEADER: &str = "idempotency-key";

#[testkit::test]
async fn a_repeated_request_gets_the_first_answer_and_stores_nothing(it: Installation) {
    let service = Running::ready(&it).await;
    let first = service.post(&push()).header(HEADER, "a").send().await.unwrap();
    assert!(!first.headers().contains_key("idempotent-replayed"));
    let again = service.post(&push()).header(HEADER, "a").send().await.unwrap();
    assert_eq!(again.headers()["idempotent-replayed"], "true");
    assert_eq!(location(&first), location(&again));
    let other = service.post(&push()).header(HEADER, "b").send().await.unwrap();
    assert_ne!(location(&first), location(&other));
    assert_eq!(stored(&it.pool).await, 2);
}

#[testkit::test]
async fn a_key_that_comes_with_another_body_is_refused(it: Installation) {
    let service = Running::ready(&it).await;
    location(&service.post(&push()).header(HEADER, "a").send().await.unwrap());
    let other = service.post(&push_saying("something else")).header(HEADER, "a");
    problem(other.send().await.unwrap(), 422, "idempotency-key-reused").await;
    assert_eq!(stored(&it.pool).await, 1);
}

#[testkit::test]
async fn callers_cannot_meet_each_others_keys(it: Installation) {
    let service = Running::ready(&it).await;
    let (_, key) = make_key(&it.store, &[Role::Ingest]).await;
    let one = service.post(&push()).header(HEADER, "a").send().await.unwrap();
    let request = service.request("POST", "/push").bearer_auth(&key).json(&push());
    let other = request.header(HEADER, "a").send().await.unwrap();
    assert_ne!(location(&one), location(&other));
}

#[testkit::test]
async fn of_many_simultaneous_requests_one_is_stored_and_all_are_answered_alike(it: Installation) {
    let service = Running::ready(&it).await;
    let requests = (0..32).map(|_| service.post(&push()).header(HEADER, "a").send());
    let answers = futures::future::join_all(requests).await;
    let mut ids: Vec<_> = answers
        .iter()
        .map(|answer| location(answer.as_ref().unwrap()))
        .collect();
    ids.dedup();
    assert_eq!((ids.len(), stored(&it.pool).await), (1, 1));
    let first = answers.iter().filter(|answer| {
        !answer
            .as_ref()
            .unwrap()
            .headers()
            .contains_key("idempotent-replayed")
    });
    assert_eq!(first.count(), 1);
}

#[testkit::test]
async fn a_key_is_1_to_255_visible_characters(it: Installation) {
    let service = Running::ready(&it).await;
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
    assert_eq!(stored(&it.pool).await, 1);
}

#[testkit::test]
async fn the_first_answer_stands_when_the_request_would_be_refused_by_now(mut it: Installation) {
    let service = Running::ready(&it).await;
    let first = service.post(&push()).header(HEADER, "a").send().await.unwrap();
    let key = service.key.clone();
    service.stop().await;
    it.config.push.message_max_bytes = 1;
    let service = Running::ready(&it).await;
    let request = service.request("POST", "/push").bearer_auth(&key).json(&push());
    let again = request.header(HEADER, "a").send().await.unwrap();
    assert_eq!(location(&first), location(&again));
    problem(
        service.post(&push()).header(HEADER, "b").send().await.unwrap(),
        422,
        "validation",
    )
    .await;
}
