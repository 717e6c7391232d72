//! The measurements, one file each, and what they share.

mod arrivals;
mod breadth;
mod callers;
mod cpu;
mod curve;
mod dead_letters;
mod evenly;
mod flat_out;
mod growth;
mod memory;
mod neighbours;
mod pacing;
mod pages;
mod quota;
mod replicas;
mod reseller;
mod rounds;
mod stored;
mod strangers;
mod takeover;
pub(crate) mod turn;
mod volume;
mod waiting;
mod webpush;
mod xmin;

use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;

use crate::floors::{Floor, Floors};
use crate::report::{Number, Section};
use crate::rig::Rig;
use crate::sizes::Sizes;

/// A measurement that can be asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// What the machine does without Postrider: rows, messages, requests
    Floors,
    /// Accepting pushes: as many as go, and the times at rates up to past saturation
    Curve,
    /// The distance between sends, and the takeover by a standby
    Pacing,
    /// 20 callers that each hand in 10,000 pushes without a delay, all of which are sent at the pace
    Callers,
    /// From POST /events to the endpoints: as many as go, the times at rates up to past saturation
    Reseller,
    /// Whether quotas are kept exactly, and how soon a raised one is used while many wait
    Quota,
    /// What hostile connections, made-up keys and a busy reseller do to the portal and its other resellers
    Strangers,
    /// What flooding, hanging and failing subscriptions do to the others
    Neighbours,
    /// Ten thousand subscriptions instead of fifty: even traffic, promoting, and all that waits becoming due at once
    Breadth,
    /// Accepting, promoting, claiming and delivering while millions wait
    Growth,
    /// Another transaction that stays open for minutes: before, during, after
    Xmin,
    /// Memory of each service: at rest, under load, while a million waits
    Memory,
    /// CPU seconds for 1,000 deliveries, by process
    Cpu,
    /// Bytes of tables, indexes and log for one notification and one push, from accepted to delivered
    Volume,
    /// What a second and a third replica cost and bring
    Replicas,
    /// Lists and groups of many dead letters
    DeadLetters,
    /// Web Push: idle user agents, direct and stored messages, and all coming back at once
    Webpush,
    /// Each page of console and dashboard among as many dead letters and notifications, and fifty consoles left open
    Pages,
}

/// What a scenario measures with.
pub(crate) struct Bench<'a> {
    pub(crate) sizes: &'a Sizes,
    pub(crate) rig: &'a Rig,
    pub(crate) floors: &'a Floors,
}

impl Bench<'_> {
    async fn beside(&self, floors: &[Floor]) -> Result<Vec<Number>> {
        self.floors.beside(self.rig, floors).await
    }
}

impl Scenario {
    /// Every one, in the order in which they are measured.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied()
    }

    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value().expect("invariant: none is hidden");
        value.get_name().to_owned()
    }

    /// What it is about, in a line.
    pub(crate) fn about(self) -> String {
        let value = self.to_possible_value().expect("invariant: none is hidden");
        value.get_help().map(ToString::to_string).unwrap_or_default()
    }

    /// About how long it takes with these sizes.
    pub(crate) fn expected(self, sizes: &Sizes) -> Duration {
        match self {
            Self::Floors => Duration::from_secs(60),
            Self::Curve => curve::expected(sizes),
            Self::Pacing => pacing::expected(sizes),
            Self::Callers => callers::expected(sizes),
            Self::Reseller => reseller::expected(sizes),
            Self::Quota => quota::expected(sizes),
            Self::Neighbours => neighbours::expected(sizes),
            Self::Strangers => strangers::expected(sizes),
            Self::Breadth => breadth::expected(sizes),
            Self::Growth => growth::expected(sizes),
            Self::Xmin => xmin::expected(sizes),
            Self::Memory => memory::expected(sizes),
            Self::Cpu => cpu::expected(sizes),
            Self::Volume => volume::expected(sizes),
            Self::Replicas => replicas::expected(sizes),
            Self::DeadLetters => dead_letters::expected(sizes),
            Self::Webpush => webpush::expected(sizes),
            Self::Pages => pages::expected(sizes),
        }
    }

    /// Measures it. Nothing is running before.
    pub(crate) async fn measure(self, bench: &Bench<'_>) -> Result<Section> {
        match self {
            Self::Floors => {
                bench.beside(&Floor::ALL).await?;
                // Whatever was measured is told at the beginning of the report.
                Ok(Section::default())
            }
            Self::Curve => Box::pin(curve::measure(bench)).await,
            Self::Pacing => Box::pin(pacing::measure(bench)).await,
            Self::Callers => Box::pin(callers::measure(bench)).await,
            Self::Reseller => Box::pin(reseller::measure(bench)).await,
            Self::Quota => Box::pin(quota::measure(bench)).await,
            Self::Neighbours => Box::pin(neighbours::measure(bench)).await,
            Self::Strangers => Box::pin(strangers::measure(bench)).await,
            Self::Breadth => Box::pin(breadth::measure(bench)).await,
            Self::Growth => Box::pin(growth::measure(bench)).await,
            Self::Xmin => Box::pin(xmin::measure(bench)).await,
            Self::Memory => Box::pin(memory::measure(bench)).await,
            Self::Cpu => Box::pin(cpu::measure(bench)).await,
            Self::Volume => Box::pin(volume::measure(bench)).await,
            Self::Replicas => Box::pin(replicas::measure(bench)).await,
            Self::DeadLetters => Box::pin(dead_letters::measure(bench)).await,
            Self::Webpush => Box::pin(webpush::measure(bench)).await,
            Self::Pages => Box::pin(pages::measure(bench)).await,
        }
    }
}
