//! What exceeds a quota waits in line, oldest first, and is told its day by the limits of the moment.

use chrono::TimeDelta;
use domain::clock::{Clock, SystemClock};
use domain::notification::{NotificationState, NotificationStatus};
use sqlx::PgPool;
use store::Store;
use store::webhook::NotificationSearch;
use testkit::notification_factory::{MadeNotification, NotificationRow};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::line_scene::{in_line, set_quota, with_line, work};
use crate::reseller::scene::{
    answered, claim, claimed_ids, clear, completion, ids, line_terms, noon, notifications, pass, release,
    row, terms, timed_out,
};
use crate::scene::LONG;

#[testkit::database_test]
async fn what_waits_is_told_its_day_by_the_quota_of_the_moment(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = with_line(&pool, 10, 25).await;
    let days = async || {
        let page = store
            .list_scheduled(subscription, &store::webhook::LineFilter::default(), None, 200)
            .await
            .unwrap();
        let today = noon().date_naive();
        let told = page
            .items
            .iter()
            .map(|row| row.next_attempt_at.unwrap().date_naive());
        told.map(|day| (day - today).num_days()).collect::<Vec<_>>()
    };
    let by = |quota: i64| (0..25).map(|n| 1 + n / quota).collect::<Vec<i64>>();
    assert_eq!(days().await, by(10));
    set_quota(&store, subscription, 5).await;
    assert_eq!(days().await, by(5));
    set_quota(&store, subscription, 20).await;
    assert_eq!(
        days().await,
        (0..25).map(|n| if n < 10 { 0 } else { 1 }).collect::<Vec<i64>>()
    );
    let alone = store
        .notification_timeline(in_line(&pool).await[10].uuid())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        alone.next_attempt_at.unwrap().date_naive(),
        noon().date_naive() + TimeDelta::days(1)
    );

    // Operators have several lines in one list.
    let other = with_line(&pool, 5, 6).await;
    let waiting = NotificationSearch {
        statuses: vec![NotificationStatus::Scheduled],
        ..NotificationSearch::default()
    };
    let found = store.search_notifications(&waiting, None, 200).await.unwrap();
    let told = |of: Uuid| {
        let today = noon().date_naive();
        let found = found.items.iter().filter(|it| it.subscription == of);
        let due = found.map(|it| it.next_attempt_at.unwrap().date_naive());
        due.map(|day| (day - today).num_days()).collect::<Vec<_>>()
    };
    assert_eq!(told(subscription), days().await);
    assert_eq!(told(other), [1, 1, 1, 1, 1, 2]);
}

#[testkit::database_test]
async fn what_missed_its_day_goes_before_what_came_after_it(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active()
        .daily_quota(6)
        .requests_per_second(1)
        .make(&pool)
        .await;
    let mut terms = terms(noon());
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 12).await);
    let claims = claim(&store, &made, &terms).await;
    assert_eq!(
        claimed_ids(&claims),
        made[..2],
        "the day ends before the others have a slot"
    );
    terms.at += TimeDelta::days(1);
    let new = ids(&notifications(&pool, NotificationState::Queued, subscription, 3).await);
    let mut sent = Vec::new();
    assert_eq!(claim(&store, &new, &terms).await.claimed.len(), 0);
    for _ in 0..6 {
        pass(&pool, 10.0).await;
        let released = release(&store, &pool, terms.at).await;
        sent.extend(claimed_ids(&claim(&store, &released, &terms).await));
    }
    assert_eq!(
        sent,
        made[2..8],
        "six of the new day, the oldest of those that wait"
    );
    let mut rest = made[8..].to_vec();
    rest.extend(new);
    assert_eq!(in_line(&pool).await, rest);
}

#[testkit::database_test]
async fn a_line_that_is_empty_lets_what_comes_go_at_once(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(2).make(&pool).await;
    let mut terms = terms(noon());
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 3).await);
    assert_eq!(claim(&store, &made, &terms).await.claimed.len(), 2);
    terms.at += TimeDelta::days(1);
    assert_eq!(work(&store, &pool, &[], &terms).await, 1);
    assert!(
        release(&store, &pool, terms.at).await.is_empty(),
        "nothing is left to release"
    );
    let new = NotificationRow::in_state(NotificationState::Queued, subscription)
        .make(&pool)
        .await;
    assert_eq!(claim(&store, &[new.id], &terms).await.claimed.len(), 1);
}

#[testkit::database_test]
async fn lines_take_turns_however_long_one_of_them_is(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let long = with_line(&pool, 1, 5_000).await;
    let mut short = Vec::new();
    for _ in 0..3 {
        short.push(with_line(&pool, 1, 2).await);
    }
    for subscription in short.iter().chain([&long]) {
        set_quota(&store, *subscription, 10_000).await;
    }
    let released = store
        .release_lines(noon(), &line_terms(), 32, 20, LONG)
        .await
        .unwrap();
    let of = |subscription| {
        released
            .promoted
            .iter()
            .filter(|one| one.subscription_id == subscription)
            .count()
    };
    assert_eq!(short.iter().map(|id| of(*id)).collect::<Vec<_>>(), [2, 2, 2]);
    assert_eq!(of(long), 14);
}

#[testkit::database_test]
async fn a_line_opens_over_the_window_of_its_day(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    with_line(&pool, 10, 100).await;
    let midnight = noon() + TimeDelta::hours(12);
    let mut sent = 0;
    for (minutes, expected) in [(0, 0), (1, 1), (180, 5), (180, 5), (360, 10), (720, 10)] {
        let at = midnight + TimeDelta::minutes(minutes);
        let released = release(&store, &pool, at).await;
        // They have no events here, which a claim finds out last.
        sent += claim(&store, &released, &terms(at)).await.orphaned;
        assert_eq!(sent, expected, "{minutes} minutes after midnight");
    }
}

#[testkit::database_test]
async fn what_a_paused_subscription_has_in_line_stays_there(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = with_line(&pool, 10, 5).await;
    sqlx::query("UPDATE subscriptions SET paused_at = now() WHERE id = $1")
        .bind(subscription)
        .execute(&pool)
        .await
        .unwrap();
    let tomorrow = noon() + TimeDelta::days(1);
    assert!(release(&store, &pool, tomorrow).await.is_empty());
    sqlx::query("UPDATE subscriptions SET paused_at = NULL WHERE id = $1")
        .bind(subscription)
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(release(&store, &pool, tomorrow).await.len(), 5);
}

#[testkit::database_test]
async fn places_that_an_earlier_version_gave_out_are_taken_back_into_the_line(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(10).make(&pool).await;
    let mut made = Vec::new();
    for n in 0..35 {
        let row = NotificationRow::in_state(NotificationState::Scheduled, subscription)
            .created_at(SystemClock.now() - TimeDelta::milliseconds(100 - n))
            .due_in(TimeDelta::days(1 + n / 10) + TimeDelta::seconds(n));
        made.push(row.make(&pool).await.id);
    }
    sqlx::query(
        "UPDATE notifications SET charged_on = (next_attempt_at AT TIME ZONE 'UTC')::date WHERE subscription_id = $1",
    )
    .bind(subscription)
    .execute(&pool)
    .await
    .unwrap();
    sqlx::query(
        "INSERT INTO subscription_budgets (subscription_id, day, used, quota) VALUES ($1, $2, 45, 10)",
    )
    .bind(subscription)
    .bind(noon().date_naive())
    .execute(&pool)
    .await
    .unwrap();
    assert_eq!(
        work(&store, &pool, &[], &terms(noon())).await,
        0,
        "ten of today are sent"
    );
    assert_eq!(in_line(&pool).await, made);
    set_quota(&store, subscription, 25).await;
    let released = release(&store, &pool, noon()).await;
    assert_eq!(
        claimed_ids(&claim(&store, &released, &terms(noon())).await),
        made[..15]
    );
    let tomorrow = terms(noon() + TimeDelta::days(1));
    assert_eq!(work(&store, &pool, &[], &tomorrow).await, 20);
}

/// By the whole claim while another one is in line, by the fast one when the line has ended.
#[testkit::database_test]
async fn that_it_waited_for_the_quota_is_kept_until_an_attempt_fails(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(10).make(&pool).await;
    let waiting = ids(&notifications(&pool, NotificationState::Queued, subscription, 12).await);
    assert_eq!(claim(&store, &waiting, &terms(noon())).await.claimed.len(), 10);
    for (quota, is_delivered) in [(11, true), (12, false)] {
        set_quota(&store, subscription, quota).await;
        let released = release(&store, &pool, noon()).await;
        assert_eq!(released.len(), 1, "quota {quota}");
        if in_line(&pool).await.is_empty() {
            assert!(
                release(&store, &pool, noon()).await.is_empty(),
                "this look ends it"
            );
        }
        let claims = claim(&store, &released, &terms(noon())).await;
        let claimed = claims.claimed.first().expect("a claim");
        let sending = row(&pool, claimed.id).await;
        assert_eq!(
            (sending.claimed, sending.reason.as_deref()),
            (true, Some("QUOTA")),
            "quota {quota}"
        );
        let made = MadeNotification {
            id: claimed.id,
            event: Uuid::nil(),
            subscription,
            lease_token: claimed.lease_token,
        };
        let outcome = if is_delivered { answered(204) } else { timed_out() };
        let completed = store
            .complete_deliveries(&[completion(&made, 1, outcome)], SystemClock.now())
            .await
            .unwrap();
        assert!(completed.contains(&claimed.id), "quota {quota}");
        let after = row(&pool, claimed.id).await;
        let reason = after.reason.as_deref().unwrap();
        if is_delivered {
            assert_eq!((&*after.status, reason), ("SENT", "QUOTA"));
        } else {
            assert_eq!(after.status, "RETRY");
            assert!(reason.starts_with("delivery/"), "{reason}");
        }
    }
}

#[testkit::database_test]
async fn a_line_of_years_is_counted_without_overflow(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(1).make(&pool).await;
    sqlx::query("INSERT INTO subscription_budgets (subscription_id, day, used, quota) VALUES ($1, current_date, 9000000000000, 1)")
        .bind(subscription)
        .execute(&pool)
        .await
        .unwrap();
    let made = notifications(&pool, NotificationState::Queued, subscription, 2).await;
    let claims = claim(&store, &ids(&made), &terms(noon())).await;
    assert_eq!(claims.over_quota, 2);
    assert!(
        store
            .list_scheduled(subscription, &store::webhook::LineFilter::default(), None, 9)
            .await
            .unwrap()
            .items
            .len()
            == 2
    );
}

#[testkit::database_test]
async fn only_what_waited_for_the_day_is_spread_over_its_window(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let early = noon() - TimeDelta::hours(12) + TimeDelta::minutes(10);
    // Of the same day: nothing but the quota holds it up.
    let today = with_line(&pool, 10, 5).await;
    set_used(&pool, today, 9).await;
    set_quota(&store, today, 10).await;
    sqlx::query("UPDATE subscription_budgets SET changed_at = NULL")
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(release(&store, &pool, early).await.len(), 1);
    clear(&pool).await;
    // Of the day before, and the quota is raised on this one.
    let before = with_line(&pool, 10, 40).await;
    sqlx::query(
        "UPDATE notifications SET created_at = created_at - interval '1 day',
                                  next_attempt_at = next_attempt_at - interval '1 day'",
    )
    .execute(&pool)
    .await
    .unwrap();
    assert!(release(&store, &pool, early).await.is_empty());
    set_quota(&store, before, 30).await;
    assert_eq!(release(&store, &pool, early).await.len(), 20);
}

async fn set_used(pool: &PgPool, subscription: Uuid, used: i64) {
    sqlx::query("UPDATE subscription_budgets SET used = $2 WHERE subscription_id = $1")
        .bind(subscription)
        .bind(used)
        .execute(pool)
        .await
        .unwrap();
}
