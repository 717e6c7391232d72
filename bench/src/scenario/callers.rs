//! The load test that the push service was specified with: 20 callers that each hand in 10,000 pushes one after another,
//! without a delay, to a Swrve that takes its usual time.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use simulators::swrve::Report;

use super::{Bench, stored};
use crate::exposition::Exposition;
use crate::load::{self, Load, Tally};
use crate::report::{Number, Row, Section, Target, Unit};
use crate::rig::{Overrides, Rig, Service};
use crate::sizes::Sizes;
use crate::tell;

/// As many as in the specified test.
const CALLERS: usize = 20;
/// Swrve's limit, in requests within any second.
const LIMIT: f64 = 300.0;
/// The slowest pace at which the end is still waited for, in sends a second.
const SLOWEST: u64 = 100;
/// What the last answer and what comes before the first send may take besides.
const BESIDES: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(500);

pub(super) fn expected(sizes: &Sizes) -> Duration {
    Duration::from_secs(pushes(sizes) / 245 + 15)
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let (rig, each) = (bench.rig, bench.sizes.each);
    let wanted = pushes(bench.sizes);
    rig.restart().await?;
    let none = Overrides::new();
    let swrve = rig.swrve().await?;
    let (_ingest, receiver) = rig.ingest(&none).await?;
    rig.retry_worker(&none).await?;
    let dispatcher = rig.dispatcher(&swrve, &none).await?;
    tell(format_args!(
        "callers: {CALLERS} times {each} pushes, about {} s",
        wanted / 245
    ));
    let start = Instant::now();
    let handing_in = Load::Each {
        connections: CALLERS,
        pushes: each,
    };
    let tally = tokio::spawn(async move { load::put(handing_in, &receiver).await });
    let finished = finished(rig, &dispatcher, wanted, start).await;
    let tally = tally.await.context("the load generator failed")??;
    rig.expect_all_alive().await?;
    let seen = Seen {
        tally,
        fullest: *finished.as_ref().unwrap_or(&f64::NAN),
        sent: stored::count(&rig.pool, "push_notifications WHERE status = 'SENT'").await?,
        report: swrve.report().await?,
        metrics: dispatcher.metrics().await?,
    };
    let mut section = Section::new("callers");
    if let Err(error) = finished {
        section.broken(format!("pushes are left over: {error}"));
    }
    add_receiving(&mut section, &seen);
    add_sending(&mut section, &seen);
    add_losses(&mut section, &seen, wanted);
    Ok(section)
}

fn pushes(sizes: &Sizes) -> u64 {
    sizes.each * CALLERS as u64
}

/// What is known at the end.
struct Seen {
    tally: Tally,
    /// Most sends that were seen in flight.
    fullest: f64,
    sent: u64,
    report: Report,
    metrics: Exposition,
}

/// Waits until everything is stored and nothing waits any more; tells how full the pool was seen.
async fn finished(rig: &Rig, dispatcher: &Service, wanted: u64, start: Instant) -> Result<f64> {
    let limit = BESIDES + Duration::from_secs(wanted / SLOWEST);
    let mut fullest = 0.0_f64;
    loop {
        let in_flight = dispatcher
            .metrics()
            .await?
            .value("postrider_push_sends_in_flight", None);
        fullest = fullest.max(in_flight.unwrap_or_default());
        if stored::count(&rig.pool, "push_notifications").await? >= wanted
            && stored::pushes_are_finished(&rig.pool).await?
        {
            return Ok(fullest);
        }
        ensure!(start.elapsed() < limit, "it took too long");
        tokio::time::sleep(POLL).await;
    }
}

fn add_receiving(section: &mut Section, seen: &Seen) {
    let tally = &seen.tally;
    section.row(Row::new(
        "pushes received",
        tally.accepted_per_second(),
        Unit::PerSecond,
    ));
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let row = Row::new(
            format!("time to receive a push, {name}"),
            tally.quantile_millis(quantile),
            Unit::Milliseconds,
        );
        // The specification gives 50 to 200 ms on average.
        section.row(row.target(Target::AtMost(200.0)));
    }
    section.row(Row::new(
        "time to receive a push, longest",
        tally.max_millis(),
        Unit::Milliseconds,
    ));
    section.row(Row::count("requests without a 202", tally.errors()).target(Target::AtMost(0.0)));
}

fn add_sending(section: &mut Section, seen: &Seen) {
    let (report, metrics) = (&seen.report, &seen.metrics);
    let pool = metrics
        .value("postrider_push_pool_size", None)
        .unwrap_or(f64::NAN);
    let rate = report.rate_per_second.unwrap_or(f64::NAN);
    section.row(
        Row::new("sends", rate, Unit::PerSecond)
            .target(Target::AtLeast(245.0))
            .beside([Number::new("one every 4 ms", 250.0, Unit::PerSecond)]),
    );
    section.row(
        Row::new(
            "most sends in any second",
            report.max_in_any_second as f64,
            Unit::Count,
        )
        .target(Target::AtMost(LIMIT)),
    );
    let gap = metrics
        .value("postrider_push_send_gap_min_seconds", None)
        .unwrap_or(f64::NAN);
    section.row(
        Row::new("smallest distance of send starts", gap * 1e3, Unit::Milliseconds)
            .target(Target::AtLeast(4.0)),
    );
    section.row(
        Row::new(
            "most sends in flight, at the simulator",
            report.max_concurrent as f64,
            Unit::Count,
        )
        .target(Target::AtMost(pool)),
    );
    section.row(Row::new(
        "most sends in flight, as the dispatcher said twice a second",
        seen.fullest,
        Unit::Count,
    ));
    let response = metrics
        .mean("postrider_swrve_response_seconds")
        .unwrap_or(f64::NAN);
    section.row(Row::new(
        "response time of Swrve on average",
        response * 1e3,
        Unit::Milliseconds,
    ));
    section.note(format!(
        "the pool has room for {pool} sends in flight (swrve.averageProcessingMillis / swrve.delayMillis); the simulator's response \
         times are those of the specified test: p50 983 ms, p75 2,513 ms, p95 3,883 ms, p99 5,956 ms, 7,701 ms at most."
    ));
}

fn add_losses(section: &mut Section, seen: &Seen, wanted: u64) {
    let report = &seen.report;
    let limited = report.by_status.get(&429).copied().unwrap_or_default();
    let lost = wanted.saturating_sub(seen.sent);
    for (measure, count) in [
        ("answers with 429", limited),
        ("accepted by Swrve twice", report.duplicates),
        ("handed in and not SENT at the end", lost),
    ] {
        section.row(Row::count(measure, count).target(Target::AtMost(0.0)));
    }
    if lost > 0 {
        section.broken(format!("{lost} pushes are not SENT at the end"));
    }
}
