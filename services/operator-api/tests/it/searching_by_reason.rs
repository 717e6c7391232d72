//! Finding notifications by what they wait for.

use domain::notification::NotificationState;
use serde_json::json;
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::rig::Rig;

#[testkit::test]
async fn what_waits_is_found_by_what_it_is_told_to_wait_for(rig: &Rig) {
    let pool = &rig.it.pool;
    let subscription = SubscriptionRow::active().make(pool).await;
    let mut made = Vec::new();
    for (state, reason) in [
        (NotificationState::Scheduled, "QUOTA"),
        (NotificationState::Scheduled, "RATE"),
        // It had waited for the quota, and was delivered.
        (NotificationState::Sent, "QUOTA"),
    ] {
        let id = NotificationRow::in_state(state, subscription).make(pool).await.id;
        sqlx::query("UPDATE notifications SET reason = $2 WHERE id = $1")
            .bind(id.uuid())
            .bind(reason)
            .execute(pool)
            .await
            .unwrap();
        made.push(id.to_string());
    }
    let found = async |query: &str| {
        let list = rig.see(&format!("/notifications?{query}")).await;
        let items = list["items"].as_array().unwrap().iter();
        let places = items.map(|item| made.iter().position(|id| item["id"] == id.as_str()).unwrap());
        let mut places: Vec<usize> = places.collect();
        places.sort_unstable();
        places
    };
    assert_eq!(found("reason=QUOTA").await, [0]);
    assert_eq!(found("reason=QUOTA,RATE&status=SCHEDULED").await, [0, 1]);
    assert_eq!(found("reason=QUOTA&status=SENT").await, [] as [usize; 0]);
    assert_eq!(found("reason=PAUSED").await, [] as [usize; 0]);
    let note = json!({"note": "because"});
    rig.act(&format!("/subscriptions/{subscription}/pause"), &note, 200)
        .await;
    assert_eq!(found("reason=PAUSED").await, [0, 1]);
    assert_eq!(found("reason=QUOTA").await, [] as [usize; 0]);
}
