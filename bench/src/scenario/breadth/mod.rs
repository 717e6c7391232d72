//! Whether ten thousand subscriptions cost more than fifty: with even traffic, when what waits for each is promoted, and when
//! all of it becomes due at once.

mod even;
mod promoting;
mod recovery;

use std::time::Duration;

use anyhow::Result;

use super::{Bench, Floor};
use crate::receiver::Receiver;
use crate::report::markdown::with_unit;
use crate::report::{Row, Section, Unit};
use crate::rig::{Subscriber, answering};
use crate::sizes::Sizes;

/// What many are compared with.
const FEW: u32 = 50;
/// Subscriptions of a reseller, all of which get its events.
const EACH: u32 = 10;

pub(super) fn expected(sizes: &Sizes) -> Duration {
    even::expected(sizes) + promoting::expected(sizes) + recovery::expected(sizes)
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("breadth");
    let floors = bench.beside(&[Floor::EventRows, Floor::Relayed]).await?;
    let receiver = Receiver::start()?;
    even::measure(bench, &receiver, floors, &mut section).await?;
    promoting::measure(bench, &receiver, &mut section).await?;
    recovery::measure(bench, &receiver, &mut section).await?;
    bench.rig.restart().await?;
    section.note(format!(
        "a reseller has {EACH} subscriptions, all of which get its events; the endpoint of every one is the same receiver, under \
         a path of its own."
    ));
    Ok(section)
}

/// So many subscriptions, of a tenth as many resellers.
fn subscribers(receiver: &Receiver, count: u32) -> Vec<Subscriber> {
    let mut subscribers = answering(receiver, count as usize);
    for (number, subscriber) in subscribers.iter_mut().enumerate() {
        subscriber.reseller = Some(number / EACH as usize);
    }
    subscribers
}

/// How the line of so many subscriptions is named.
fn name(subscriptions: u32) -> String {
    with_unit(f64::from(subscriptions), Unit::Count)
}

/// How many times as much each round gave as the few did.
fn compared(rounds: &[f64], few: f64) -> Row {
    let compared: Vec<f64> = rounds.iter().map(|rate| rate / few).collect();
    let measure = format!("compared with {FEW}");
    Row::median(measure, &compared, Unit::Times)
}
