//! How far a part of a list of notifications looks for what few match.

use sqlx::PgPool;
use store::Store;
use store::webhook::{NotificationSearch, NotificationsOf};
use testkit::subscription_factory::SubscriptionRow;

use crate::searching::search;

/// So many events, each with a notification for each subscription; that of the oldest notification is of `far.example`.
async fn make_events(pool: &PgPool, events: i32) {
    sqlx::query(
        "INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at)
         SELECT (left(first_id_of_month(date_trunc('month', now())::date)::text, 9) || right(gen_random_uuid()::text, 27))::uuid,
                'event-' || n, 'acme', 'domain.created', '{}', now(), now() FROM generate_series(1, $1) AS n",
    )
    .bind(events)
    .execute(pool)
    .await
    .unwrap();
    sqlx::raw_sql(
        "INSERT INTO notifications (id, event, subscription_id, reseller_id, event_type, status, attempts, payload_bytes,
                                    created_at, updated_at, finished_at)
         SELECT notification_id(e.id, s.id), e.id, s.id, 'acme', 'domain.created', 'SENT', 1, 2, now(), now(), now()
         FROM events e CROSS JOIN subscriptions s;
         UPDATE events SET body = '{\"data\": {\"domain\": \"far.example\"}}'
         WHERE id = (SELECT event FROM notifications ORDER BY id LIMIT 1)",
    )
    .execute(pool)
    .await
    .unwrap();
}

fn far() -> NotificationSearch {
    NotificationSearch {
        value: Some("far.example".to_owned()),
        ..search(NotificationsOf::Reseller("acme".to_owned()))
    }
}

#[testkit::database_test]
async fn a_part_looks_on_over_all_subscriptions_until_it_is_full_or_all_is_looked_at(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for _ in 0..2 {
        SubscriptionRow::active().make(&pool).await;
    }
    make_events(&pool, 450).await;
    let part = store.search_notifications(&far(), None, 50).await.unwrap();
    assert_eq!((part.items.len(), part.examined, part.next), (2, 900, None));
    // One of the two: there is another.
    let first = store.search_notifications(&far(), None, 1).await.unwrap();
    let last = store.search_notifications(&far(), first.next, 1).await.unwrap();
    assert_eq!((first.items.len(), last.items.len(), last.next), (1, 1, None));
}

#[testkit::database_test]
async fn a_part_ends_with_as_many_as_are_looked_at_for_one(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    for _ in 0..3 {
        SubscriptionRow::active().make(&pool).await;
    }
    make_events(&pool, 3_400).await;
    let first = store.search_notifications(&far(), None, 50).await.unwrap();
    assert_eq!((first.examined, first.next.is_some()), (10_000, true));
    let last = store.search_notifications(&far(), first.next, 50).await.unwrap();
    assert_eq!((last.examined, last.next), (200, None));
    assert_eq!(first.items.len() + last.items.len(), 3);
}
