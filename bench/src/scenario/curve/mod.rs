//! Accepting pushes: as many as go, and how long the answers take at rates up to past saturation.

mod closed;
mod open;

use std::time::Duration;

use anyhow::Result;

use super::{Bench, Floor};
use crate::report::Section;
use crate::sizes::Sizes;

/// Starting the services and emptying the tables.
const BEGINNING: Duration = Duration::from_secs(4);

pub(super) fn expected(sizes: &Sizes) -> Duration {
    let steps = sizes.push_rates.len();
    let measurements = closed::VARIANTS + steps;
    sizes.all_rounds(measurements) + BEGINNING * u32::try_from(measurements).unwrap_or(u32::MAX)
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("curve");
    let rates = bench
        .beside(&[Floor::Requests, Floor::Rows, Floor::SingleRows, Floor::Publishes])
        .await?;
    let times = bench.beside(&[Floor::RequestTime, Floor::CommitTime]).await?;
    closed::measure(bench, &rates, &mut section).await?;
    open::measure(bench, times, &mut section).await?;
    section.note(
        "only answers with 202 count. Pushes are sent at 250/s at most, so the queue of 10,000 is full within the warm-up \
         and what follows is stored as PENDING; with a queue that is never full every push is published as well.",
    );
    Ok(section)
}
