//! Finding pushes and notifications: which ones, in which order, part by part; and the indexes that are made for it beside work.

use chrono::{DateTime, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use domain::notification::{NotificationState, NotificationStatus};
use domain::push::{PushState, PushStatus};
use sqlx::{AssertSqlSafe, PgPool};
use store::Store;
use store::push::PushFilter;
use store::webhook::{EventSearch, NotificationSearch, NotificationsOf};
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

async fn run(pool: &PgPool, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(pool)
        .await
        .unwrap();
}

/// A push in `state` for this device, accepted so many seconds ago.
pub(crate) async fn push_for(pool: &PgPool, device: &str, state: PushState, seconds_ago: i64) -> Uuid {
    let at = SystemClock.now() - TimeDelta::seconds(seconds_ago);
    let made = PushRow::in_state(state).created_at(at).make(pool).await;
    sqlx::query("UPDATE push_notifications SET push_key = $2 WHERE id = $1")
        .bind(made.id.uuid())
        .bind(device)
        .execute(pool)
        .await
        .unwrap();
    made.id.uuid()
}

/// Every push that matches, part by part.
pub(crate) async fn all_pushes(store: &Store, filter: &PushFilter, limit: u32) -> Vec<Uuid> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let part = store.list_pushes(filter, after, limit).await.unwrap().unwrap();
        found.extend(part.items.iter().map(|push| push.id.uuid()));
        after = part.next;
        if after.is_none() {
            return found;
        }
    }
}

fn of_device(device: &str) -> PushFilter {
    PushFilter {
        device: Some(device.to_owned()),
        ..PushFilter::default()
    }
}

fn in_status(status: PushStatus) -> PushFilter {
    PushFilter {
        statuses: vec![status],
        ..PushFilter::default()
    }
}

#[testkit::database_test]
async fn the_pushes_of_a_device_are_found_the_newest_first_and_no_others(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut wanted = Vec::new();
    for age in 1..=5 {
        wanted.push(push_for(&pool, "463B3209", PushState::Sent, age * 60).await);
        push_for(&pool, "another", PushState::Sent, age * 60).await;
    }
    for limit in [1, 2, 50] {
        assert_eq!(
            all_pushes(&store, &of_device("463B3209"), limit).await,
            wanted,
            "{limit}"
        );
    }
    assert_eq!(
        all_pushes(&store, &of_device("463b3209"), 50).await,
        [] as [Uuid; 0]
    );
    let young = PushFilter {
        since: Some(SystemClock.now() - TimeDelta::seconds(150)),
        ..of_device("463B3209")
    };
    assert_eq!(all_pushes(&store, &young, 1).await, wanted[..2]);
    let sent = PushFilter {
        statuses: vec![PushStatus::Failed],
        ..of_device("463B3209")
    };
    assert_eq!(all_pushes(&store, &sent, 50).await, [] as [Uuid; 0]);
}

#[testkit::database_test]
async fn what_waits_comes_in_the_order_in_which_it_is_due(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut pending = Vec::new();
    for age in [30, 20, 10] {
        pending.push(push_for(&pool, "d", PushState::Pending, age).await);
        push_for(&pool, "d", PushState::Sent, age).await;
    }
    let mut retry = Vec::new();
    for due in [-30, -20, 40] {
        let row = PushRow::in_state(PushState::Retry).due_in(TimeDelta::seconds(due));
        retry.push(row.make(&pool).await.id.uuid());
        let row = PushRow::in_state(PushState::Scheduled).due_in(TimeDelta::seconds(due));
        row.make(&pool).await;
    }
    for limit in [1, 2, 50] {
        assert_eq!(
            all_pushes(&store, &in_status(PushStatus::Pending), limit).await,
            pending,
            "{limit}"
        );
        assert_eq!(
            all_pushes(&store, &in_status(PushStatus::Retry), limit).await,
            retry,
            "{limit}"
        );
    }
    let part = store
        .list_pushes(&in_status(PushStatus::Retry), None, 50)
        .await
        .unwrap()
        .unwrap();
    assert!(
        part.items[0].error_type.is_some(),
        "how the last attempt failed: {:?}",
        part.items[0]
    );
}

#[testkit::database_test]
async fn a_filter_that_matches_little_looks_at_a_bounded_number_and_says_how_to_go_on(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    run(
        &pool,
        "INSERT INTO push_notifications (id, status, platform, push_key, message, created_at, finished_at)
         SELECT (left(first_id_of_month(date_trunc('month', now())::date)::text, 9) || right(gen_random_uuid()::text, 27))::uuid,
                'SENT', 'IOS', 'device', 'Hello', now(), now() FROM generate_series(1, 10100)",
    )
    .await;
    let filter = PushFilter {
        prototype: Some("none".to_owned()),
        ..PushFilter::default()
    };
    let first = store.list_pushes(&filter, None, 50).await.unwrap().unwrap();
    assert_eq!((first.items.len(), first.examined), (0, 10_000));
    let second = store.list_pushes(&filter, first.next, 50).await.unwrap().unwrap();
    assert_eq!((second.examined, second.next), (100, None));
}

/// As an upgrade finds a table: months with rows and months without, and dead letters.
#[sqlx::test(migrations = false)]
async fn what_an_upgrade_leaves_to_be_indexed_is_indexed_beside_work(pool: PgPool) {
    store::MIGRATOR.run_to(36, &pool).await.unwrap();
    let push = PushRow::in_state(PushState::Failed).make(&pool).await;
    PushRow::in_state(PushState::Failed).make(&pool).await;
    let store = Store::from_pool(pool.clone());
    store.migrate().await.unwrap();
    sqlx::query("UPDATE push_notifications SET push_key = 'mine' WHERE id = $1")
        .bind(push.id.uuid())
        .execute(&pool)
        .await
        .unwrap();

    assert!(
        store
            .list_pushes(&of_device("mine"), None, 50)
            .await
            .unwrap()
            .is_none(),
        "the table is not read instead"
    );
    assert!(
        store
            .dead_letter_job_outcome(Uuid::now_v7())
            .await
            .unwrap()
            .is_none()
    );

    // What could not be finished is there under its name, and is not valid: here because two rows are equal.
    let unfinished = "CREATE UNIQUE INDEX CONCURRENTLY dead_letters_job ON dead_letters (lane)";
    sqlx::raw_sql(unfinished).execute(&pool).await.unwrap_err();
    let made = store.make_indexes().await.unwrap();
    assert!(
        made.len() >= 2 && made.contains(&"dead_letters_job".to_owned()),
        "{made:?}"
    );
    assert_eq!(all_pushes(&store, &of_device("mine"), 50).await, [push.id.uuid()]);
    assert!(
        store
            .dead_letter_job_outcome(Uuid::now_v7())
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(
        store.make_indexes().await.unwrap(),
        [] as [String; 0],
        "nothing is left to do"
    );
}

#[testkit::database_test]
async fn months_to_come_find_devices_too(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let at: DateTime<Utc> = "2031-05-15T12:00:00Z".parse().unwrap();
    store
        .create_partitions(domain::month::Month::containing(at), 1)
        .await
        .unwrap();
    let made = PushRow::in_state(PushState::Sent)
        .created_at(at)
        .make(&pool)
        .await;
    run(&pool, "UPDATE push_notifications SET push_key = 'later'").await;
    assert_eq!(
        all_pushes(&store, &of_device("later"), 50).await,
        [made.id.uuid()]
    );
}

#[testkit::database_test]
async fn how_many_pushes_are_before_one_that_waits_is_counted(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut ids = Vec::new();
    for age in [30, 20, 10] {
        ids.push(push_for(&pool, "d", PushState::Pending, age).await);
    }
    let queued = PushRow::in_state(PushState::Queued).make(&pool).await;
    let ahead = async |id: Uuid| {
        store
            .push_timeline(id)
            .await
            .unwrap()
            .unwrap()
            .ahead
            .map(|ahead| ahead.pushes)
    };
    assert_eq!(ahead(queued.id.uuid()).await, Some(0));
    assert_eq!(
        [ahead(ids[0]).await, ahead(ids[1]).await, ahead(ids[2]).await],
        [Some(1), Some(2), Some(3)],
        "what is in the queue goes first"
    );
    let sent = push_for(&pool, "d", PushState::Sent, 5).await;
    assert_eq!(ahead(sent).await, None);
}

pub(crate) fn search(of: NotificationsOf) -> NotificationSearch {
    NotificationSearch {
        of,
        ..NotificationSearch::default()
    }
}

pub(crate) async fn all_notifications(store: &Store, search: &NotificationSearch, limit: u32) -> Vec<Uuid> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let part = store.search_notifications(search, after, limit).await.unwrap();
        found.extend(part.items.iter().map(|found| found.id.uuid()));
        after = part.next;
        if after.is_none() {
            return found;
        }
    }
}

#[testkit::database_test]
async fn what_a_reseller_got_is_found_over_all_its_subscriptions(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut mine = Vec::new();
    for _ in 0..2 {
        mine.push(SubscriptionRow::active().make(&pool).await);
    }
    let other = SubscriptionRow::active().reseller("other").make(&pool).await;
    let mut wanted = Vec::new();
    for age in 1..=6 {
        let at = SystemClock.now() - TimeDelta::seconds(age);
        let subscription = mine[usize::try_from(age % 2).unwrap()];
        let row = NotificationRow::in_state(NotificationState::Sent, subscription).created_at(at);
        wanted.push(row.make(&pool).await);
        let row = NotificationRow::in_state(NotificationState::Sent, other).reseller("other");
        row.created_at(at).make(&pool).await;
    }
    let ids: Vec<Uuid> = wanted.iter().map(|made| made.id.uuid()).collect();
    let acme = search(NotificationsOf::Reseller("acme".to_owned()));
    for limit in [1, 4, 50] {
        assert_eq!(all_notifications(&store, &acme, limit).await, ids, "{limit}");
    }
    let all = all_notifications(&store, &NotificationSearch::default(), 5).await;
    assert_eq!(all.len(), 2 * ids.len());
    let of_mine: Vec<Uuid> = all.into_iter().filter(|id| ids.contains(id)).collect();
    assert_eq!(of_mine, ids);
    let one = search(NotificationsOf::Subscription(mine[1]));
    assert_eq!(
        all_notifications(&store, &one, 50).await,
        [ids[0], ids[2], ids[4]]
    );

    sqlx::query("UPDATE events SET body = $2 WHERE id = $1")
        .bind(wanted[3].event)
        .bind(r#"{"data":{"domain":{"name":"found.example","note":"\u0000","alias":"B\u00FCcher.Example"}}}"#)
        .execute(&pool)
        .await
        .unwrap();
    let named = |value: &str| NotificationSearch {
        value: Some(value.to_owned()),
        ..acme.clone()
    };
    assert_eq!(
        all_notifications(&store, &named("found.example"), 50).await,
        [ids[3]]
    );
    for in_another_case in ["Found.EXAMPLE", "b\u{fc}cher.example"] {
        assert_eq!(
            all_notifications(&store, &named(in_another_case), 50).await,
            [ids[3]],
            "{in_another_case}"
        );
    }
    assert_eq!(
        all_notifications(&store, &named("found.exampl"), 50).await,
        [] as [Uuid; 0],
        "a part of a value is none"
    );
    let asked = |code: Option<u16>, error: Option<&'static str>| NotificationSearch {
        code: code.map(|code| code..=code),
        error,
        ..NotificationSearch::default()
    };
    let retry = NotificationRow::in_state(NotificationState::Retry, other).reseller("other");
    let retry = retry.make(&pool).await.id.uuid();
    let failed = NotificationRow::in_state(NotificationState::Failed, mine[0]);
    let failed = failed.make(&pool).await.id.uuid();
    sqlx::query(
        "UPDATE delivery_attempts SET response_status = NULL, error_type = 'TIMEOUT' WHERE notification_id = $1",
    )
    .bind(failed)
    .execute(&pool)
    .await
    .unwrap();
    for (code, error, matching) in [
        (Some(503), None, vec![retry]),
        (Some(503), Some("HTTP"), vec![retry]),
        (None, Some("TIMEOUT"), vec![failed]),
        (Some(503), Some("TIMEOUT"), Vec::new()),
    ] {
        for limit in [1, 50] {
            let found = all_notifications(&store, &asked(code, error), limit).await;
            assert_eq!(found, matching, "{code:?}, {error:?}, {limit}");
        }
        let waiting = NotificationSearch {
            statuses: vec![NotificationStatus::Retry],
            ..asked(code, error)
        };
        let is_found = all_notifications(&store, &waiting, 50).await == [retry];
        assert_eq!(is_found, matching == [retry], "{waiting:?}");
    }
    let found = store.notifications_of_event(wanted[3].event).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].reseller, "acme");
}

#[testkit::database_test]
async fn notifications_that_wait_come_in_the_order_in_which_they_are_due(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let mut waiting = Vec::new();
    for state in [
        NotificationState::Pending,
        NotificationState::Retry,
        NotificationState::Scheduled,
    ] {
        let mut made = Vec::new();
        for age in [30, 20, 10] {
            let at = SystemClock.now() - TimeDelta::seconds(age);
            let row = NotificationRow::in_state(state, subscription).created_at(at);
            made.push(row.due_in(TimeDelta::seconds(-age)).make(&pool).await.id.uuid());
        }
        waiting.push((state, made));
    }
    for (state, made) in waiting {
        for (of, limit) in [
            (NotificationsOf::Reseller("acme".to_owned()), 1),
            (NotificationsOf::Reseller("acme".to_owned()), 2),
            (NotificationsOf::Reseller("acme".to_owned()), 50),
            (NotificationsOf::All, 1),
            (NotificationsOf::All, 2),
            (NotificationsOf::All, 50),
        ] {
            let wanted = NotificationSearch {
                statuses: vec![state.status()],
                ..search(of)
            };
            assert_eq!(
                all_notifications(&store, &wanted, limit).await,
                made,
                "{state:?}, {wanted:?}, {limit}"
            );
            let others = NotificationSearch {
                event_type: Some("none.such".to_owned()),
                ..wanted
            };
            assert_eq!(all_notifications(&store, &others, limit).await, [] as [Uuid; 0]);
        }
    }
    let sent = NotificationSearch {
        statuses: vec![NotificationStatus::Sent],
        ..search(NotificationsOf::Subscription(subscription))
    };
    assert_eq!(all_notifications(&store, &sent, 50).await, [] as [Uuid; 0]);
}

#[testkit::database_test]
async fn what_ended_in_a_time_is_found_and_what_waits_is_not(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let now = SystemClock.now();
    let mut ended = Vec::new();
    for minutes in [30, 20, 10] {
        let row = NotificationRow::in_state(NotificationState::Sent, subscription);
        let made = row.created_at(now - TimeDelta::hours(1)).make(&pool).await;
        sqlx::query("UPDATE notifications SET finished_at = $2 WHERE id = $1")
            .bind(made.id.uuid())
            .bind(now - TimeDelta::minutes(minutes))
            .execute(&pool)
            .await
            .unwrap();
        ended.push(made.id.uuid());
    }
    let waiting = NotificationRow::in_state(NotificationState::Pending, subscription);
    waiting.make(&pool).await;
    let at = |minutes| Some(now - TimeDelta::minutes(minutes));
    for of in [NotificationsOf::Subscription(subscription), NotificationsOf::All] {
        for (since, until, found) in [
            (at(25), None, &ended[1..]),
            (None, at(15), &ended[..2]),
            (at(25), at(15), &ended[1..2]),
            // From this time on, and before that one.
            (at(20), at(10), &ended[1..2]),
            (at(5), None, &ended[3..]),
        ] {
            let search = NotificationSearch {
                ended_since: since,
                ended_until: until,
                ..search(of.clone())
            };
            let mut got = all_notifications(&store, &search, 1).await;
            got.sort_unstable();
            let mut wanted = found.to_vec();
            wanted.sort_unstable();
            assert_eq!(got, wanted, "{search:?}");
        }
    }
}

/// An event of `reseller` that matched nothing, with this name in its data.
async fn unmatched(pool: &PgPool, (reseller, name): (&str, &str), seconds_ago: i64) -> Uuid {
    let at = SystemClock.now() - TimeDelta::seconds(seconds_ago);
    let id = domain::push::PushId::at(at).uuid();
    sqlx::query(
        "INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at, missed)
         VALUES ($1, $1::text, $2, 'domain.created', $3, $4, $4, '[]')",
    )
    .bind(id)
    .bind(reseller)
    .bind(format!(r#"{{"data":{{"domain":{{"name":"{name}"}}}}}}"#))
    .bind(at)
    .execute(pool)
    .await
    .unwrap();
    id
}

async fn all_events(store: &Store, search: &EventSearch, limit: u32) -> Vec<Uuid> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let part = store.search_events(search, after, limit).await.unwrap();
        found.extend(part.items.iter().map(|event| event.id));
        after = part.next;
        if after.is_none() {
            return found;
        }
    }
}

#[testkit::database_test]
async fn an_event_that_became_nothing_is_found_by_its_data(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let subscription = SubscriptionRow::active().make(&pool).await;
    let told = NotificationRow::in_state(NotificationState::Sent, subscription)
        .make(&pool)
        .await
        .event;
    let mine = unmatched(&pool, ("acme", "found.example"), 10).await;
    let other = unmatched(&pool, ("other", "found.example"), 20).await;
    let old = unmatched(&pool, ("acme", "found.example"), 3_600).await;
    unmatched(&pool, ("acme", "another.example"), 5).await;
    let with = |search: EventSearch| EventSearch {
        value: Some("found.example".to_owned()),
        ..search
    };
    let any = with(EventSearch::default());
    for limit in [1, 2, 50] {
        assert_eq!(
            all_events(&store, &any, limit).await,
            [mine, other, old],
            "{limit}"
        );
    }
    let of_acme = with(EventSearch {
        reseller: Some("acme".to_owned()),
        since: Some(SystemClock.now() - TimeDelta::minutes(1)),
        ..EventSearch::default()
    });
    assert_eq!(all_events(&store, &of_acme, 50).await, [mine]);
    let by_id = EventSearch {
        value: Some("found.exampl".to_owned()),
        ..EventSearch::default()
    };
    assert_eq!(all_events(&store, &by_id, 50).await, [] as [Uuid; 0]);
    let nothing = EventSearch {
        unmatched: true,
        ..EventSearch::default()
    };
    assert_eq!(all_events(&store, &nothing, 50).await.len(), 4);
    let all = store
        .search_events(&EventSearch::default(), None, 50)
        .await
        .unwrap();
    let counts = all
        .items
        .iter()
        .map(|event| (event.id == told, event.notifications));
    assert!(counts.clone().all(|(is_told, count)| is_told == (count == 1)));
    assert_eq!(counts.count(), 5);
}

#[testkit::database_test]
async fn what_a_caller_called_an_event_leads_to_it_without_its_reseller(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let mut named = Vec::new();
    for reseller in ["acme", "bolt", "crown"] {
        let event = unmatched(&pool, (reseller, "x.example"), 10).await;
        let name = if reseller == "bolt" {
            "order-18"
        } else {
            "order-17"
        };
        sqlx::query("INSERT INTO event_keys VALUES ('reseller/' || $1, $2, $3, '\\x01', now())")
            .bind(reseller)
            .bind(name)
            .bind(event)
            .execute(&pool)
            .await
            .unwrap();
        named.push(event);
    }
    run(
        &pool,
        "INSERT INTO event_keys VALUES ('key/1/0', 'order-17', gen_random_uuid(), '\\x01', now())",
    )
    .await;
    let ids = async |key: &str| -> Vec<Uuid> {
        let found = store.events_named(key).await.unwrap();
        found.iter().map(|event| event.id).collect()
    };
    assert_eq!(ids("order-17").await, [named[0], named[2]]);
    assert_eq!(ids("order-18").await, [named[1]]);
    assert_eq!(ids("order-19").await, [] as [Uuid; 0]);
}
