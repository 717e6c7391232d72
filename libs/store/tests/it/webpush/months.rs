//! The partitions of the months: made ahead, dropped, and what operators see of them.

use std::time::Duration;

use domain::month::Month;
use sqlx::PgPool;
use uuid::Uuid;

use super::{MOST, Scene, rand};

#[testkit::database_test]
async fn months_are_made_ahead_with_the_bounds_of_the_calendar(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let (store, month) = (&scene.store, scene.month);
    assert_eq!(store.webpush_partitions_ahead(month).await.unwrap(), 3);
    assert_eq!(
        store.create_webpush_partitions(month, 4).await.unwrap(),
        0,
        "they exist"
    );
    assert_eq!(store.create_webpush_partitions(month, 5).await.unwrap(), 2);
    assert_eq!(store.webpush_partitions_ahead(month).await.unwrap(), 4);
    for parent in ["webpush_clients", "webpush_messages"] {
        let next = month.plus(1);
        let bounds: String =
            sqlx::query_scalar("SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = $1")
                .bind(format!("{parent}_{}", next.suffix()))
                .fetch_one(&pool)
                .await
                .unwrap();
        let expected = format!(
            "FOR VALUES FROM ('{}') TO ('{}')",
            next.first_day(),
            next.plus(1).first_day()
        );
        assert_eq!(bounds, expected, "{parent}");
    }
}

#[testkit::database_test]
async fn months_are_dropped_when_two_newer_ones_have_passed(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    let (store, month) = (&scene.store, scene.month);
    store.create_webpush_partitions(month.minus(4), 4).await.unwrap();
    let mut clients = Vec::new();
    for age in 0..=4 {
        let (uaid, channel) = (Uuid::from_u128(rand()), Uuid::from_u128(rand()));
        store
            .webpush_register(uaid, None, scene.now, month.minus(age), channel, MOST)
            .await
            .unwrap();
        clients.push(uaid);
    }
    let present = store.cutoff(scene.now, Duration::ZERO).await.unwrap();
    let dropped = store.drop_webpush_partitions(present).await.unwrap();
    assert_eq!(dropped, [month.minus(4).suffix(), month.minus(3).suffix()]);
    assert_eq!(store.drop_webpush_partitions(present).await.unwrap(), [""; 0]);
    for (age, uaid) in clients.into_iter().enumerate() {
        assert_eq!(
            store.webpush_client(uaid).await.unwrap().is_some(),
            age <= 2,
            "{age}"
        );
    }
    let kept: i64 = sqlx::query_scalar("SELECT count(*) FROM drop_webpush_partitions('2999-01-01')")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(kept, 0, "whatever the clock of the caller says");
}

#[testkit::database_test]
async fn dropping_gives_way_to_a_reader(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    scene
        .store
        .create_webpush_partitions(scene.month.minus(4), 1)
        .await
        .unwrap();
    let present = scene.store.cutoff(scene.now, Duration::ZERO).await.unwrap();
    let mut backup = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE webpush_messages IN ACCESS SHARE MODE")
        .execute(&mut *backup)
        .await
        .unwrap();
    let refused = scene.store.drop_webpush_partitions(present).await.unwrap_err();
    assert!(refused.is_transient(), "{refused:?}");
    backup.commit().await.unwrap();
    assert_eq!(
        scene.store.drop_webpush_partitions(present).await.unwrap().len(),
        1
    );
}

#[testkit::test]
async fn operators_see_what_each_month_holds_and_what_is_stored_of_a_client(pool: PgPool) {
    let scene = Scene::new(&pool).await;
    scene.put(scene.message("1")).await;
    scene.put(scene.with_topic("2", "news")).await;
    let months = scene.store.webpush_months().await.unwrap();
    assert!(months.is_sorted_by_key(|it| it.month), "{months:?}");
    let of = |month: Month| {
        let month = months.iter().find(|it| it.month == month).unwrap();
        (month.clients, month.with_node, month.messages)
    };
    assert_eq!(of(scene.month), (1, 1, 2));
    assert_eq!(of(scene.month.plus(1)), (0, 0, 0));
    for (month, there) in [(scene.month, true), (scene.month.plus(200), false)] {
        assert_eq!(scene.store.webpush_has_month(month).await.unwrap(), there);
    }
    let stored = scene
        .store
        .webpush_stored_client(scene.uaid)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.client.channels, [scene.channel]);
    let told: Vec<_> = stored
        .messages
        .iter()
        .map(|it| (it.version.as_str(), it.bytes))
        .collect();
    assert_eq!(told, [("2", Some(3)), ("1", Some(3))], "topics first");
    assert_eq!(stored.messages[0].topic.as_deref(), Some("news"));
    let unknown = scene.store.webpush_stored_client(Uuid::from_u128(rand())).await;
    assert_eq!(unknown.unwrap(), None);
}
