//! Lists and groups of dead letters: compared, for every filter, with what the rows themselves say.

use std::collections::BTreeMap;

use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use domain::clock::{Clock, SystemClock};
use sqlx::PgPool;
use store::{
    DeadLetterFilter, DeadLetterLane, DeadLetterOrder, DeadLetterReason, DeadLetterState, DeadLetterView,
    DeadLettersBy, Hours, Store,
};
use uuid::Uuid;

use crate::dead_letter_scene::make_dead_letters;

fn matches(filter: &DeadLetterFilter, letter: &DeadLetterView) -> bool {
    let same = |wanted: &Option<String>, found: Option<&str>| {
        wanted.as_deref().is_none_or(|text| found == Some(text))
    };
    let fingerprint = |wanted: &str| match wanted.strip_suffix('*') {
        Some(start) => letter.fingerprint.starts_with(start),
        None => letter.fingerprint == wanted,
    };
    filter.lane.is_none_or(|lane| lane == letter.lane)
        && filter.state.is_none_or(|state| state == letter.state)
        && filter.reason.is_none_or(|reason| reason == letter.reason)
        && filter.fingerprint.as_deref().is_none_or(fingerprint)
        && same(&filter.target, Some(&letter.target))
        && filter
            .subscription
            .is_none_or(|id| letter.subscription == Some(id))
        && same(&filter.reseller, letter.reseller.as_deref())
        && same(&filter.event_type, letter.event_type.as_deref())
        && same(&filter.prototype, letter.prototype.as_deref())
        && filter.since.is_none_or(|since| letter.created_at >= since)
        && filter.until.is_none_or(|until| letter.created_at < until)
        && filter.job.is_none_or(|job| letter.job == Some(job))
}

async fn all_dead_letters(pool: &PgPool, store: &Store) -> Vec<DeadLetterView> {
    let ids: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM dead_letters ORDER BY created_at, id")
        .fetch_all(pool)
        .await
        .unwrap();
    store.find_dead_letters(&ids).await.unwrap()
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// Filters of every kind, each alone and some together.
fn filters(now: DateTime<Utc>) -> Vec<DeadLetterFilter> {
    let none = DeadLetterFilter::default;
    let open = || DeadLetterFilter {
        state: Some(DeadLetterState::Open),
        ..none()
    };
    let ago = |minutes| Some(now - TimeDelta::minutes(minutes));
    vec![
        none(),
        open(),
        DeadLetterFilter {
            state: Some(DeadLetterState::Discarded),
            ..none()
        },
        DeadLetterFilter {
            lane: Some(DeadLetterLane::Push),
            ..open()
        },
        DeadLetterFilter {
            reason: Some(DeadLetterReason::GivenUp),
            ..open()
        },
        DeadLetterFilter {
            reason: Some(DeadLetterReason::Malformed),
            ..none()
        },
        DeadLetterFilter {
            fingerprint: text("delivery/dns"),
            ..open()
        },
        DeadLetterFilter {
            fingerprint: text("swrve/*"),
            ..open()
        },
        DeadLetterFilter {
            fingerprint: text("*"),
            ..none()
        },
        DeadLetterFilter {
            fingerprint: text("swrve/503"),
            ..open()
        },
        DeadLetterFilter {
            target: text("https://hooks-1.example"),
            ..open()
        },
        DeadLetterFilter {
            target: text("1"),
            fingerprint: text("swrve/503/4"),
            ..open()
        },
        DeadLetterFilter {
            reason: Some(DeadLetterReason::Failed),
            fingerprint: text("swrve/503/*"),
            ..open()
        },
        DeadLetterFilter {
            subscription: Some("00000000-0000-4000-8000-000000000003".parse().unwrap()),
            ..open()
        },
        DeadLetterFilter {
            reseller: text("reseller-1"),
            ..none()
        },
        DeadLetterFilter {
            reseller: text("reseller-1"),
            fingerprint: text("delivery/t*"),
            ..open()
        },
        DeadLetterFilter {
            event_type: text("domain.type2"),
            ..open()
        },
        DeadLetterFilter {
            prototype: text("prototype-2"),
            ..open()
        },
        DeadLetterFilter {
            prototype: text("unknown"),
            ..open()
        },
        DeadLetterFilter {
            since: ago(90),
            until: ago(33),
            ..open()
        },
        DeadLetterFilter {
            since: ago(200),
            until: ago(10),
            ..none()
        },
        DeadLetterFilter {
            until: ago(61),
            lane: Some(DeadLetterLane::Reseller),
            ..open()
        },
        DeadLetterFilter {
            since: ago(100),
            event_type: text("domain.type0"),
            ..open()
        },
        DeadLetterFilter {
            since: ago(10),
            until: ago(20),
            ..open()
        },
    ]
}

async fn page_through(
    store: &Store,
    filter: &DeadLetterFilter,
    order: DeadLetterOrder,
    limit: u32,
) -> Vec<DeadLetterView> {
    let (mut letters, mut cursor) = (Vec::new(), None);
    loop {
        let page = store
            .list_dead_letters(filter, order, cursor, limit)
            .await
            .unwrap();
        assert!(page.items.len() <= limit as usize);
        letters.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return letters;
        }
    }
}

#[testkit::database_test]
async fn the_pages_of_every_filter_hold_each_matching_dead_letter_once_and_in_order(pool: PgPool) {
    make_dead_letters(&pool, 400).await;
    let store = Store::from_pool(pool.clone());
    let all = all_dead_letters(&pool, &store).await;
    assert_eq!(all.len(), 400);
    for filter in filters(SystemClock.now()) {
        let mut expected: Vec<_> = all
            .iter()
            .filter(|letter| matches(&filter, letter))
            .cloned()
            .collect();
        let limit = if expected.len() > 100 { 100 } else { 7 };
        let oldest = page_through(&store, &filter, DeadLetterOrder::Oldest, limit).await;
        assert_eq!(oldest, expected, "{filter:?}");
        expected.reverse();
        let newest = page_through(&store, &filter, DeadLetterOrder::Newest, limit).await;
        assert_eq!(newest, expected, "{filter:?}");
    }
}

#[testkit::database_test]
async fn what_a_job_has_resolved_is_listed_and_counted_by_its_index_and_without_it(pool: PgPool) {
    make_dead_letters(&pool, 400).await;
    let store = Store::from_pool(pool.clone());
    let job = Uuid::from_u128(7);
    sqlx::query(
        "UPDATE dead_letters SET job_id = $1 WHERE state <> 'OPEN' AND reason IN ('FAILED', 'GIVEN_UP')",
    )
    .bind(job)
    .execute(&pool)
    .await
    .unwrap();
    let all = all_dead_letters(&pool, &store).await;
    let of_job = || DeadLetterFilter {
        job: Some(job),
        ..DeadLetterFilter::default()
    };
    let filters = [
        of_job(),
        DeadLetterFilter {
            state: Some(DeadLetterState::Replayed),
            ..of_job()
        },
        DeadLetterFilter {
            lane: Some(DeadLetterLane::Push),
            fingerprint: text("swrve/*"),
            ..of_job()
        },
        DeadLetterFilter {
            reseller: text("reseller-1"),
            ..of_job()
        },
        DeadLetterFilter {
            state: Some(DeadLetterState::Open),
            ..of_job()
        },
        DeadLetterFilter {
            job: Some(Uuid::from_u128(8)),
            ..of_job()
        },
    ];
    for has_index in [true, false] {
        if !has_index {
            sqlx::query("DROP INDEX dead_letters_job")
                .execute(&pool)
                .await
                .unwrap();
        }
        for filter in &filters {
            let mut expected: Vec<_> = all.iter().filter(|letter| matches(filter, letter)).collect();
            let oldest = page_through(&store, filter, DeadLetterOrder::Oldest, 7).await;
            assert_eq!(
                oldest.iter().collect::<Vec<_>>(),
                expected,
                "{has_index} {filter:?}"
            );
            expected.reverse();
            let newest = page_through(&store, filter, DeadLetterOrder::Newest, 7).await;
            assert_eq!(
                newest.iter().collect::<Vec<_>>(),
                expected,
                "{has_index} {filter:?}"
            );
            let groups = store.group_dead_letters(filter, 1_000).await.unwrap();
            assert_eq!(groups.total, expected.len() as u64, "{has_index} {filter:?}");
        }
        let resolved = all.iter().filter(|letter| letter.job == Some(job)).count();
        assert!(resolved > 10, "{resolved} of the job");
    }
}

#[testkit::database_test]
async fn the_groups_of_every_filter_are_those_of_its_dead_letters(pool: PgPool) {
    make_dead_letters(&pool, 1_200).await;
    let store = Store::from_pool(pool.clone());
    let all = all_dead_letters(&pool, &store).await;
    for filter in filters(SystemClock.now()) {
        let mut expected: Vec<(DeadLetterLane, String, String, Vec<&DeadLetterView>)> = Vec::new();
        for letter in all.iter().filter(|letter| matches(&filter, letter)) {
            let known = expected.iter_mut().find(|group| {
                (group.0, &group.1, &group.2) == (letter.lane, &letter.fingerprint, &letter.target)
            });
            match known {
                Some(group) => group.3.push(letter),
                None => expected.push((
                    letter.lane,
                    letter.fingerprint.clone(),
                    letter.target.clone(),
                    vec![letter],
                )),
            }
        }
        let groups = store.group_dead_letters(&filter, 1_000).await.unwrap();
        let total: usize = expected.iter().map(|group| group.3.len()).sum();
        assert_eq!(
            (groups.total, groups.groups.len(), groups.at_least),
            (total as u64, expected.len(), false),
            "{filter:?}"
        );
        let counted = store.count_dead_letters(&filter, 10_000).await.unwrap();
        assert_eq!(counted, (groups.total, false), "{filter:?}");
        for group in &groups.groups {
            let (.., letters) = expected
                .iter()
                .find(|e| (e.0, &e.1, &e.2) == (group.lane, &group.fingerprint, &group.target))
                .unwrap();
            let (first, last) = (letters.first().unwrap(), letters.last().unwrap());
            assert_eq!(group.dead_letters, letters.len() as u64, "{filter:?}");
            assert_eq!(
                (group.first_seen, group.last_seen),
                (first.created_at, last.created_at)
            );
            assert_eq!(
                (group.sample, &group.detail),
                (last.id, &last.detail),
                "{filter:?}"
            );
        }
        let counts: Vec<u64> = groups.groups.iter().map(|group| group.dead_letters).collect();
        assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
        let two = store.group_dead_letters(&filter, 2).await.unwrap();
        assert_eq!(
            (two.total, &two.groups[..]),
            (groups.total, &groups.groups[..groups.groups.len().min(2)])
        );
    }
}

#[testkit::database_test]
async fn counting_that_was_given_up_says_so_where_nothing_counted_matches(pool: PgPool) {
    make_dead_letters(&pool, 300).await;
    let store = Store::from_pool(pool.clone());
    let filter = DeadLetterFilter {
        reseller: text("reseller-0"),
        target: text("nowhere"),
        ..DeadLetterFilter::default()
    };
    let counted = async |most| store.count_dead_letters(&filter, most).await.unwrap();
    assert_eq!(counted(10).await, (0, true));
    assert_eq!(counted(1_000).await, (0, false));
}

#[testkit::database_test]
async fn groups_of_which_none_was_found_before_counting_was_given_up_say_so(pool: PgPool) {
    let store = Store::from_pool(pool.clone());
    let of_hello = DeadLetterFilter {
        prototype: text("Hello"),
        target: text("nowhere"),
        ..DeadLetterFilter::default()
    };
    let grouped = async || {
        let found = store.group_dead_letters(&of_hello, 10).await.unwrap();
        (found.groups.len(), found.total, found.at_least)
    };
    assert_eq!(grouped().await, (0, 0, false));
    sqlx::query(
        "INSERT INTO dead_letters (lane, reason, fingerprint, prototype, detail)
         SELECT 'push', 'REJECTED', 'broker/delivery_limit', 'Hello', 'given up' FROM generate_series(1, 100000)",
    )
    .execute(&pool)
    .await
    .unwrap();
    assert_eq!(grouped().await, (0, 0, true));
}

/// The last two days, the present hour included.
fn two_days() -> Hours {
    let hour = SystemClock.now().duration_trunc(TimeDelta::hours(1)).unwrap();
    (hour - TimeDelta::hours(47), 48)
}

/// How many of these were written in each hour.
fn by_hour(letters: &[&DeadLetterView], (since, hours): Hours) -> Vec<u64> {
    let mut counts = vec![0; hours];
    for letter in letters.iter().filter(|letter| letter.created_at >= since) {
        let hour = (letter.created_at - since).num_hours();
        if let Some(count) = counts.get_mut(usize::try_from(hour).unwrap()) {
            *count += 1;
        }
    }
    counts
}

#[testkit::database_test]
async fn the_hours_of_every_filter_are_those_of_its_dead_letters(pool: PgPool) {
    make_dead_letters(&pool, 1_200).await;
    let store = Store::from_pool(pool.clone());
    let all = all_dead_letters(&pool, &store).await;
    let hours = two_days();
    let untimed = filters(SystemClock.now()).into_iter();
    let untimed = untimed.filter(|it| it.since.is_none() && it.until.is_none() && it.job.is_none());
    for filter in untimed {
        let matching: Vec<&DeadLetterView> = all.iter().filter(|letter| matches(&filter, letter)).collect();
        for by in [DeadLettersBy::Cause, DeadLettersBy::Endpoint] {
            let found = store
                .dead_letter_growth(&filter, hours, (by, 1_000))
                .await
                .unwrap();
            assert_eq!(
                (&found.counts, found.at_least),
                (&by_hour(&matching, hours), false),
                "{filter:?}"
            );
            let mut expected: BTreeMap<(&str, &str, &str), Vec<&DeadLetterView>> = BTreeMap::new();
            for letter in &matching {
                let fingerprint = match by {
                    DeadLettersBy::Cause => letter.fingerprint.as_str(),
                    DeadLettersBy::Endpoint => "",
                };
                let key = (letter.lane.as_str(), fingerprint, letter.target.as_str());
                expected.entry(key).or_default().push(letter);
            }
            expected.retain(|_, letters| by_hour(letters, hours).iter().any(|count| *count > 0));
            assert_eq!(found.groups.len(), expected.len(), "{filter:?}");
            for group in &found.groups {
                let key = (
                    group.lane.as_str(),
                    group.fingerprint.as_str(),
                    group.target.as_str(),
                );
                assert_eq!(
                    group.counts,
                    by_hour(&expected[&key], hours),
                    "{filter:?}, {key:?}"
                );
            }
            let sums: Vec<u64> = found
                .groups
                .iter()
                .map(|group| group.counts.iter().sum())
                .collect();
            assert!(sums.is_sorted_by(|a, b| a >= b), "{sums:?}");
        }
    }
}

#[testkit::database_test]
async fn the_resellers_of_every_filter_are_those_of_its_dead_letters(pool: PgPool) {
    make_dead_letters(&pool, 1_200).await;
    let store = Store::from_pool(pool.clone());
    let all = all_dead_letters(&pool, &store).await;
    let hours = two_days();
    for filter in filters(SystemClock.now()) {
        let mut expected: BTreeMap<&str, Vec<&DeadLetterView>> = BTreeMap::new();
        for letter in all.iter().filter(|letter| matches(&filter, letter)) {
            if let Some(reseller) = &letter.reseller {
                expected.entry(reseller).or_default().push(letter);
            }
        }
        let found = store
            .dead_letters_by_reseller(&filter, hours, 1_000)
            .await
            .unwrap();
        assert_eq!(
            (found.total, found.resellers.len()),
            (expected.len() as u64, expected.len()),
            "{filter:?}"
        );
        for of in &found.resellers {
            let letters = &expected[of.reseller.as_str()];
            let last = letters.last().unwrap();
            assert_eq!(
                (of.dead_letters, of.at_least),
                (letters.len() as u64, false),
                "{filter:?}"
            );
            assert_eq!(
                (of.last_seen, of.sample, &of.detail),
                (last.created_at, last.id, &last.detail),
                "{filter:?}"
            );
            assert_eq!(
                (of.first_seen, &of.hours),
                (letters[0].created_at, &by_hour(letters, hours)),
                "{filter:?}"
            );
            let times = |fingerprint: &str| {
                letters
                    .iter()
                    .filter(|one| one.fingerprint == fingerprint)
                    .count()
            };
            let most = letters.iter().map(|one| times(&one.fingerprint)).max();
            assert_eq!(Some(times(&of.fingerprint)), most, "{filter:?}");
        }
        let counts: Vec<u64> = found.resellers.iter().map(|of| of.dead_letters).collect();
        assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
        let one = store.dead_letters_by_reseller(&filter, hours, 1).await.unwrap();
        assert_eq!(
            (one.total, &one.resellers[..]),
            (found.total, &found.resellers[..found.resellers.len().min(1)])
        );
    }
}

/// Dead letters that come while an operator pages through are neither shown twice nor in the way.
#[testkit::database_test]
async fn a_list_goes_on_where_it_was_although_dead_letters_come_and_go(pool: PgPool) {
    make_dead_letters(&pool, 60).await;
    let store = Store::from_pool(pool.clone());
    let filter = DeadLetterFilter::default();
    let page = store
        .list_dead_letters(&filter, DeadLetterOrder::Newest, None, 20)
        .await
        .unwrap();
    let before = all_dead_letters(&pool, &store).await;
    make_dead_letters(&pool, 5).await;
    sqlx::query("DELETE FROM dead_letters WHERE id = $1")
        .bind(page.items[19].id)
        .execute(&pool)
        .await
        .unwrap();
    let seen: Vec<Uuid> = page.items.iter().map(|letter| letter.id).collect();
    let rest = store
        .list_dead_letters(&filter, DeadLetterOrder::Newest, page.next, 200)
        .await
        .unwrap();
    let old: Vec<Uuid> = before.iter().rev().skip(20).map(|letter| letter.id).collect();
    let found: Vec<Uuid> = rest.items.iter().map(|letter| letter.id).collect();
    assert!(old.iter().all(|id| found.contains(id)) && seen.iter().all(|id| !found.contains(id)));
}
