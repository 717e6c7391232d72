//! A node of Web Push is killed, and another one is drained.

use domain::key::Role;
use testkit::{Installation, key_of_the_house};

use crate::page::Page;
use crate::rig::{Fleet, Process, Service};
use crate::scene::path_with_postrider;
use crate::user_agent::{UserAgent, send};

/// Starts a node that user agents connect to; returns where.
async fn node(fleet: &Fleet) -> (Process, String) {
    let mut node = fleet.start(Service::WebpushConnection).await;
    let address = node.address_logged_with("listening").await;
    (node, address)
}

#[testkit::test]
async fn a_node_of_web_push_dies_and_another_one_drains(it: Installation) {
    let fleet = Fleet::of(&it).await.with_webpush();
    let _others = fleet.start_all().await;
    let mut operator = fleet.start(Service::OperatorApi).await;
    let operator_url = format!("http://{}", operator.address_logged_with("listening").await);
    let mut endpoint = fleet.start(Service::WebpushEndpoint).await;
    let senders = endpoint.address_logged_with("listening").await;
    let (killed, address) = node(&fleet).await;
    let mut agent = UserAgent::connect(&address, "").await;
    let path = agent.subscribe().await;
    let uaid = agent.uaid.clone();
    let mut page = Page::section("A node of Web Push dies");
    page.set("PATH", path_with_postrider());
    page.set("OPERATOR_URL", operator_url);
    page.set(
        "OPERATOR_KEY",
        key_of_the_house(&it.store, &[Role::Operator]).await,
    );
    page.sign_in().await;

    killed.kill();
    drop(agent);
    let waiting = send(&senders, &path).await;
    page.follow_until_wrong("No webpush-connection runs").await;
    page.set("USER_AGENT", &uaid);
    page.follow_well().await.shows(&["1 message waits"]);
    let (drained, address) = node(&fleet).await;
    page.follow_until_well().await;
    let mut agent = UserAgent::connect(&address, &uaid).await;
    assert_eq!(agent.take().await, waiting);
    let pages = Page::section("A node of Web Push drains").with_what_is_set_in(&page);
    std::mem::replace(&mut page, pages).end();

    page.follow_well().await.shows(&["user agent"]);
    let (_other, address) = node(&fleet).await;
    drained.ask_to_stop();
    assert_eq!(agent.closed().await, 1001);
    let waiting = send(&senders, &path).await;
    let mut agent = UserAgent::connect(&address, &uaid).await;
    assert_eq!(agent.take().await, waiting);
    drained.ended().await;
    page.follow_until_well().await;
    page.end();
}
