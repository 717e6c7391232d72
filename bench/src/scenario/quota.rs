//! Daily quotas, with three dispatchers and three retry-workers at once: whether one is kept exactly while the queue is always
//! full, and how soon and in which order a raised one is used up while 100,000 or more wait for their day.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use chrono::Timelike as _;
use domain::clock::{Clock as _, SystemClock};

use super::stored::{self, Since};
use super::waiting::{self, Waits};
use super::{Bench, growth};
use crate::load::{self, Load};
use crate::receiver::{Arrival, Receiver};
use crate::report::{Row, Section, Target, Unit};
use crate::rig::{Lane, Setup, Subscriber, overrides};
use crate::sizes::Sizes;
use crate::tell;

const REPLICAS: usize = 3;
const SUBSCRIPTIONS: usize = 20;
const QUOTA: usize = 100;
/// Events for each subscription.
const EVENTS: usize = 3 * QUOTA;
/// Small, so that the promoters of all retry-workers have work, too.
const QUEUE_CAPACITY: &str = "200";

/// What is handed in beyond the quota that is raised; what is to wait besides is inserted by the server itself, behind it.
const WAITING: usize = 100_000;
/// By how much it is raised.
const RAISED: usize = 10_000;
/// How soon a changed limit holds.
const SOON: Duration = Duration::from_secs(60);
/// From one look at how much has arrived to the next.
const LOOKS: Duration = Duration::from_millis(20);
/// How long nothing more may arrive before the raised quota counts as used up.
const QUIET: Duration = Duration::from_secs(5);

pub(super) fn expected(sizes: &Sizes) -> Duration {
    Duration::from_secs(120 + inserted(sizes) / waiting::PER_SECOND)
}

/// What of that which waits is not handed in.
fn inserted(sizes: &Sizes) -> u64 {
    sizes.in_line.saturating_sub(WAITING as u64)
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("quota");
    let inserted = inserted(bench.sizes);
    if inserted > 0 {
        growth::expect_room(bench.rig, "quota", inserted, "--in-line").await?;
    }
    let zone = zone_at_noon();
    let receiver = Receiver::start()?;
    kept(bench, &receiver, &zone, &mut section).await?;
    raised(bench, &receiver, &zone, &mut section).await?;
    section.note(format!(
        "{REPLICAS} dispatchers and {REPLICAS} retry-workers, a queue of {QUEUE_CAPACITY}. The day is that of {zone}, where it is \
         about noon."
    ));
    Ok(section)
}

async fn start<'a>(bench: &Bench<'a>, subscribers: &[Subscriber], zone: &str) -> Result<Lane> {
    let setup = Setup {
        replicas: REPLICAS,
        overrides: overrides([
            ("POSTRIDER__RESELLER__QUEUE__CAPACITY", QUEUE_CAPACITY),
            ("POSTRIDER__RESELLER__QUOTA__TIME_ZONE", zone),
        ]),
        ..Setup::default()
    };
    Lane::fresh(bench.rig, subscribers, setup).await
}

/// One subscription, 100,000 notifications or more beyond its quota, which is then raised by 10,000.
async fn raised(bench: &Bench<'_>, receiver: &Receiver, zone: &str, section: &mut Section) -> Result<()> {
    const BATCH: usize = 100;
    let rig = bench.rig;
    let in_line = bench.sizes.in_line;
    tell(format_args!("quota, raised while {in_line} wait"));
    let subscriber = Subscriber {
        url: receiver.url(0),
        daily_quota: Some(QUOTA as i32),
        ..Subscriber::default()
    };
    let lane = start(bench, &[subscriber], zone).await?;
    receiver.restart(None);
    let since = Since::now()?;
    // One connection, so that the numbers of the events are in the order in which they are accepted.
    let load = Load::Exactly {
        connections: 1,
        pushes: ((WAITING + QUOTA) / BATCH) as u64,
    };
    load::put(load, &lane.events(0, 1, Some(BATCH), None)).await?;
    stored::settled(&rig.pool, since).await?;
    let beyond = stored::count(&rig.pool, "notifications WHERE status = 'SCHEDULED'").await?;
    ensure!(
        usize::try_from(beyond)? >= WAITING,
        "only {beyond} notifications wait for their day"
    );
    let inserted = inserted(bench.sizes);
    if inserted > 0 {
        tell(format_args!("quota: inserting {inserted} more"));
        waiting::insert(&rig.pool, Waits::InLine, inserted).await?;
    }
    let before = receiver.count();

    let subscription = stored::only_subscription(&rig.pool).await?.to_string();
    let quota = (QUOTA + RAISED).to_string();
    let asked = Instant::now();
    rig.call(&["quotas", "set", &subscription, "--daily-quota", &quota])
        .await?;
    let set = asked.elapsed();
    let first = arrived(receiver, before + 1, asked).await;
    let all = arrived(receiver, before + RAISED, asked).await;
    tokio::time::sleep(QUIET).await;
    rig.expect_all_alive().await?;
    rig.stop_all().await;

    let arrivals = receiver.arrivals();
    let seconds = |measure: &str, value: Option<Duration>| {
        Row::new(
            format!("{in_line} waiting, quota raised by {RAISED}: {measure}"),
            value.map_or(f64::NAN, |value| value.as_secs_f64()),
            Unit::Seconds,
        )
    };
    let count = |measure: &str, value: usize| {
        Row::new(
            format!("{in_line} waiting, quota raised by {RAISED}: {measure}"),
            value as f64,
            Unit::Count,
        )
    };
    section.row(seconds("postrider quotas set", Some(set)));
    section.row(seconds("until the first delivery", first).target(Target::AtMost(SOON.as_secs_f64())));
    section.row(seconds("until all of it is used", all));
    section.row(
        count(
            "deliveries past it",
            arrivals.len().saturating_sub(QUOTA + RAISED),
        )
        .target(Target::AtMost(0.0)),
    );
    section.row(count("deliveries", arrivals.len()).target(Target::AtLeast((QUOTA + RAISED) as f64)));
    section.row(
        count(
            "delivered before an older one that waits on",
            passed_over(&arrivals),
        )
        .target(Target::AtMost(0.0)),
    );
    Ok(())
}

/// How long after `asked` so many deliveries had arrived; `None` when that took too long.
async fn arrived(receiver: &Receiver, count: usize, asked: Instant) -> Option<Duration> {
    while receiver.count() < count {
        if asked.elapsed() > SOON * 3 {
            return None;
        }
        tokio::time::sleep(LOOKS).await;
    }
    Some(asked.elapsed())
}

/// How many were delivered although an older one was not: the numbers of those delivered oldest first leave no gap.
fn passed_over(arrivals: &[Arrival]) -> usize {
    let mut numbers: Vec<u64> = arrivals.iter().map(|arrival| arrival.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let Some(first) = numbers.first().copied() else {
        return 0;
    };
    (first..)
        .zip(&numbers)
        .filter(|(due, number)| due != *number)
        .count()
}

/// 20 subscriptions, three times as many events as the quota allows.
async fn kept(bench: &Bench<'_>, receiver: &Receiver, zone: &str, section: &mut Section) -> Result<()> {
    let rig = bench.rig;
    tell("quota, kept");
    let subscribers: Vec<Subscriber> = (0..SUBSCRIPTIONS)
        .map(|number| Subscriber {
            url: receiver.url(number),
            daily_quota: Some(QUOTA as i32),
            ..Subscriber::default()
        })
        .collect();
    let lane = start(bench, &subscribers, zone).await?;
    receiver.restart(None);
    let since = Since::now()?;
    let load = Load::Exactly {
        connections: SUBSCRIPTIONS,
        pushes: (SUBSCRIPTIONS * EVENTS) as u64,
    };
    let tally = load::put(load, &lane.events(0, SUBSCRIPTIONS, None, None)).await?;
    stored::settled(&rig.pool, since).await?;
    rig.expect_all_alive().await?;
    rig.stop_all().await;

    let mut delivered: HashMap<usize, usize> = HashMap::new();
    for arrival in receiver.arrivals() {
        *delivered.entry(arrival.to).or_default() += 1;
    }
    let over: usize = delivered.values().map(|count| count.saturating_sub(QUOTA)).sum();
    let total: usize = delivered.values().sum();
    let scheduled = stored::count(&rig.pool, "notifications WHERE status = 'SCHEDULED'").await?;
    let row = |measure: &str, value: usize, target| {
        Row::new(
            format!("quota of {QUOTA} for {SUBSCRIPTIONS} subscriptions: {measure}"),
            value as f64,
            Unit::Count,
        )
        .target(target)
    };
    section.row(row("deliveries past it", over, Target::AtMost(0.0)));
    section.row(row(
        "deliveries",
        total,
        Target::AtLeast((SUBSCRIPTIONS * QUOTA) as f64),
    ));
    section.row(row(
        "left to the next days",
        usize::try_from(scheduled)?,
        Target::AtLeast((SUBSCRIPTIONS * (EVENTS - QUOTA)) as f64),
    ));
    let stored = stored::count(&rig.pool, "events").await?;
    if stored < tally.accepted {
        section.broken(format!(
            "quota: {} events were accepted, {stored} are stored",
            tally.accepted
        ));
    }
    section.note(format!(
        "kept: {EVENTS} events for each subscription as fast as they are accepted."
    ));
    Ok(())
}

/// A time zone whose day does not end during the run.
fn zone_at_noon() -> String {
    noon_zone(SystemClock.now().hour())
}

/// The zone in which it is noon at this hour of UTC. The names count from the other side: `Etc/GMT-3` is ahead of UTC.
fn noon_zone(hour: u32) -> String {
    match hour {
        12 => "Etc/UTC".to_owned(),
        ..12 => format!("Etc/GMT-{}", 12 - hour),
        _ => format!("Etc/GMT+{}", hour - 12),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_delivered_before_an_older_one_counts() {
        let arrival = |number| Arrival {
            to: 0,
            number,
            posted: 0,
            arrived: 0,
        };
        let passed = |numbers: &[u64]| passed_over(&numbers.iter().copied().map(arrival).collect::<Vec<_>>());
        assert_eq!(passed(&[7, 5, 6, 6]), 0, "in any order, and twice");
        assert_eq!(passed(&[5, 6, 8, 9]), 2);
        assert_eq!(passed(&[]), 0);
    }

    #[test]
    fn it_is_noon_somewhere() {
        for (hour, zone) in [
            (0, "Etc/GMT-12"),
            (9, "Etc/GMT-3"),
            (12, "Etc/UTC"),
            (23, "Etc/GMT+11"),
        ] {
            assert_eq!(noon_zone(hour), zone);
        }
    }
}
