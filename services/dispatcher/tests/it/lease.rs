//! A leader whose lease is gone: it starts nothing, and nothing that it had claimed is lost.

use std::time::Duration;

use domain::push::PushStatus;
use leadership::{Candidate, Settings};
use lifecycle::Shutdown;
use sqlx::PgPool;
use store::Store;
use testkit::{Cable, Installation, eventually, with_installation};

use crate::rig::{
    all_sent, arrivals, assert_each_sent_once, claimed, enqueue, enqueue_for, epoch_of_leader,
    have_been_claimed, leader, start, view,
};

const PUSHES: usize = 40;
const TTL: Duration = Duration::from_secs(1);

/// Sending all pushes takes four times the lease's time-to-live.
fn send_slowly(it: &mut Installation) {
    it.config.swrve.delay = TTL * 4 / PUSHES as u32;
    it.config.push.leader.ttl = TTL;
    it.config.push.leader.poll = Duration::from_millis(100);
}

/// Makes somebody else the holder, who never renews.
async fn usurp(pool: &PgPool) {
    sqlx::query(
        "UPDATE leases SET holder = gen_random_uuid(), epoch = epoch + 1, renewals = renewals + 1
         WHERE name = 'push'",
    )
    .execute(pool)
    .await
    .unwrap();
}

async fn nothing_is_claimed(pool: &PgPool) {
    eventually("all claims to end", async || {
        (claimed(pool).await == 0).then_some(())
    })
    .await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn no_send_starts_while_the_lease_cannot_be_renewed(pool: PgPool) {
    with_installation(pool, async |mut it| {
        send_slowly(&mut it);
        let broker = it.broker();
        let ids = enqueue(&it, &broker, PUSHES).await;
        let (cable, url) = Cable::for_url(it.config.database.url.expose()).await;
        let mut config = it.config.clone();
        config.database.url = config::Secret::new(url);
        let dispatcher = start(&config);
        // A claim that is under way when the connection breaks would be nobody's.
        have_been_claimed(&it.pool, PUSHES).await;
        arrivals(&it, 3).await;
        cable.cut();
        let rival = Candidate::new(
            Store::from_pool(it.pool.clone()),
            Settings {
                name: "push".to_owned(),
                ttl: TTL,
                poll: Duration::from_millis(100),
            },
        );
        let term = rival.next_term(&Shutdown::new()).await.unwrap();
        cable.mend();
        nothing_is_claimed(&it.pool).await;
        let sent = it.sim.report().received;
        assert!(
            sent < PUSHES as u64,
            "the sends should have stopped, not finished"
        );
        for id in &ids {
            let push = view(&it, *id).await;
            let untouched =
                push.status == PushStatus::InMemory && push.attempts == 0 && push.history.is_empty();
            assert!(push.status == PushStatus::Sent || untouched, "{push:?}");
        }
        assert_eq!(it.sim.report().received, sent);
        term.resign().await;
        all_sent(&it, &ids).await;
        assert_each_sent_once(&it, PUSHES);
        dispatcher.stop().await;
    })
    .await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_leader_that_finds_another_in_its_place_waits_like_anybody_else(pool: PgPool) {
    with_installation(pool, async |mut it| {
        send_slowly(&mut it);
        let broker = it.broker();
        let ids = enqueue(&it, &broker, PUSHES).await;
        let dispatcher = start(&it.config);
        arrivals(&it, 3).await;
        usurp(&it.pool).await;
        all_sent(&it, &ids).await;
        assert_each_sent_once(&it, PUSHES);
        assert_eq!(epoch_of_leader(&it.pool).await, Some(3));
        let times = it.sim.received(0, PUSHES).items;
        let longest = times
            .windows(2)
            .map(|pair| pair[1].arrival_micros - pair[0].arrival_micros)
            .fold(0.0, f64::max);
        // It stopped at once, then watched for one time-to-live. The rest is the time a request takes to arrive.
        assert!(
            longest >= 0.75 * TTL.as_micros() as f64,
            "the longest pause was {longest} us"
        );
        dispatcher.stop().await;
    })
    .await;
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn a_claim_under_an_old_epoch_takes_nothing_and_loses_no_message(pool: PgPool) {
    with_installation(pool, async |mut it| {
        // The leader learns that it is none only after a second.
        it.config.push.leader.ttl = 2 * TTL;
        it.config.push.leader.poll = TTL;
        let (dispatcher, broker) = (start(&it.config), it.broker());
        leader(&it.pool).await;
        usurp(&it.pool).await;
        let id = enqueue_for(&it, &broker, "device-1").await;
        let push = it.settled(id, PushStatus::Sent).await;
        assert_eq!(
            epoch_of_leader(&it.pool).await,
            Some(3),
            "it was sent in a term of somebody else's"
        );
        assert_eq!((push.attempts, it.sim.report().received), (1, 1));
        dispatcher.stop().await;
    })
    .await;
}
