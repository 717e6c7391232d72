//! The supervisor: servers that are away, refuse, or fall silent.

use broker::{Broker, ConnectionState, Published, Queue, Settings};
use fault_proxy::FaultProxy;
use lapin::uri::AMQPUri;

use crate::proxy::Proxy;
use crate::rig::{connected, envelopes, eventually, newer, publish, soon, state, with_rig};

async fn failure(broker: &Broker) -> String {
    let failed =
        |state: &ConnectionState| matches!(state, ConnectionState::Connecting { last_error: Some(_) });
    match state(broker, failed).await {
        ConnectionState::Connecting {
            last_error: Some(error),
        } => error,
        other => unreachable!("{other:?}"),
    }
}

#[tokio::test]
async fn unreachable_server_means_not_sent() {
    with_rig(async |rig| {
        rig.broker(rig.settings()).await.close().await;
        // A port that was free a moment ago, on which nothing listens.
        let free = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let url = format!("amqp://postrider:hunter2@127.0.0.1:{port}/%2f");
        let broker = Broker::start(Settings {
            url,
            ..rig.settings()
        });
        let outcomes = soon(
            "the answer",
            broker.publisher().publish(Queue::PushReady, envelopes(3)),
        )
        .await;
        assert_eq!(outcomes, [Published::NotSent; 3]);
        let error = failure(&broker).await;
        assert!(error.contains(&format!("127.0.0.1:{port}")), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        assert!(matches!(
            broker.depth(Queue::PushReady).await,
            Err(broker::Error::NotConnected)
        ));
        soon("closing", broker.close()).await;
    })
    .await;
}

#[tokio::test]
async fn refused_credentials_are_explained_without_the_password() {
    with_rig(async |rig| {
        rig.broker(rig.settings()).await.close().await;
        let mut uri: AMQPUri = rig.url.parse().expect("a valid AMQP_URL");
        "hunter2".clone_into(&mut uri.authority.userinfo.password);
        let broker = Broker::start(Settings {
            url: uri.to_string(),
            ..rig.settings()
        });
        let error = failure(&broker).await;
        assert!(
            error.contains("ACCESS_REFUSED") || error.contains("ACCESS-REFUSED"),
            "{error}"
        );
        assert!(!error.contains("hunter2"), "{error}");
        soon("closing", broker.close()).await;
    })
    .await;
}

#[tokio::test]
async fn unusable_url_is_explained_without_the_password() {
    with_rig(async |rig| {
        rig.broker(rig.settings()).await.close().await;
        let broker = Broker::start(Settings {
            url: "rabbit:hunter2".to_owned(),
            ..rig.settings()
        });
        let error = failure(&broker).await;
        assert!(
            error.contains("invalid AMQP URL") && !error.contains("hunter2"),
            "{error}"
        );
        soon("closing", broker.close()).await;
    })
    .await;
}

#[tokio::test]
async fn server_without_tls_is_refused_by_an_amqps_url() {
    with_rig(async |rig| {
        rig.broker(rig.settings()).await.close().await;
        let plain = rig.url.strip_prefix("amqp://").expect("a plain AMQP_URL");
        let broker = Broker::start(Settings {
            url: format!("amqps://{plain}"),
            ..rig.settings()
        });
        let error = failure(&broker).await;
        assert!(error.starts_with("failed to connect"), "{error}");
        soon("closing", broker.close()).await;
    })
    .await;
}

#[tokio::test]
async fn silent_server_is_noticed_by_its_missing_heartbeats() {
    with_rig(async |rig| {
        let proxy = Proxy::start(&rig.url).await;
        let url = format!("{}?heartbeat=1", proxy.url());
        let broker = rig
            .broker(Settings {
                url,
                ..rig.settings()
            })
            .await;
        let generation = connected(&broker).await;
        proxy.hold();
        failure(&broker).await;
        proxy.cut();
        proxy.release();
        newer(&broker, generation).await;
        // On a slow machine heartbeats of one second may be missed again.
        let publisher = broker.publisher();
        eventually("a confirm", async || {
            publisher.publish(Queue::PushReady, envelopes(1)).await == [Published::Confirmed]
        })
        .await;
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn generation_grows_with_every_reconnect() {
    with_rig(async |rig| {
        let proxy = Proxy::start(&rig.url).await;
        let broker = rig
            .broker(Settings {
                url: proxy.url(),
                ..rig.settings()
            })
            .await;
        let mut generation = connected(&broker).await;
        assert_eq!(generation, 1);
        for _ in 0..3 {
            proxy.cut();
            generation = newer(&broker, generation).await;
            publish(&broker, 1).await;
        }
        broker.close().await;
    })
    .await;
}

/// A port that was free a moment ago, on which nothing listens.
async fn absent_node() -> String {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let port = free.local_addr().expect("an address").port();
    format!("amqp://postrider:hunter2@127.0.0.1:{port}/%2f")
}

#[tokio::test]
async fn of_several_nodes_one_that_answers_is_found_whichever_comes_first() {
    with_rig(async |rig| {
        let url = format!("{},{},{}", absent_node().await, rig.url, absent_node().await);
        let broker = rig
            .broker(Settings {
                url,
                ..rig.settings()
            })
            .await;
        let outcome = broker.publisher().publish(Queue::PushReady, envelopes(1)).await;
        assert_eq!(outcome, [Published::Confirmed]);
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn when_a_node_is_lost_another_one_takes_its_place() {
    with_rig(async |rig| {
        let (one, other) = (
            FaultProxy::for_url(&rig.url).await,
            FaultProxy::for_url(&rig.url).await,
        );
        let url = format!("{},{}", one.1, other.1);
        let broker = rig
            .broker(Settings {
                url,
                ..rig.settings()
            })
            .await;
        // One after the other is away, so it has to change over at least once, wherever it began.
        for lost in [&one.0, &other.0] {
            let generation = connected(&broker).await;
            lost.cut();
            let publisher = broker.publisher();
            eventually("a confirm over what is left", async || {
                publisher.publish(Queue::PushReady, envelopes(1)).await == [Published::Confirmed]
            })
            .await;
            lost.heal();
            assert!(connected(&broker).await >= generation);
        }
        broker.close().await;
    })
    .await;
}

#[tokio::test]
async fn when_no_node_answers_each_is_named_without_its_password() {
    with_rig(async |rig| {
        rig.broker(rig.settings()).await.close().await;
        let nodes = [absent_node().await, absent_node().await];
        let broker = Broker::start(Settings {
            url: nodes.join(", "),
            ..rig.settings()
        });
        let error = failure(&broker).await;
        for node in &nodes {
            let (_, location) = node
                .trim_end_matches("/%2f")
                .rsplit_once('@')
                .expect("credentials");
            assert!(error.contains(location), "{location} is not in {error}");
        }
        assert!(!error.contains("hunter2"), "{error}");
        soon("closing", broker.close()).await;
    })
    .await;
}
