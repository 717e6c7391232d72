//! When the turns come of what is in line, told of many subscriptions at once.

use std::collections::HashSet;

use chrono::TimeDelta;
use domain::notification::NotificationStatus;
use sqlx::PgPool;
use store::Store;
use store::webhook::NotificationSearch;

use super::line_scene::with_line;

#[testkit::database_test]
async fn a_list_of_many_lines_tells_the_turns_that_each_notification_tells_alone(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut lines = HashSet::new();
    for (quota, waiting) in [(3, 20), (5, 7), (7, 30), (2, 1), (4, 9)] {
        lines.insert(with_line(&pool, quota, waiting).await);
    }
    // Nothing is known of its present day.
    let new = with_line(&pool, 6, 10).await;
    sqlx::query("DELETE FROM subscription_budgets WHERE subscription_id = $1")
        .bind(new)
        .execute(&pool)
        .await
        .unwrap();
    lines.insert(new);

    let waiting = NotificationSearch {
        statuses: vec![NotificationStatus::Scheduled],
        ..NotificationSearch::default()
    };
    // The first ones of all, so that most lines have more than the list shows, and then all.
    for (limit, expected) in [(40, 40), (200, 77)] {
        let found = store.search_notifications(&waiting, None, limit).await.unwrap();
        assert_eq!(found.items.len(), expected);
        let listed: HashSet<_> = found.items.iter().map(|it| it.subscription).collect();
        assert!(listed.len() > 1 && listed.is_subset(&lines), "{listed:?}");
        for it in &found.items {
            let alone = store.notification_timeline(it.id.uuid()).await.unwrap().unwrap();
            let (listed, alone) = (it.next_attempt_at.unwrap(), alone.next_attempt_at.unwrap());
            // What may go today may go now, and that moves on between two queries.
            assert!(
                (listed - alone).abs() < TimeDelta::minutes(10),
                "{listed} {alone}"
            );
        }
    }
}
