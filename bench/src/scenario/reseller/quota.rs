//! Whether a daily quota is kept exactly, with three dispatchers and three retry-workers at once and a queue that is
//! always full.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;

use super::super::Bench;
use super::super::stored::{self, Since};
use crate::load::{self, Load};
use crate::receiver::Receiver;
use crate::report::{Row, Section, Target, Unit};
use crate::rig::{Lane, Setup, Subscriber, overrides};
use crate::tell;

const REPLICAS: usize = 3;
const SUBSCRIPTIONS: usize = 20;
const QUOTA: usize = 100;
/// Events for each subscription.
const EVENTS: usize = 3 * QUOTA;
/// Small, so that the promoters of all retry-workers have work, too.
const QUEUE_CAPACITY: &str = "200";

pub(super) async fn measure(bench: &Bench<'_>, receiver: &Receiver, section: &mut Section) -> Result<()> {
    let rig = bench.rig;
    tell("reseller, quota");
    let subscribers: Vec<Subscriber> = (0..SUBSCRIPTIONS)
        .map(|number| Subscriber {
            url: receiver.url(number),
            daily_quota: Some(QUOTA as i32),
            ..Subscriber::default()
        })
        .collect();
    let zone = zone_at_noon()?;
    let settings = overrides([
        ("POSTRIDER__RESELLER__QUEUE__CAPACITY", QUEUE_CAPACITY),
        ("POSTRIDER__RESELLER__QUOTA__TIME_ZONE", &zone),
    ]);
    rig.restart().await?;
    rig.subscribe(&subscribers).await?;
    let setup = Setup {
        replicas: REPLICAS,
        overrides: settings,
        ..Setup::default()
    };
    let lane = Lane::start(rig, setup).await?;
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
    let scheduled = stored::notifications_that_are(&rig.pool, "SCHEDULED").await?;
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
    let stored = stored::events(&rig.pool).await?;
    if stored < tally.accepted {
        section.broken(format!(
            "quota: {} events were accepted, {stored} are stored",
            tally.accepted
        ));
    }
    section.note(format!(
        "quota: {EVENTS} events for each subscription as fast as they are accepted, {REPLICAS} dispatchers and {REPLICAS} \
         retry-workers, a queue of {QUEUE_CAPACITY}. The day is that of {zone}, where it is about noon."
    ));
    Ok(())
}

/// A time zone whose day does not end during the run.
fn zone_at_noon() -> Result<String> {
    let hour = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / 3600 % 24;
    Ok(noon_zone(hour))
}

/// The zone in which it is noon at this hour of UTC. The names count from the other side: `Etc/GMT-3` is ahead of UTC.
fn noon_zone(hour: u64) -> String {
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
