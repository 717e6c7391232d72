//! Quotas that change while others claim: no day gets more than the highest of them.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{NaiveDate, TimeDelta};
use domain::notification::{NotificationId, NotificationState};
use sqlx::PgPool;
use store::Store;
use store::reseller::{ClaimTerms, Limits, QuotaTerms};
use testkit::notification_factory::NotificationRow;
use testkit::subscription_factory::SubscriptionRow;

use crate::portal::Portal;

const WAITING: usize = 240;
const HIGHEST: u32 = 70;

fn terms(portal: &Portal) -> (ClaimTerms, QuotaTerms) {
    let quota = &portal.config.reseller.quota;
    let claim = ClaimTerms {
        at: portal.now(),
        lease: Duration::from_secs(3_600),
        daily_quota: 1_000,
        requests_per_second: None,
        zone: quota.time_zone,
        release_window: quota.release_window,
        horizon: Duration::from_secs(1),
    };
    let layout = QuotaTerms {
        zone: quota.time_zone,
        release_window: quota.release_window,
    };
    (claim, layout)
}

/// How many have their place on which day.
async fn by_day(pool: &PgPool) -> BTreeMap<NaiveDate, i64> {
    let rows: Vec<(NaiveDate, i64)> = sqlx::query_as(
        "SELECT charged_on, count(*) FROM notifications WHERE charged_on IS NOT NULL GROUP BY 1",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    rows.into_iter().collect()
}

#[sqlx::test(migrator = "store::MIGRATOR")]
async fn no_day_is_overbooked_while_the_quota_goes_up_and_down(pool: PgPool) {
    let portal = Portal::start(pool).await;
    let id = SubscriptionRow::active().daily_quota(20).make(&portal.pool).await;
    let mut waiting: Vec<NotificationId> = Vec::new();
    for n in 0..WAITING {
        let age = TimeDelta::seconds(i64::try_from(WAITING - n).unwrap());
        let row = NotificationRow::in_state(NotificationState::Pending, id);
        waiting.push(row.created_at(portal.now() - age).make(&portal.pool).await.id);
    }
    let (claim, layout) = terms(&portal);
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
            let limits = Limits {
                daily_quota: Some(quota),
                ..Limits::default()
            };
            assert!(
                portal
                    .store
                    .set_limits(id, limits, &layout, portal.now())
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
    assert_eq!(
        days.values().sum::<i64>(),
        WAITING as i64,
        "every one has its place"
    );
    assert!(
        days.values().all(|count| *count <= i64::from(HIGHEST)),
        "{days:?}"
    );

    // Once nobody claims any more, what waits is laid out by the quota of then alone.
    let limits = Limits {
        daily_quota: Some(7),
        ..Limits::default()
    };
    assert!(
        portal
            .store
            .set_limits(id, limits, &layout, portal.now())
            .await
            .unwrap()
    );
    let days = by_day(&portal.pool).await;
    let today = portal.now().date_naive();
    assert!(
        days.iter().all(|(day, count)| *day == today || *count <= 7),
        "{days:?}"
    );
    portal.stop().await;
}
