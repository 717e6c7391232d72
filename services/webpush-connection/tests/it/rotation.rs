//! The move of a client to another month.

use chrono::TimeDelta;
use domain::month::Month;
use store::webpush::Stored;
use testkit::eventually;

use crate::client::Client;
use crate::rig::Rig;

/// Lets the present month pass.
fn next_month(rig: &Rig) -> (Month, Month) {
    let before = Month::containing(rig.now());
    rig.clock.advance(TimeDelta::days(31));
    (before, Month::containing(rig.now()))
}

async fn month_of(rig: &Rig, client: &Client) -> Month {
    rig.store
        .webpush_client(client.uaid)
        .await
        .unwrap()
        .unwrap()
        .month
}

async fn moved_to(rig: &Rig, client: &Client, month: Month) {
    eventually("the move", async || {
        (month_of(rig, client).await == month).then_some(())
    })
    .await;
}

/// There may be no retry-worker, which makes months as well.
#[testkit::test]
async fn a_node_makes_the_months_that_it_needs_and_drops_old_ones(rig: &Rig) {
    let old = Month::containing(rig.now()).minus(6);
    rig.store.create_webpush_partitions(old, 1).await.unwrap();
    rig.clock.advance(TimeDelta::days(200));
    let present = Month::containing(rig.now());
    assert_eq!(rig.store.webpush_partitions_ahead(present).await.unwrap(), 0);
    let _node = rig.another_node().await;
    eventually("the months to come", async || {
        (rig.store.webpush_partitions_ahead(present).await.unwrap() > 0).then_some(())
    })
    .await;
    eventually("the end of the old month", async || {
        let exists: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
            .bind(format!("webpush_messages_{}", old.suffix()))
            .fetch_one(&rig.pool)
            .await
            .unwrap();
        (!exists).then_some(())
    })
    .await;
}

#[testkit::test]
async fn a_client_with_nothing_waiting_is_moved_with_its_channels_on_connecting(rig: &Rig) {
    let client = rig.node.client().await;
    let (before, after) = next_month(rig);
    assert_eq!(month_of(rig, &client).await, before);
    let mut client = rig.node.again(&client).await;
    moved_to(rig, &client, after).await;
    rig.put(rig.message(&client, "1")).await;
    assert_eq!(rig.waiting_in(&client, after).await, ["1"]);
    rig.node.notify(&client).await;
    assert_eq!(client.take().await, "1");
}

#[testkit::test]
async fn a_client_is_moved_only_after_it_has_acknowledged_everything(rig: &Rig) {
    let client = rig.node.client().await;
    let message = |version: &str| {
        let mut message = rig.message(&client, version);
        message.expires_at = rig.now() + TimeDelta::days(40);
        message
    };
    let waiting = [message("1"), message("2")];
    for message in waiting {
        rig.put(message).await;
    }
    let (before, after) = next_month(rig);
    let mut again = rig.node.again(&client).await;
    assert_eq!(again.take().await, "1");
    assert_eq!(again.notified().await, "2");
    again.ping().await;
    assert_eq!(month_of(rig, &again).await, before);
    // What is stored meanwhile goes where the client still is, and comes before the move.
    let mut meanwhile = rig.message(&again, "3");
    meanwhile.expires_at = rig.now() + TimeDelta::days(1);
    rig.put(meanwhile).await;
    assert_eq!(rig.waiting_in(&again, before).await, ["1", "2", "3"]);
    again.ack(&["2"]).await;
    assert_eq!(again.notified().await, "3");
    assert_eq!(month_of(rig, &again).await, before);
    again.ack(&["3"]).await;
    moved_to(rig, &again, after).await;
    assert!(rig.waiting_in(&again, before).await.is_empty());
}

#[testkit::test]
async fn a_client_that_leaves_while_it_drains_goes_on_where_it_was(rig: &Rig) {
    let client = rig.node.client().await;
    let mut message = rig.message(&client, "1");
    message.expires_at = rig.now() + TimeDelta::days(40);
    rig.put(message).await;
    let (before, after) = next_month(rig);
    let mut first = rig.node.again(&client).await;
    first.notified().await;
    drop(first);
    assert_eq!(month_of(rig, &client).await, before);
    let mut second = rig.node.again(&client).await;
    assert_eq!(second.take().await, "1");
    moved_to(rig, &second, after).await;
}

#[testkit::test]
async fn what_has_expired_in_the_earlier_month_does_not_hold_a_client(rig: &Rig) {
    let client = rig.node.client().await;
    rig.put(rig.message(&client, "1")).await;
    let (_, after) = next_month(rig);
    let client = rig.node.again(&client).await;
    moved_to(rig, &client, after).await;
}

#[testkit::test]
async fn a_node_whose_clock_is_behind_leaves_a_client_where_it_is(rig: &Rig) {
    let client = rig.node.client().await;
    let present = month_of(rig, &client).await;
    rig.clock.advance(TimeDelta::days(-31));
    let mut client = rig.node.again(&client).await;
    assert!(matches!(
        rig.put(rig.message(&client, "1")).await,
        Stored::Yes { node: Some(node), .. } if node == rig.node.name
    ));
    assert_eq!(rig.waiting_in(&client, present).await, ["1"]);
    rig.node.notify(&client).await;
    assert_eq!(client.take().await, "1");
    assert_eq!(month_of(rig, &client).await, present);
}
