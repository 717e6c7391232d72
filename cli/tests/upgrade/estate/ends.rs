//! The reckoning: what became of what was left behind.

use std::collections::BTreeSet;

use domain::notification::NotificationState;
use simulators::receiver::Verdict;
use simulators::smtp::Running;
use testkit::{Installation, eventually};
use uuid::Uuid;

use super::left::{EVERYTHING, HELD, Left, OFF};
use crate::rig::Subscribers;

const UNFINISHED: &str = "
    SELECT (SELECT count(*) FROM push_notifications WHERE finished_at IS NULL)
         + (SELECT count(*) FROM notifications WHERE finished_at IS NULL)
         + (SELECT count(*) FROM dead_letter_jobs WHERE finished_at IS NULL)
         + (SELECT count(*) FROM replays WHERE finished_at IS NULL)
         + (SELECT count(*) FROM dead_letters WHERE state = 'OPEN')";

/// Waits until everything has ended, and checks that it ended as it should.
pub(super) async fn of(it: &Installation, left: &Left, subscribers: &Subscribers) {
    eventually("everything to end", async || {
        (count(it, UNFINISHED).await == 0).then_some(())
    })
    .await;
    pushes(it, left).await;
    notifications(it, left, subscribers).await;
    dead_letters_and_jobs(it, left).await;
}

async fn pushes(it: &Installation, left: &Left) {
    let expected: BTreeSet<(Uuid, String)> = left
        .to_send
        .iter()
        .chain([&left.sent_before])
        .map(|id| (*id, "SENT".to_owned()))
        .chain([(left.discarded, "GIVEN_UP".to_owned())])
        .collect();
    assert_eq!(
        statuses(it, "SELECT id, status FROM push_notifications").await,
        expected
    );
    let running = "SELECT count(*) FROM send_attempts WHERE status = 'IN_PROCESS'";
    assert_eq!(count(it, running).await, 0, "an attempt has no end");
    let users: BTreeSet<String> = it
        .sim
        .received(0, usize::MAX)
        .items
        .into_iter()
        .map(|one| one.user)
        .collect();
    let sent = "SELECT push_key FROM push_notifications WHERE status = 'SENT' AND id <> $1";
    let expected: Vec<String> = sqlx::query_scalar(sent)
        .bind(left.sent_before)
        .fetch_all(&it.pool)
        .await
        .expect("the rows can be read");
    assert_eq!(users, expected.into_iter().collect(), "who got a push");
}

async fn notifications(it: &Installation, left: &Left, subscribers: &Subscribers) {
    let all = statuses(it, "SELECT id, status FROM notifications").await;
    for (id, state) in &left.ended {
        assert!(
            all.contains(&(*id, state.status().as_str().to_owned())),
            "{id} has ended as {state:?}"
        );
    }
    for id in &left.to_deliver {
        assert!(all.contains(&(*id, "SENT".to_owned())), "{id} was not sent");
    }
    let unsent = all.iter().filter(|(_, status)| status != "SENT").count();
    let before = left
        .ended
        .iter()
        .filter(|(_, state)| *state != NotificationState::Sent)
        .count();
    assert_eq!(unsent, before, "those that had failed before: {all:?}");
    let running = "SELECT count(*) FROM delivery_attempts WHERE status = 'IN_PROCESS'";
    assert_eq!(count(it, running).await, 0, "an attempt has no end");

    let arrivals = subscribers.receiver.received(0, usize::MAX).items;
    let forged = arrivals.iter().find(|one| one.verdict != Verdict::Verified);
    assert!(
        forged.is_none(),
        "sealed by the previous version, opened by this one: {forged:?}"
    );
    let paths: Vec<String> = subscribers.all.iter().map(|one| one.path()).collect();
    let arrived = |path: &String| {
        let own = arrivals.iter().filter(|one| one.path == *path);
        own.map(|one| one.id.clone()).collect::<BTreeSet<String>>()
    };
    let events = "SELECT count(*) FROM events WHERE reseller_id = 'acme'";
    let events = usize::try_from(count(it, events).await).expect("a count");
    assert_eq!(arrived(&paths[EVERYTHING]).len(), events - left.ended.len());
    assert_eq!(
        arrived(&paths[HELD]).len(),
        events,
        "the replay has found each event"
    );
    assert_eq!(arrived(&paths[OFF]).len(), 0);
}

async fn dead_letters_and_jobs(it: &Installation, left: &Left) {
    let jobs: Vec<(Uuid, String, i64)> =
        sqlx::query_as("SELECT id, status, done FROM dead_letter_jobs ORDER BY id")
            .fetch_all(&it.pool)
            .await
            .expect("the jobs can be read");
    let expected: Vec<_> = left
        .jobs
        .iter()
        .map(|id| (id.parse().expect("a UUID"), "COMPLETED".to_owned(), 2))
        .collect();
    assert_eq!(jobs, expected);
    let replay: String = sqlx::query_scalar("SELECT status FROM replays WHERE id = $1::uuid")
        .bind(left.replay.parse::<Uuid>().expect("a UUID"))
        .fetch_one(&it.pool)
        .await
        .expect("the replay can be read");
    assert_eq!(replay, "COMPLETED");
    let by_state = "SELECT count(*) FILTER (WHERE state = 'REPLAYED') * 100 + count(*) FROM dead_letters";
    assert_eq!(
        count(it, by_state).await,
        306,
        "three of six dead letters were replayed"
    );
}

/// The mail that waited while there was no mail server.
pub(super) async fn mails_have_gone(it: &Installation, mails: &Running) {
    eventually("mails to go", async || {
        (count(it, "SELECT count(*) FROM emails WHERE status <> 'SENT'").await == 0).then_some(())
    })
    .await;
    assert!(mails.report().kept > 0, "none has arrived");
}

async fn statuses(it: &Installation, query: &'static str) -> BTreeSet<(Uuid, String)> {
    let rows: Vec<(Uuid, String)> = sqlx::query_as(query)
        .fetch_all(&it.pool)
        .await
        .expect("the rows can be read");
    rows.into_iter().collect()
}

async fn count(it: &Installation, query: &'static str) -> i64 {
    sqlx::query_scalar(query)
        .fetch_one(&it.pool)
        .await
        .expect("the rows can be counted")
}
