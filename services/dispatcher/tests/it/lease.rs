//! A leader whose lease is gone: it starts nothing, and nothing that it had claimed is lost.

use std::time::{Duration, Instant};

use domain::push::PushStatus;
use leadership::{Candidate, Settings};
use lifecycle::Shutdown;
use sqlx::PgPool;
use store::Store;
use testkit::{FaultProxy, Installation, eventually};

use crate::rig::{
    all_sent, arrivals, assert_each_sent_once, claimed, enqueue, enqueue_for, epoch_of_leader,
    have_been_claimed, leader, start, view,
};

const PUSHES: usize = 40;
const TTL: Duration = Duration::from_secs(3);
/// Between two sends, which makes sending all pushes take four times the lease's time-to-live.
const DELAY: Duration = Duration::from_millis(300);

fn send_slowly(it: &mut Installation) {
    it.config.swrve.delay = DELAY;
    it.config.push.leader.ttl = TTL;
    it.config.push.leader.poll = Duration::from_millis(100);
}

/// Makes another process the holder, which never renews; returns the epoch.
async fn usurp(pool: &PgPool) -> i64 {
    sqlx::query_scalar(
        "UPDATE leases SET holder = gen_random_uuid(), epoch = epoch + 1, renewals = renewals + 1
         WHERE name = 'push' RETURNING epoch",
    )
    .fetch_one(pool)
    .await
    .unwrap()
}

/// Waits until a replica leads in a later epoch.
async fn leads_after(pool: &PgPool, epoch: i64) {
    eventually("the next leader", async || {
        epoch_of_leader(pool).await.filter(|later| *later > epoch)
    })
    .await;
}

async fn nothing_is_claimed(pool: &PgPool) {
    eventually("all claims to end", async || {
        (claimed(pool).await == 0).then_some(())
    })
    .await;
}

#[testkit::test]
async fn no_send_starts_while_the_lease_cannot_be_renewed(mut it: Installation) {
    send_slowly(&mut it);
    let broker = it.broker();
    let ids = enqueue(&it, &broker, PUSHES).await;
    let (proxy, url) = FaultProxy::for_url(it.config.database.url.expose()).await;
    let mut config = it.config.clone();
    config.database.url = config::Secret::new(url);
    let dispatcher = start(&config);
    // A claim that is under way when the connection breaks would be no process's.
    have_been_claimed(&it.pool, PUSHES).await;
    arrivals(&it, 3).await;
    proxy.cut();
    let rival = Candidate::new(
        Store::from_pool(it.pool.clone()),
        Settings {
            name: "push".to_owned(),
            ttl: TTL,
            poll: Duration::from_millis(100),
        },
    );
    let term = rival.next_term(&Shutdown::new()).await.unwrap();
    proxy.heal();
    nothing_is_claimed(&it.pool).await;
    let sent = it.sim.report().received;
    assert!(
        sent < PUSHES as u64,
        "the sends should have stopped, not finished"
    );
    for id in &ids {
        let push = view(&it, *id).await;
        let untouched = push.status == PushStatus::InMemory && push.attempts == 0 && push.history.is_empty();
        assert!(push.status == PushStatus::Sent || untouched, "{push:?}");
    }
    assert_eq!(it.sim.report().received, sent);
    term.resign().await;
    all_sent(&it, &ids).await;
    assert_each_sent_once(&it, PUSHES);
    dispatcher.stop().await;
}

#[testkit::test]
async fn a_leader_that_finds_another_in_its_place_waits_like_anybody_else(mut it: Installation) {
    send_slowly(&mut it);
    let broker = it.broker();
    let ids = enqueue(&it, &broker, PUSHES).await;
    let _dispatcher = start(&it.config);
    arrivals(&it, 3).await;
    let since = Instant::now();
    let usurped = usurp(&it.pool).await;
    leads_after(&it.pool, usurped).await;
    assert!(since.elapsed() >= TTL, "after {:?}", since.elapsed());
    all_sent(&it, &ids).await;
    assert_each_sent_once(&it, PUSHES);
}

#[testkit::test]
async fn a_claim_under_an_old_epoch_takes_nothing_and_loses_no_message(mut it: Installation) {
    // The leader learns late that it is none.
    it.config.push.leader.ttl = 2 * TTL;
    it.config.push.leader.poll = TTL;
    let (_dispatcher, broker) = (start(&it.config), it.broker());
    leader(&it.pool).await;
    let usurped = usurp(&it.pool).await;
    let id = enqueue_for(&it, &broker, "device-1").await;
    let push = it.settled(id, PushStatus::Sent).await;
    let epoch = epoch_of_leader(&it.pool).await;
    assert!(
        epoch > Some(usurped),
        "it was sent in the term of another leader: {epoch:?}"
    );
    assert_eq!((push.attempts, it.sim.report().received), (1, 1));
}
