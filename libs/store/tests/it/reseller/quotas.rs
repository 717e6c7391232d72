//! The daily quota: no day ever gets more, and what exceeds it waits in line, oldest first, under the limits of the moment.

use chrono::{NaiveDate, TimeDelta};
use chrono_tz::Tz;
use domain::clock::{Clock, SystemClock};
use domain::notification::{NotificationId, NotificationState, NotificationStatus};
use sqlx::PgPool;
use store::Store;
use store::webhook::{ClaimTerms, LimitsChange, NotificationSearch};
use testkit::notification_factory::{MadeNotification, NotificationRow};
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use crate::reseller::scene::{
    answered, claim, claimed_ids, clear, completion, ids, line_terms, many_pending, noon, notifications,
    pass, release, row, terms, timed_out,
};
use crate::scene::{LONG, act};

/// What waits in line, in its order.
async fn in_line(pool: &PgPool) -> Vec<NotificationId> {
    let ids: Vec<Uuid> = sqlx::query_scalar(
        "SELECT id FROM notifications WHERE status = 'SCHEDULED' ORDER BY next_attempt_at, id",
    )
    .fetch_all(pool)
    .await
    .unwrap();
    ids.into_iter().map(NotificationId::from).collect()
}

pub(super) async fn set_quota(store: &Store, subscription: Uuid, quota: u32) {
    let limits = LimitsChange {
        daily_quota: Some(Some(quota)),
        ..LimitsChange::default()
    };
    assert!(store.set_limits(subscription, limits, act(noon())).await.unwrap());
}

/// A subscription with a quota of `quota` that has `waiting` in line, as an instance of this version left it.
pub(super) async fn with_line(pool: &PgPool, quota: i32, waiting: i64) -> Uuid {
    let subscription = SubscriptionRow::active().daily_quota(quota).make(pool).await;
    many_pending(pool, subscription, waiting).await;
    sqlx::query(
        "UPDATE notifications n SET status = 'SCHEDULED', reason = 'QUOTA', created_at = c.at, next_attempt_at = c.at
         FROM (SELECT id, now() - row_number() OVER (ORDER BY id DESC) * interval '1 ms' AS at
               FROM notifications WHERE subscription_id = $1) AS c WHERE c.id = n.id",
    )
    .bind(subscription)
    .execute(pool)
    .await
    .unwrap();
    sqlx::query(
        "INSERT INTO subscription_budgets (subscription_id, day, used, quota, release_at)
         VALUES ($1, $2, $3, $3, now() + interval '30 s')",
    )
    .bind(subscription)
    .bind(noon().date_naive())
    .bind(quota)
    .execute(pool)
    .await
    .unwrap();
    subscription
}

#[testkit::database_test]
async fn the_oldest_get_what_is_left_of_the_day_and_the_others_wait_in_line(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(10).make(&pool).await;
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 25).await);
    let terms = terms(noon());
    let mut mixed = made.clone();
    mixed.reverse();
    mixed.swap(3, 17);
    let claims = claim(&store, &mixed, &terms).await;
    assert_eq!(claimed_ids(&claims), made[..10]);
    assert_eq!((claims.over_quota, claims.over_rate), (15, 0));
    assert_eq!(in_line(&pool).await, made[10..]);
    for id in &made[10..] {
        let row = row(&pool, *id).await;
        assert_eq!(
            (&*row.status, row.reason.as_deref()),
            ("SCHEDULED", Some("QUOTA"))
        );
        assert_eq!(row.charged_on, None, "nothing is reserved");
    }
}

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
async fn a_raised_quota_holds_at_once_for_a_hundred_thousand_that_wait_and_for_what_comes(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = with_line(&pool, 1_000, 100_000).await;
    let line = in_line(&pool).await;
    assert_eq!(line.len(), 100_000);
    let released = async || {
        let release = store
            .release_lines(noon(), &line_terms(), 1_000, 1_000, LONG)
            .await;
        let ids = release.unwrap().promoted;
        ids.into_iter()
            .map(|one| NotificationId::from(one.id))
            .collect::<Vec<_>>()
    };
    assert!(
        release(&store, &pool, noon()).await.is_empty(),
        "the day is used up"
    );
    set_quota(&store, subscription, 1_000_000).await;
    // No time passes between two looks: the share alone bounds them.
    assert_eq!(released().await, line[..1_000], "the oldest first");
    assert_eq!(release(&store, &pool, noon()).await, line[1_000..2_000]);
    let new = NotificationRow::in_state(NotificationState::Queued, subscription)
        .make(&pool)
        .await;
    let claims = claim(&store, &[new.id], &terms(noon())).await;
    assert_eq!(claims.over_quota, 1, "it overtakes nothing");
    assert!(claims.in_line.contains(&subscription) && claims.held_up.is_empty());
    assert_eq!(in_line(&pool).await.last(), Some(&new.id));
}

#[testkit::database_test]
async fn a_raised_default_holds_for_what_waits(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let mut terms = terms(noon());
    terms.daily_quota = 10;
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 50).await);
    assert_eq!(claim(&store, &made, &terms).await.claimed.len(), 10);
    terms.daily_quota = 40;
    let released = release(&store, &pool, terms.at).await;
    let claims = claim(&store, &released, &terms).await;
    assert_eq!(claimed_ids(&claims), made[10..40]);
    assert_eq!(in_line(&pool).await, made[40..]);
}

#[testkit::database_test]
async fn a_lowered_quota_holds_for_what_waits_and_owes_nothing(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(10).make(&pool).await;
    let mut terms = terms(noon());
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 25).await);
    assert_eq!(claim(&store, &made, &terms).await.claimed.len(), 10);
    set_quota(&store, subscription, 3).await;
    for expected in [0, 3, 3] {
        assert_eq!(work(&store, &pool, &[], &terms).await, expected);
        terms.at += TimeDelta::days(1);
    }
    set_quota(&store, subscription, 100).await;
    assert_eq!(work(&store, &pool, &[], &terms).await, 9, "all that is left");
}

#[testkit::database_test]
async fn a_quota_that_goes_down_and_up_again_gives_no_place_of_the_day_twice(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(10).make(&pool).await;
    let terms = terms(noon());
    let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 40).await);
    assert_eq!(claim(&store, &made, &terms).await.claimed.len(), 10);
    for (quota, expected) in [(2, 0), (10, 0), (12, 2), (1, 0), (15, 3)] {
        set_quota(&store, subscription, quota).await;
        assert_eq!(work(&store, &pool, &[], &terms).await, expected, "quota {quota}");
    }
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

#[testkit::database_test]
async fn the_last_place_is_given_away_and_not_one_more(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let mut terms = terms(noon());
    terms.daily_quota = 5;
    for expected in [1, 1, 1, 1, 1, 0, 0] {
        let made = notifications(&pool, NotificationState::Queued, subscription, 1).await;
        let claims = claim(&store, &ids(&made), &terms).await;
        assert_eq!(claims.claimed.len(), expected);
        assert_eq!(claims.over_quota, 1 - expected as u64);
    }
}

#[testkit::database_test]
async fn claimers_at_once_never_exceed_a_quota_and_lose_no_place(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let terms = terms(noon());
    for (round, quota) in [2, 37, 99, 100, 1_000].into_iter().enumerate() {
        let subscription = SubscriptionRow::active().daily_quota(quota).make(&pool).await;
        let made = ids(&notifications(&pool, NotificationState::Queued, subscription, 100).await);
        let claimers: Vec<_> = made
            .chunks(9)
            .map(|ids| {
                let (store, ids) = (store.clone(), ids.to_vec());
                tokio::spawn(async move { claim(&store, &ids, &terms).await })
            })
            .collect();
        let (mut claimed, mut over) = (0, 0);
        for claimer in claimers {
            let claims = claimer.await.unwrap();
            claimed += claims.claimed.len();
            over += claims.over_quota;
        }
        let quota = quota.unsigned_abs();
        assert_eq!(claimed, 100.min(quota as usize), "round {round}");
        assert_eq!(over, 100_u64.saturating_sub(quota.into()), "round {round}");
        assert_eq!(in_line(&pool).await.len() as u64, over, "round {round}");
        clear(&pool).await;
    }
}

#[testkit::database_test]
async fn each_subscription_has_its_own_quota(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut all = Vec::new();
    let mut expected = Vec::new();
    for quota in [1, 2, 3, 50] {
        let subscription = SubscriptionRow::active().daily_quota(quota).make(&pool).await;
        let made = ids(&notifications(&pool, NotificationState::Pending, subscription, 10).await);
        expected.extend_from_slice(&made[..10.min(quota as usize)]);
        all.extend(made);
    }
    expected.sort_unstable();
    let claims = claim(&store, &all, &terms(noon())).await;
    assert_eq!(claimed_ids(&claims), expected);
}

#[testkit::database_test]
async fn a_day_begins_where_its_zone_says(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let zones: [(Tz, &str, &str); 4] = [
        (
            chrono_tz::UTC,
            "2026-03-28T23:59:59.999999Z",
            "2026-03-29T00:00:00Z",
        ),
        (
            chrono_tz::Europe::Riga,
            "2026-03-29T20:59:59Z",
            "2026-03-29T21:00:00Z",
        ),
        (
            chrono_tz::Asia::Kathmandu,
            "2026-03-28T18:14:59Z",
            "2026-03-28T18:15:00Z",
        ),
        (
            chrono_tz::America::New_York,
            "2026-03-08T04:59:59Z",
            "2026-03-08T05:00:00Z",
        ),
    ];
    for (zone, before, after) in zones {
        let subscription = SubscriptionRow::active().daily_quota(2).make(&pool).await;
        let mut claimed = Vec::new();
        for at in [before, before, after] {
            let new = notifications(&pool, NotificationState::Queued, subscription, 2).await;
            let terms = ClaimTerms {
                zone,
                ..terms(at.parse().unwrap())
            };
            claimed.push(claim(&store, &ids(&new), &terms).await.claimed.len());
            // Nothing in line, so that the day alone decides.
            sqlx::query("DELETE FROM notifications WHERE status = 'SCHEDULED'")
                .execute(&pool)
                .await
                .unwrap();
            release(&store, &pool, terms.at).await;
        }
        assert_eq!(claimed, [2, 0, 2], "{zone}");
        clear(&pool).await;
    }
}

/// Claims what is new and what may leave the line; returns how many could be sent.
async fn work(store: &Store, pool: &PgPool, new: &[NotificationId], terms: &ClaimTerms) -> usize {
    let sent = claim(store, new, terms).await.claimed.len();
    let released = release(store, pool, terms.at).await;
    sent + claim(store, &released, terms).await.claimed.len()
}

#[testkit::database_test]
async fn what_is_carried_over_the_days_is_sent_in_its_turn_and_within_each_quota(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(10).make(&pool).await;
    let arrivals = [35, 1, 0, 20, 0, 3, 0, 0, 25, 0, 0, 0];
    let expected = [10, 10, 10, 10, 10, 9, 0, 0, 10, 10, 5, 0];
    let mut day = noon();
    for (number, (arriving, expected)) in arrivals.into_iter().zip(expected).enumerate() {
        let new = ids(&notifications(&pool, NotificationState::Queued, subscription, arriving).await);
        assert_eq!(
            work(&store, &pool, &new, &terms(day)).await,
            expected,
            "day {number}"
        );
        day += TimeDelta::days(1);
    }
    assert!(in_line(&pool).await.is_empty());
}

#[testkit::database_test]
async fn what_was_used_of_days_that_are_over_is_no_debt_when_the_default_falls(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let mut terms = terms(noon());
    for (quota, arriving, expected) in [(50, 50, 50), (10, 12, 10)] {
        terms.daily_quota = quota;
        let new = ids(&notifications(&pool, NotificationState::Queued, subscription, arriving).await);
        assert_eq!(
            claim(&store, &new, &terms).await.claimed.len(),
            expected,
            "quota {quota}"
        );
        terms.at += TimeDelta::days(1);
    }
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
async fn a_clock_that_went_back_gives_no_place_away_twice(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().daily_quota(3).make(&pool).await;
    for (hours, expected) in [(0, 3), (-24, 0), (0, 0)] {
        let made = notifications(&pool, NotificationState::Queued, subscription, 3).await;
        let terms = terms(noon() + TimeDelta::hours(hours));
        let claimed = claim(&store, &ids(&made), &terms).await.claimed.len();
        assert_eq!(claimed, expected, "{hours} hours");
    }
    let days: Vec<Option<NaiveDate>> = sqlx::query_scalar("SELECT charged_on FROM notifications ORDER BY 1")
        .fetch_all(&pool)
        .await
        .unwrap();
    let charged: Vec<NaiveDate> = days.into_iter().flatten().collect();
    assert_eq!(charged, [noon().date_naive(); 3]);
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
