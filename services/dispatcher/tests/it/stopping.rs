//! Shutdown in mid-flight.

use std::time::Duration;

use config::Secret;
use domain::push::PushStatus;
use simulators::swrve::Rule;
use testkit::{FaultProxy, Installation, Leftover, eventually, leaves};

use crate::rig::{
    arrivals, assert_each_sent_once, claimed, enqueue, enqueue_for, epoch_of_leader, leader, queue_holds,
    slow, start, view,
};

const PUSHES: usize = 20;

#[testkit::test]
async fn what_was_started_is_finished_and_what_was_claimed_is_handed_back(mut it: Installation) {
    it.config.swrve.delay = Duration::from_millis(4);
    it.config.swrve.average_processing = Duration::from_millis(8);
    it.sim.script(vec![slow(4_000)]).unwrap();
    let broker = it.broker();
    let ids = enqueue(&it, &broker, PUSHES).await;
    let dispatcher = start(&it.config);
    arrivals(&it, 3).await;
    eventually("some to be claimed that are not started", async || {
        (claimed(&it.pool).await > 3).then_some(())
    })
    .await;
    dispatcher.stop().await;
    let mut left = 0;
    for id in ids {
        let push = view(&it, id).await;
        if push.status != PushStatus::Sent {
            left += 1;
            assert_eq!((push.status, push.claimed), (PushStatus::InMemory, false));
            assert_eq!((push.attempts, push.history.len()), (0, 0), "{push:?}");
        }
    }
    assert!(left > 0);
    queue_holds(&broker, left).await;
    assert_each_sent_once(&it, PUSHES - left as usize);
}

#[testkit::test]
async fn a_successor_does_not_wait_for_answers_that_are_still_out(mut it: Installation) {
    it.config.swrve.average_processing = it.config.swrve.delay;
    it.sim.script(vec![slow(10_000)]).unwrap();
    let broker = it.broker();
    let ids = enqueue(&it, &broker, 4).await;
    let dispatcher = start(&it.config);
    // One in the pool and the reader's own: it reads nothing more.
    arrivals(&it, 2).await;
    dispatcher.ask_to_stop();
    eventually("the leader to resign", async || {
        epoch_of_leader(&it.pool).await.is_none().then_some(())
    })
    .await;
    assert_eq!(
        it.sim.report().accepted,
        0,
        "it should resign before the answers come"
    );
    dispatcher.stop().await;
    let mut sent = 0;
    for id in ids {
        sent += usize::from(view(&it, id).await.status == PushStatus::Sent);
    }
    assert_eq!(sent, 2, "the answers are recorded all the same");
    assert_each_sent_once(&it, 2);
}

#[testkit::test]
async fn an_idle_dispatcher_stops_and_resigns(it: Installation) {
    let dispatcher = start(&it.config);
    leader(&it.pool).await;
    dispatcher.stop().await;
    assert_eq!(epoch_of_leader(&it.pool).await, None);
}

#[testkit::test]
async fn a_send_that_outlasts_the_grace_period_is_left_to_its_lease(mut it: Installation) {
    it.config.shutdown.grace_period = Duration::from_millis(500);
    let silent = Rule {
        hang: true,
        ..Rule::default()
    };
    it.sim.script(vec![silent]).unwrap();
    let (dispatcher, broker) = (start(&it.config), it.broker());
    let id = enqueue_for(&it, &broker, "device-1").await;
    arrivals(&it, 1).await;
    dispatcher.stop_late().await;
    leaves(Leftover::Claims);
    let push = view(&it, id).await;
    assert!(push.claimed && push.leased_until.is_some());
    queue_holds(&broker, 1).await;
}

#[testkit::test]
async fn it_stops_in_time_while_both_servers_are_away(mut it: Installation) {
    let (database, database_url) = FaultProxy::for_url(it.config.database.url.expose()).await;
    let (amqp, amqp_url) = FaultProxy::for_url(it.config.amqp.url.expose()).await;
    it.config.database.url = Secret::new(database_url);
    it.config.amqp.url = Secret::new(amqp_url);
    let dispatcher = start(&it.config);
    eventually("it to be ready", async || dispatcher.is_ready().then_some(())).await;
    leader(&it.pool).await;
    database.cut();
    amqp.cut();
    dispatcher.stop().await;
}
