//! Who a client is: hello, channels, and a second connection.

use serde_json::json;
use testkit::eventually;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use crate::client::Client;
use crate::rig::Rig;

#[testkit::test]
async fn a_client_without_identifier_gets_one_and_its_row_at_its_first_channel(rig: &Rig) {
    let mut client = Client::connect(rig.node.address).await;
    let hello = client.hello().await;
    assert_eq!(hello["uaid"].as_str().unwrap().len(), 32);
    assert_eq!(hello["use_webpush"], true);
    assert_eq!(hello["broadcasts"], json!({}));
    assert_eq!(rig.store.webpush_client(client.uaid).await.unwrap(), None);
    client.register().await;
    let row = rig.store.webpush_client(client.uaid).await.unwrap().unwrap();
    assert_eq!(row.channels, [client.channel]);
    assert_eq!(row.node.as_ref(), Some(&rig.node.name));
    assert!(client.endpoint.contains("/wpush/v1/"), "{}", client.endpoint);
}

#[testkit::test]
async fn an_identifier_that_is_not_known_is_replaced(rig: &Rig) {
    let mut client = Client::connect(rig.node.address).await;
    let claimed = Uuid::new_v4();
    client.uaid = claimed;
    client.hello().await;
    assert_ne!(client.uaid, claimed);
    // And nothing is delivered under the one that was claimed.
    let status = rig
        .node
        .push_to(&claimed.to_string(), client.channel, "1", 60)
        .await;
    assert_eq!(status, 404);
}

#[testkit::test]
async fn a_client_that_comes_back_keeps_its_identifier(rig: &Rig) {
    let client = rig.node.client().await;
    let again = rig.node.again(&client).await;
    assert_eq!(again.uaid, client.uaid);
}

/// It is one and the same, however it is written.
#[testkit::test]
async fn an_identifier_is_known_in_upper_case_and_with_dashes_and_answered_without(rig: &Rig) {
    let mut client = rig.node.client().await;
    let uaid = client.uaid;
    for claimed in [uaid.to_string(), uaid.simple().to_string().to_uppercase()] {
        let mut again = Client::connect(rig.node.address).await;
        again.say(json!({"messageType": "hello", "uaid": claimed})).await;
        assert_eq!(again.hear().await["uaid"], json!(uaid.simple().to_string()));
        assert_eq!(client.closed().await, 1011, "the one before");
        (again.uaid, again.channel) = (client.uaid, client.channel);
        client = again;
    }
    for written in [uaid.to_string(), uaid.simple().to_string()] {
        let push = rig.node.push_to(&written, client.channel, &written, 60);
        let (status, version) = tokio::join!(push, client.take());
        assert_eq!((status.as_u16(), version), (200, written.clone()));
    }
}

#[testkit::test]
async fn the_older_connection_of_a_client_is_closed(rig: &Rig) {
    let mut older = rig.node.client().await;
    let mut newer = rig.node.again(&older).await;
    assert_eq!(older.closed().await, 1011);
    let push = rig.node.push(&newer, "1", 60);
    let (status, version) = tokio::join!(push, newer.take());
    assert_eq!((status.as_u16(), version.as_str()), (200, "1"));
}

#[testkit::test]
async fn a_claim_to_an_identifier_that_is_not_stored_closes_no_connection(rig: &Rig) {
    let mut first = Client::connect(rig.node.address).await;
    first.hello().await;
    let mut second = Client::connect(rig.node.address).await;
    second.uaid = first.uaid;
    second.hello().await;
    assert_ne!(second.uaid, first.uaid);
    first.register().await;
    let push = rig.node.push(&first, "1", 60);
    let (status, _) = tokio::join!(push, first.take());
    assert_eq!(status, 200);
}

#[testkit::test]
async fn a_channel_with_a_key_has_an_endpoint_of_its_own_kind_and_a_bad_key_has_none(rig: &Rig) {
    const KEY: &str =
        "BDEDtRtB2gU-gaHkUmkRIvIoBAOnbnIuXiAIbJrMRHVJDPIQtVjFQGq7y2fJ1GYq8gGjKRkP6a0IPFnpBRkeU6M";
    let mut client = rig.node.client().await;
    client
        .say(json!({"messageType": "register", "channelID": client.channel, "key": KEY}))
        .await;
    let registered = client.hear().await;
    assert_eq!(registered["status"], 200, "{registered}");
    assert!(
        registered["pushEndpoint"]
            .as_str()
            .unwrap()
            .contains("/wpush/v2/")
    );
    client
        .say(json!({"messageType": "register", "channelID": client.channel, "key": "nonsense"}))
        .await;
    assert_eq!(client.hear().await["status"], 400);
}

#[testkit::test]
async fn a_channel_is_taken_away_with_what_waits_in_it_and_an_unknown_one_is_too(rig: &Rig) {
    let mut client = rig.node.client().await;
    rig.put(rig.message(&client, "1")).await;
    for channel in [client.channel, Uuid::new_v4()] {
        client
            .say(json!({"messageType": "unregister", "channelID": channel, "code": 200}))
            .await;
        let unregistered = json!({"messageType": "unregister", "channelID": channel, "status": 200});
        assert_eq!(client.hear().await, unregistered);
    }
    assert!(rig.waiting(&client).await.is_empty());
}

/// It takes the whole limit for storage.
#[testkit::test]
async fn a_client_whose_row_cannot_be_had_in_time_is_not_taken_for_one_that_is_here(rig: &Rig) {
    let client = rig.node.client().await;
    let (uaid, channel) = (client.uaid, client.channel);
    drop(client);
    let push = async || rig.node.push_to(&uaid.to_string(), channel, "1", 60).await;
    eventually("the client's leave", async || (push().await == 404).then_some(())).await;
    let mut holding = rig.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM webpush_clients WHERE uaid = $1 FOR UPDATE")
        .bind(uaid)
        .execute(&mut *holding)
        .await
        .unwrap();
    let mut again = Client::connect(rig.node.address).await;
    again
        .say(json!({"messageType": "hello", "uaid": uaid.simple().to_string()}))
        .await;
    assert_eq!(again.closed().await, 1011);
    assert_eq!(push().await, 404);
}

#[testkit::test]
async fn a_client_that_takes_its_leave_is_answered_and_is_not_here_any_more(rig: &Rig) {
    let mut client = rig.node.client().await;
    client.send(Message::Close(None)).await;
    assert!(matches!(client.frame().await, Some(Message::Close(_))));
    assert_eq!(rig.node.push(&client, "1", 60).await, 404);
}
