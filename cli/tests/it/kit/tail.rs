//! `tail`: every change once, whatever happens between two looks.

use std::collections::{HashMap, HashSet};

use testkit::{Installation, eventually};

use super::json_line;
use crate::reseller::Lane;

const EVENTS: usize = 12;

/// Waits until the portal knows that the first notification has arrived: the endpoint knows it earlier.
async fn until_sent(lane: &Lane, id: &str) {
    eventually("the first notification to be sent", async || {
        let listed = lane
            .reseller(&format!("notifications list {id} --status SENT --json"))
            .run();
        listed.stdout.contains("contact.deleted").then_some(())
    })
    .await;
}

#[testkit::test]
async fn every_notification_is_followed_to_its_end_and_nothing_is_said_twice(it: Installation) {
    let lane = Lane::start(&it).await;
    let (id, _) = lane.subscribe().await;
    lane.send("before it begins").await;
    until_sent(&lane, &id).await;
    let mut tail = lane.reseller("tail --json --interval-millis 100").start();
    tail.until_said("following 1 subscription");
    // Each is refused at first, so that there is something between its beginning and its end.
    let rule = simulators::receiver::Rule::answering(503).first(1);
    lane.endpoint.script(vec![rule]).expect("a rule");
    for number in 0..EVENTS {
        lane.send(&format!("event {number}")).await;
    }
    let (mut said, mut ends, mut events) = (HashSet::new(), HashMap::new(), HashSet::new());
    while ends.len() < EVENTS {
        let line = json_line(&mut tail);
        assert_eq!(line["subscriptionId"], id);
        let what = (
            line["id"].to_string(),
            line["status"].to_string(),
            line["attempts"].to_string(),
        );
        if line["status"] == "SENT" {
            *ends.entry(what.0.clone()).or_insert(0) += 1;
        }
        events.insert(what.0.clone());
        assert!(said.insert(what), "said twice: {line}");
    }
    assert!(ends.values().all(|ends| *ends == 1), "{ends:?}");
    assert_eq!(
        events.len(),
        EVENTS,
        "the one before it began was followed as well"
    );
    let (status, _) = tail.stop().await;
    assert_eq!(status.code(), Some(0));
}

#[testkit::test]
async fn it_begins_as_far_back_as_it_is_told_and_ends_after_so_many_lines_or_without_a_reader(
    it: Installation,
) {
    let lane = Lane::start(&it).await;
    let (id, _) = lane.subscribe().await;
    lane.send("before it begins").await;
    until_sent(&lane, &id).await;
    let mut tail = lane
        .reseller(&format!("tail {id} --newer-than 1h --count 1"))
        .start();
    let line = tail.line();
    assert!(line.contains("contact.deleted"), "{line}");
    assert_eq!(tail.end().await, Some(0));

    let mut tail = lane.reseller(&format!("tail {id} --newer-than 1h")).start();
    tail.line();
    tail.read_no_more();
    lane.send("nothing reads this any more").await;
    assert_eq!(tail.end().await, Some(0));
}
