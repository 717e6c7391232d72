//! Several nodes, and nodes that stop.

use std::time::Duration;

use chrono::TimeDelta;
use sqlx::PgPool;
use store::webpush::Stored;
use testkit::eventually;

use crate::client::Client;
use crate::rig::{Node, Rig};

/// The first node notes the client, with a ping at the latest: the client answers those while it reads. A message may come before
/// that, where storage was still being read when it was stored.
async fn noted(rig: &Rig, client: &mut Client) {
    let uaid = client.uaid;
    let noted = eventually("the node in the row of the client", async || {
        let row = rig.store.webpush_client(uaid).await.unwrap()?;
        (row.node? == rig.node.name).then_some(())
    });
    tokio::select! {
        () = noted => {}
        heard = client.hear() => panic!("{heard}"),
    }
}

#[testkit::test]
async fn a_client_that_connects_elsewhere_is_found_there(rig: &Rig) {
    let other = rig.another_node().await;
    let client = rig.node.client().await;
    rig.put(rig.message(&client, "1")).await;
    rig.clock.advance(TimeDelta::seconds(1));
    let mut there = other.again(&client).await;
    assert_eq!(there.take().await, "1");
    assert_eq!(rig.node_of(&there).await.as_ref(), Some(&other.name));
    let push = other.push(&there, "2", 60);
    let (status, _) = tokio::join!(push, there.take());
    assert_eq!(status, 200);
}

/// The node that has the client decides, however its clock stands.
#[testkit::test]
async fn a_node_whose_clock_is_behind_notes_its_client_all_the_same(rig: &Rig) {
    let client = rig.node.client().await;
    rig.clock.advance(TimeDelta::seconds(-30));
    let behind = rig.another_node().await;
    let mut there = behind.again(&client).await;
    assert_eq!(rig.node_of(&there).await.as_ref(), Some(&behind.name));
    assert!(matches!(
        rig.put(rig.message(&there, "1")).await,
        Stored::Yes { node: Some(node), .. } if node == behind.name
    ));
    behind.notify(&there).await;
    assert_eq!(there.take().await, "1");
}

/// The reference reads storage before the client is entered in the node, and loses the wake-up in between.
#[testkit::test]
async fn what_is_stored_at_any_moment_of_connecting_comes(rig: &Rig) {
    let mut client = rig.node.client().await;
    for round in 0..20 {
        let version = round.to_string();
        let connecting = rig.node.again(&client);
        let storing = async {
            tokio::time::sleep(Duration::from_micros(300 * round)).await;
            let stored = rig.put(rig.message(&client, &version)).await;
            assert!(matches!(stored, Stored::Yes { node: Some(_), .. }));
            rig.node.notify(&client).await;
        };
        let (mut again, ()) = tokio::join!(connecting, storing);
        assert_eq!(again.take().await, version);
        client = again;
        // The next round begins with an empty storage.
        eventually("an empty storage", async || {
            rig.waiting(&client).await.is_empty().then_some(())
        })
        .await;
    }
}

#[testkit::test]
async fn a_node_that_was_forgotten_is_noted_again(rig: &Rig) {
    let mut client = rig.node.client().await;
    let row = rig.store.webpush_client(client.uaid).await.unwrap().unwrap();
    let forgotten = rig
        .store
        .webpush_forget_node(client.uaid, &rig.node.name, row.connected_at);
    assert!(forgotten.await.unwrap());
    rig.put(rig.message(&client, "1")).await;
    rig.node.notify(&client).await;
    client.take().await;
    noted(rig, &mut client).await;
}

/// An endpoint node that had no answer in time forgets the node, and the word that something was stored may be lost as well.
#[testkit::test]
async fn a_client_whose_node_was_forgotten_gets_its_messages_with_the_next_ping(pool: PgPool) {
    let rig = Rig::with(pool, |config| {
        config.webpush.connection.ping_interval = Duration::from_millis(300);
    })
    .await;
    let mut client = rig.node.client().await;
    let row = rig.store.webpush_client(client.uaid).await.unwrap().unwrap();
    let forgotten = rig
        .store
        .webpush_forget_node(client.uaid, &rig.node.name, row.connected_at);
    assert!(forgotten.await.unwrap());
    rig.put(rig.message(&client, "1")).await;
    // Nothing is said to the node.
    assert_eq!(client.take().await, "1");
    noted(&rig, &mut client).await;

    // An earlier connection, which the client has given up, was noted late at another node, and found to have ended.
    let late = row.connected_at + TimeDelta::seconds(1);
    let elsewhere = "http://elsewhere";
    let connected = rig.store.webpush_connect(client.uaid, elsewhere, late);
    assert!(connected.await.unwrap().is_some());
    let forgotten = rig.store.webpush_forget_node(client.uaid, elsewhere, late);
    assert!(forgotten.await.unwrap());
    rig.put(rig.message(&client, "2")).await;
    assert_eq!(client.take().await, "2");
    noted(&rig, &mut client).await;
}

#[testkit::test]
async fn a_node_that_stops_sends_its_clients_away_and_senders_learn_it(rig: &Rig) {
    let node = Node::start(&rig.pool, &rig.clock, |config| {
        config.webpush.connection.drain = Duration::from_millis(200);
    })
    .await;
    let (mut first, mut second) = (node.client().await, node.client().await);
    let push = tokio::spawn(node.push_to(&first.uaid.to_string(), first.channel, "1", 60));
    first.notified().await;
    node.ask_to_stop();
    assert_eq!(first.closed().await, 1001);
    assert_eq!(push.await.unwrap(), 404, "the sender's node stores it");
    assert_eq!(second.closed().await, 1001);
    drop((first, second));
    node.stop().await;
}
