//! Quotas that change while others claim: no day gets more than the highest of them.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{NaiveDate, TimeDelta};
use domain::notification::{NotificationId, NotificationState};
use sqlx::PgPool;
use store::Store;
use store::webhook::{ClaimTerms, LimitsChange};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Leftover, leaves};

use crate::portal::Portal;

const WAITING: usize = 240;
const HIGHEST: u32 = 70;

fn terms(portal: &Portal) -> ClaimTerms {
    ClaimTerms {
        at: portal.now(),
        lease: Duration::from_secs(3_600),
        daily_quota: 1_000,
        requests_per_second: None,
        zone: portal.config.reseller.quota.time_zone,
        horizon: Duration::from_secs(1),
    }
}

/// How many were charged to which day.
async fn by_day(pool: &PgPool) -> BTreeMap<NaiveDate, i64> {
    let rows: Vec<(NaiveDate, i64)> = sqlx::query_as(
        "SELECT charged_on, count(*) FROM notifications WHERE charged_on IS NOT NULL GROUP BY 1",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    rows.into_iter().collect()
}

#[testkit::test]
async fn no_day_is_overbooked_while_the_quota_goes_up_and_down(portal: Portal) {
    leaves(Leftover::Claims);
    let id = SubscriptionRow::active().daily_quota(20).make(&portal.pool).await;
    let mut waiting: Vec<NotificationId> = Vec::new();
    for n in 0..WAITING {
        let age = TimeDelta::seconds(i64::try_from(WAITING - n).unwrap());
        let row = NotificationRow::in_state(NotificationState::Pending, id);
        waiting.push(row.created_at(portal.now() - age).make(&portal.pool).await.id);
    }
    let claim = terms(&portal);
    let claiming = (0..3).map(|turn| {
        let (store, waiting) = (Store::from_pool(portal.pool.clone()), waiting.clone());
        tokio::spawn(async move {
            for batch in waiting.chunks(10).skip(turn).step_by(3) {
                store.claim_notifications(batch, &claim).await.unwrap();
            }
        })
    });
    let claiming: Vec<_> = claiming.collect();
    let changing = async {
        for quota in [HIGHEST, 5, 50, 3, 40, 60, 10] {
            let limits = LimitsChange {
                daily_quota: Some(Some(quota)),
                ..LimitsChange::default()
            };
            assert!(
                portal
                    .store
                    .set_limits(id, limits, testkit::act_of_a_reseller(portal.now()))
                    .await
                    .unwrap()
            );
        }
    };
    changing.await;
    for claimed in claiming {
        claimed.await.unwrap();
    }
    let days = by_day(&portal.pool).await;
    assert!(
        days.values().all(|count| *count <= i64::from(HIGHEST)),
        "{days:?}"
    );
    let in_line: i64 = sqlx::query_scalar("SELECT count(*) FROM notifications WHERE status = 'SCHEDULED'")
        .fetch_one(&portal.pool)
        .await
        .unwrap();
    assert_eq!(
        days.values().sum::<i64>() + in_line,
        WAITING as i64,
        "what is not charged is in line"
    );
}
