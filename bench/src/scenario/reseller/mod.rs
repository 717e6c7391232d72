//! The reseller lane, from `POST /events` to the endpoints of resellers: how much and how fast.

mod steps;
mod throughput;

use std::time::Duration;

use anyhow::Result;

use super::{Bench, Floor};
use crate::receiver::Receiver;
use crate::report::Section;
use crate::sizes::Sizes;

pub(super) fn expected(sizes: &Sizes) -> Duration {
    const SETTLING: Duration = Duration::from_secs(2);
    let measurements = 2 + sizes.event_rates.len();
    sizes.all_rounds(measurements) + SETTLING * u32::try_from(measurements).unwrap_or(u32::MAX)
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("reseller");
    let rates = bench
        .beside(&[Floor::Posts, Floor::EventRows, Floor::Relayed])
        .await?;
    let times = bench
        .beside(&[Floor::RequestTime, Floor::CommitTime, Floor::RelayTime])
        .await?;
    let receiver = Receiver::start()?;
    throughput::measure(bench, &receiver, rates, &mut section).await?;
    steps::measure(bench, &receiver, times, &mut section).await?;
    section.note(
        "the receiver is a thread of the load generator: it reads each delivery, notes it and answers 200 at once, without \
         verifying the signature. Everything shares the machine.",
    );
    Ok(section)
}
