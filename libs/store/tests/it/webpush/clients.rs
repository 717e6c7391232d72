//! What is kept of a client: its channels, and the node that it is connected to.

use chrono::TimeDelta;
use sqlx::PgPool;
use store::webpush::{ClientFilter, NewMessage, Registered, Stored};
use uuid::Uuid;

use super::{MOST, NODE, OTHER, Scene, rand};

#[testkit::database_test]
async fn the_row_of_a_client_is_made_at_its_first_channel(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let other = Uuid::from_u128(rand());
    let registered = Registered::Yes { month: scene.month };
    assert_eq!(scene.register(scene.uaid, other).await, registered);
    assert_eq!(scene.register(scene.uaid, other).await, registered, "again");
    let client = scene.store.webpush_client(scene.uaid).await.unwrap().unwrap();
    assert_eq!(client.channels, [scene.channel, other]);
    assert_eq!(client.month, scene.month);
    assert_eq!(
        (client.node.as_deref(), client.connected_at),
        (Some(NODE), scene.now)
    );
    assert_eq!(
        (client.router_type.as_str(), client.created_at),
        ("webpush", scene.now)
    );
    assert_eq!(scene.store.webpush_client(other).await.unwrap(), None);
}

#[testkit::database_test]
async fn a_client_has_no_more_channels_than_it_may(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let register = async |channel| {
        let store = &scene.store;
        store
            .webpush_register(scene.uaid, None, scene.now, scene.month, channel, 2)
            .await
            .unwrap()
    };
    let (second, registered) = (Uuid::from_u128(rand()), Registered::Yes { month: scene.month });
    assert_eq!(register(second).await, registered);
    assert_eq!(register(Uuid::from_u128(rand())).await, Registered::Full);
    assert_eq!(register(second).await, registered, "it has that one");
}

/// One node has had its month turn, the other has not.
#[testkit::database_test]
async fn a_client_has_one_row_though_two_nodes_make_it_in_different_months(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let uaid = Uuid::from_u128(rand());
    let months = [scene.month, scene.month.plus(1), scene.month, scene.month.plus(1)];
    let tasks: Vec<_> = months
        .into_iter()
        .map(|month| {
            let (store, now) = (scene.store.clone(), scene.now);
            tokio::spawn(async move {
                let channel = Uuid::from_u128(rand());
                store
                    .webpush_register(uaid, Some(NODE), now, month, channel, MOST)
                    .await
            })
        })
        .collect();
    let mut told = Vec::new();
    for task in tasks {
        told.push(task.await.unwrap().unwrap());
    }
    let month = scene.store.webpush_client(uaid).await.unwrap().unwrap().month;
    assert_eq!(told, [Registered::Yes { month }; 4], "the month of the row");
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM webpush_clients WHERE uaid = $1")
        .bind(uaid)
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(rows, 1);
    let client = scene.store.webpush_client(uaid).await.unwrap().unwrap();
    assert_eq!(client.channels.len(), 4);
}

#[testkit::database_test]
async fn a_later_connection_is_noted_and_an_earlier_one_is_not(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let later = scene.now + TimeDelta::microseconds(1);
    let client = scene
        .store
        .webpush_connect(scene.uaid, OTHER, later)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (client.node.as_deref(), client.connected_at),
        (Some(OTHER), later)
    );
    let refused = scene
        .store
        .webpush_connect(scene.uaid, NODE, scene.now)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(refused, client, "the caller sees what is noted");
    let unknown = Uuid::from_u128(rand());
    assert_eq!(
        scene.store.webpush_connect(unknown, NODE, later).await.unwrap(),
        None
    );
}

#[testkit::database_test]
async fn a_node_is_forgotten_only_where_it_is_the_one_that_was_read(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let (store, uaid, now) = (&scene.store, scene.uaid, scene.now);
    let later = now + TimeDelta::milliseconds(5);
    assert!(!store.webpush_forget_node(uaid, OTHER, now).await.unwrap());
    store.webpush_connect(uaid, NODE, later).await.unwrap();
    assert!(
        !store.webpush_forget_node(uaid, NODE, now).await.unwrap(),
        "it has connected to the same node since"
    );
    assert!(store.webpush_forget_node(uaid, NODE, later).await.unwrap());
    assert_eq!(store.webpush_client(uaid).await.unwrap().unwrap().node, None);
    assert!(
        !store.webpush_forget_node(uaid, NODE, later).await.unwrap(),
        "twice"
    );
}

#[testkit::database_test]
async fn a_sender_is_told_the_node_and_whether_the_channel_is_there(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let (uaid, channel, other) = (scene.uaid, scene.channel, Uuid::from_u128(rand()));
    let wanted = [(uaid, other), (other, channel), (uaid, channel), (uaid, channel)];
    let routes = scene.store.webpush_routes(&wanted).await.unwrap();
    let seen: Vec<_> = routes
        .iter()
        .map(|route| route.as_ref().map(|r| (r.node.as_deref(), r.subscribed)))
        .collect();
    assert_eq!(
        seen,
        [
            Some((Some(NODE), false)),
            None,
            Some((Some(NODE), true)),
            Some((Some(NODE), true))
        ]
    );
}

#[testkit::database_test]
async fn what_waits_in_a_channel_goes_with_it(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let other = Uuid::from_u128(rand());
    scene.register(scene.uaid, other).await;
    scene.put(scene.message("1")).await;
    let kept = NewMessage {
        channel: other,
        ..scene.message("2")
    };
    scene.put(kept).await;
    assert!(
        scene
            .store
            .webpush_unregister(scene.uaid, scene.channel)
            .await
            .unwrap()
    );
    assert!(
        !scene
            .store
            .webpush_unregister(scene.uaid, scene.channel)
            .await
            .unwrap()
    );
    assert_eq!(scene.versions().await, ["2"]);
    assert_eq!(scene.put(scene.message("3")).await, Stored::NoChannel);
}

#[testkit::database_test]
async fn a_reset_leaves_nothing(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    scene.put(scene.message("1")).await;
    assert!(scene.store.webpush_reset(scene.uaid).await.unwrap());
    assert!(!scene.store.webpush_reset(scene.uaid).await.unwrap());
    assert_eq!(scene.store.webpush_client(scene.uaid).await.unwrap(), None);
    assert_eq!(scene.versions().await, [""; 0]);
    assert_eq!(scene.put(scene.message("2")).await, Stored::NoClient);
}

#[testkit::database_test]
async fn clients_are_listed_by_identifier_part_by_part_whichever_month_they_read(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let store = &scene.store;
    let mut made = vec![scene.uaid];
    for (node, month) in [(Some(OTHER), scene.month.plus(1)), (None, scene.month)] {
        let (uaid, channel) = (Uuid::from_u128(rand()), Uuid::from_u128(rand()));
        let at = scene.now - TimeDelta::hours(2);
        let registered = store.webpush_register(uaid, node, at, month, channel, MOST).await;
        registered.unwrap();
        made.push(uaid);
    }
    let found = async |filter: ClientFilter| {
        let found = store.webpush_clients(&filter, None, 10).await.unwrap();
        assert_eq!((found.examined, found.next), (3, None), "{filter:?}");
        found.items.iter().map(|client| client.uaid).collect::<Vec<_>>()
    };
    let mut all = made.clone();
    all.sort_unstable();
    assert_eq!(found(ClientFilter::default()).await, all);
    let of = |node: &str| ClientFilter {
        node: Some(node.to_owned()),
        ..ClientFilter::default()
    };
    assert_eq!(found(of(OTHER)).await, [made[1]]);
    assert_eq!(found(of("http://node-3:8081")).await, [] as [Uuid; 0]);
    let away = ClientFilter {
        connected: Some(false),
        ..ClientFilter::default()
    };
    assert_eq!(found(away).await, [made[2]]);
    let lately = ClientFilter {
        since: Some(scene.now - TimeDelta::hours(1)),
        ..ClientFilter::default()
    };
    assert_eq!(found(lately).await, [made[0]]);

    let (mut after, mut listed) = (None, Vec::new());
    loop {
        let part = store
            .webpush_clients(&ClientFilter::default(), after, 1)
            .await
            .unwrap();
        assert!(part.items.len() == 1 && part.examined <= 2, "{part:?}");
        listed.extend(part.items.iter().map(|client| client.uaid));
        after = part.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, all);
}
