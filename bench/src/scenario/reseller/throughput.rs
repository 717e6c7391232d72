//! Events a second that go all the way: accepted, delivered, answered, recorded.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Result;

use super::floors::Floors;
use super::stored::{self, Moment};
use super::{Lane, STRAGGLERS, answering};
use crate::args::Args;
use crate::load::{self, Gate, Load, Tally, Target};
use crate::receiver::Receiver;
use crate::report::{Row, Section, Target as Bound, Unit};
use crate::rig::{Overrides, Rig, Service};
use crate::{cpu, tell};

/// The issue asks for this many.
const WANTED: f64 = 3_000.0;
/// Subscriptions that share the load.
const SUBSCRIPTIONS: usize = 50;

/// How events are handed in.
struct Variant {
    name: &'static str,
    batch: Option<usize>,
    connections: usize,
    /// Events that may be accepted and not delivered yet. Without a bound the faster accepting would take the CPU from the
    /// slower delivering, and the number would be that of neither.
    under_way: usize,
}

const VARIANTS: [Variant; 2] = [
    Variant {
        name: "POST /events",
        batch: None,
        connections: 64,
        under_way: 1_024,
    },
    Variant {
        name: "POST /events/batch of 100",
        batch: Some(100),
        connections: 8,
        under_way: 2_000,
    },
];

/// What was seen in one round.
struct Round {
    tally: Tally,
    sent: f64,
    /// CPU microseconds for each notification sent, by who used them.
    cpu: Vec<(&'static str, f64)>,
}

pub(super) async fn measure(
    args: &Args,
    rig: &Rig,
    receiver: &Receiver,
    floors: &Floors,
    section: &mut Section,
) -> Result<()> {
    for variant in &VARIANTS {
        let lane = Lane::start(rig, &answering(receiver, SUBSCRIPTIONS), 1, Overrides::new()).await?;
        let (mut rounds, mut accepted) = (Vec::new(), 0);
        let gate = Gate::new(variant.under_way);
        receiver.restart(Some(gate.clone()));
        let target = lane.events(SUBSCRIPTIONS, variant.batch, Some(gate));
        for number in 1..=args.rounds {
            tell(format_args!(
                "reseller, throughput, {}: round {number} of {}",
                variant.name, args.rounds
            ));
            let warmed = load::put(closed(variant, args.warm_up()), &target).await?;
            let round = round(args, rig, &lane, variant, &target).await?;
            accepted += [&warmed, &round.tally]
                .map(|tally| (tally.accepted + tally.accepted_unmeasured) * variant.batch.unwrap_or(1) as u64)
                .iter()
                .sum::<u64>();
            rounds.push(round);
            lane.expect_alive(rig).await?;
        }
        check(rig, receiver, variant, accepted, section).await?;
        rig.stop_all().await;
        add_rows(section, variant, &rounds, floors);
    }
    section.note(
        "throughput: a notification counts when its row is SENT and its attempt recorded, by the time of its end. So many \
         events are kept under way that the lane never waits for work: 1,024 of single ones, 2,000 of batches.",
    );
    Ok(())
}

async fn round(args: &Args, rig: &Rig, lane: &Lane, variant: &Variant, target: &Target) -> Result<Round> {
    let before = cpu_times(lane);
    let from = Moment::now()?;
    let tally = load::put(closed(variant, args.sustained()), target).await?;
    let after = cpu_times(lane);
    let to = from.plus(args.sustained());
    stored::settled(&rig.pool, STRAGGLERS).await?;
    let sent = stored::sent_within(&rig.pool, from, to).await?;
    let micros =
        |before: Duration, after: Duration| (after - before).as_secs_f64() * 1e6 / sent.max(1) as f64;
    let cpu = before.iter().zip(&after);
    Ok(Round {
        sent: sent as f64 / args.sustained().as_secs_f64(),
        cpu: cpu
            .map(|((who, before), (_, after))| (*who, micros(*before, *after)))
            .collect(),
        tally,
    })
}

fn closed(variant: &Variant, measured: Duration) -> Load {
    Load::Closed {
        connections: variant.connections,
        warm_up: Duration::ZERO,
        measured,
    }
}

fn cpu_times(lane: &Lane) -> [(&'static str, Duration); 5] {
    let of = |services: &[Service]| {
        services
            .iter()
            .map(|service| cpu::time_of(service.process.pid))
            .sum()
    };
    [
        ("ingest-api", cpu::time_of(lane.ingest.process.pid)),
        ("dispatcher", of(&lane.dispatchers)),
        ("retry-worker", of(&lane.retry_workers)),
        ("load generator and receiver", cpu::time_of(std::process::id())),
        ("whole machine", cpu::time_of_machine()),
    ]
}

/// Every accepted event is stored, delivered and recorded once.
async fn check(
    rig: &Rig,
    receiver: &Receiver,
    variant: &Variant,
    accepted: u64,
    section: &mut Section,
) -> Result<()> {
    stored::settled(&rig.pool, STRAGGLERS).await?;
    let arrivals = receiver.arrivals();
    let distinct: HashSet<u64> = arrivals.iter().map(|arrival| arrival.number).collect();
    let sent = stored::count_of(&rig.pool, "SENT").await?;
    let stored = stored::events(&rig.pool).await?;
    if stored < accepted || sent < stored || (distinct.len() as u64) < stored {
        section.broken.push(format!(
            "{}: {accepted} events were accepted, {stored} are stored, {sent} notifications are SENT, {} have arrived",
            variant.name,
            distinct.len()
        ));
    }
    let again = arrivals.len() - distinct.len();
    section.row(Row::new(
        format!("delivered more than once, {}", variant.name),
        again as f64,
        Unit::Count,
    ));
    Ok(())
}

fn add_rows(section: &mut Section, variant: &Variant, rounds: &[Round], floors: &Floors) {
    let name = variant.name;
    let rates: Vec<f64> = rounds.iter().map(|round| round.sent).collect();
    section.row(
        Row::median(
            format!(
                "delivered and recorded, {name}, {} connections",
                variant.connections
            ),
            &rates,
            Unit::PerSecond,
        )
        .target(Bound::AtLeast(WANTED))
        .floor(floors.of_delivery()),
    );
    let errors: u64 = rounds.iter().map(|round| round.tally.errors()).sum();
    section.row(
        Row::new(format!("not accepted, {name}"), errors as f64, Unit::Count).target(Bound::AtMost(0.0)),
    );
    let who = rounds.first().map(|round| &round.cpu);
    for (index, (who, _)) in who.into_iter().flatten().enumerate() {
        let micros: Vec<f64> = rounds.iter().map(|round| round.cpu[index].1).collect();
        section.row(Row::median(
            format!("CPU time per notification, {who}, {name}"),
            &micros,
            Unit::CpuMicros,
        ));
    }
    if let Some(round) = rounds.iter().find(|round| round.tally.errors() > 0) {
        section.note(format!("{name}: {}", round.tally.describe_errors()));
    }
}
