//! The distance between sends over a long run, in the middle of which the sender is killed and its standby takes over.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use simulators::swrve::{Received, ReceivedPage, Report};
use tokio::task::JoinHandle;

use super::arrivals::{self, Findings};
use super::takeover::{self, MARKER, Takeover};
use super::{Bench, stored};
use crate::exposition::Exposition;
use crate::load::{self, Load, Target as Receiver};
use crate::report::{Number, Row, Section, Target, Unit};
use crate::rig::{Overrides, Swrve};
use crate::sizes::Sizes;
use crate::{http, tell};

/// Pushes that come first, so that there is always work; well below the capacity of the queue.
const HEAD_START: u64 = 4_000;
/// Pushes a second after that: a little over what can be sent.
const FEED_RATE: u32 = 252;
const FEED_CONNECTIONS: usize = 32;
/// What the end may take beyond the sending: the lease of what the killed sender had claimed, and its second sending.
const TAIL: Duration = Duration::from_secs(180);
/// The slowest pace at which the end is still waited for.
const SLOWEST: f64 = 150.0;
const POLL: Duration = Duration::from_millis(500);
const PAGE: usize = 10_000;

pub(super) fn expected(sizes: &Sizes) -> Duration {
    /// What the killed sender had claimed is found by its lease.
    const LEASE: Duration = Duration::from_secs(75);
    Duration::from_secs(sizes.sends / 245) + LEASE
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let (rig, sends) = (bench.rig, bench.sizes.sends);
    rig.restart().await?;
    let none = Overrides::new();
    let swrve = rig.swrve().await?;
    let (_ingest, receiver) = rig.ingest(&none).await?;
    rig.retry_worker(&none).await?;
    let dispatchers = vec![
        rig.dispatcher(&swrve, &none).await?,
        rig.dispatcher(&swrve, &none).await?,
    ];
    let limit = TAIL + Duration::from_secs_f64(sends as f64 / SLOWEST);
    let give_up = Instant::now() + limit;
    tell(format_args!("pacing: {sends} sends, about {} s", sends / 245));
    let feed = feed(receiver, sends);
    until(give_up, async || Ok(swrve.report().await?.received >= sends / 2)).await?;
    tell("pacing: killing the sender");
    let takeover = takeover::kill_sender(rig, dispatchers, &swrve).await?;
    let accepted = feed.await.context("the load generator failed")??;
    tell("pacing: waiting for the last sends");
    let finished = until(give_up, async || stored::pushes_are_finished(&rig.pool).await).await;
    rig.expect_alive(&takeover.successor.process).await?;
    let seen = Seen {
        accepted,
        sent: stored::count(&rig.pool, "push_notifications WHERE status = 'SENT'").await?,
        report: swrve.report().await?,
        successor: takeover.successor.metrics().await?,
        arrivals: list(&swrve).await?,
    };
    let mut section = Section::new("pacing");
    if let Err(error) = finished {
        section.broken(format!("pushes are left over: {error}"));
    }
    add_rows(&mut section, &takeover, &seen);
    Ok(section)
}

/// What is known at the end.
struct Seen {
    accepted: u64,
    sent: u64,
    report: Report,
    successor: Exposition,
    arrivals: Vec<Received>,
}

/// Hands the pushes in; tells how many were accepted.
fn feed(receiver: Receiver, pushes: u64) -> JoinHandle<Result<u64>> {
    let first = HEAD_START.min(pushes / 2);
    let rest = pushes - first;
    tokio::spawn(async move {
        let at_once = Load::Exactly {
            connections: FEED_CONNECTIONS,
            pushes: first,
        };
        let length = Duration::from_secs_f64(rest as f64 / f64::from(FEED_RATE));
        let evenly = Load::evenly(FEED_CONNECTIONS, FEED_RATE, length);
        let mut accepted = load::put(at_once, &receiver).await?.accepted;
        accepted += load::put(evenly, &receiver).await?.accepted;
        Ok(accepted)
    })
}

/// All arrivals, in order.
async fn list(swrve: &Swrve) -> Result<Vec<Received>> {
    let mut arrivals: Vec<Received> = Vec::new();
    let mut after = 0;
    loop {
        let path = format!("/received?after={after}&limit={PAGE}");
        let page: ReceivedPage = http::get_json(swrve.address, &path).await?;
        ensure!(
            page.oldest == 1,
            "the simulator has forgotten arrivals; use fewer sends"
        );
        if page.items.is_empty() {
            return Ok(arrivals);
        }
        after = page.next_after;
        arrivals.extend(page.items);
    }
}

async fn until(give_up: Instant, condition: impl AsyncFn() -> Result<bool>) -> Result<()> {
    while !condition().await? {
        ensure!(Instant::now() < give_up, "it took too long");
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

fn add_rows(section: &mut Section, takeover: &Takeover, seen: &Seen) {
    let killed = seen
        .arrivals
        .iter()
        .find(|arrival| arrival.user == MARKER)
        .map(|marker| marker.arrival_micros);
    let sends: Vec<Received> = seen
        .arrivals
        .iter()
        .filter(|arrival| arrival.user != MARKER)
        .cloned()
        .collect();
    let found = killed.and_then(|killed| arrivals::read(&sends, killed, takeover.claimed));
    match found {
        Some(found) => add_sends(section, takeover, &found),
        None => section.broken("nothing was sent after the takeover"),
    }
    add_gaps(section, "killed sender", &takeover.last_metrics);
    add_gaps(section, "successor", &seen.successor);
    let limited = seen.report.by_status.get(&429).copied().unwrap_or_default();
    section.row(Row::new("answers with 429", limited as f64, Unit::Count).target(Target::AtMost(0.0)));
    section.row(Row::new("accepted", seen.accepted as f64, Unit::Count));
    let lost = seen.accepted.saturating_sub(seen.sent);
    section.row(
        Row::new("accepted and not SENT at the end", lost as f64, Unit::Count).target(Target::AtMost(0.0)),
    );
    if lost > 0 {
        section.broken(format!("{lost} accepted pushes are not SENT at the end"));
    }
    section.note(format!(
        "the killed sender had {} sends in flight and {} pushes claimed; its metrics are those of the last scrape before \
         SIGKILL.",
        takeover.in_flight, takeover.claimed
    ));
    section.note(
        "the guarantee is about starts of sends, which the senders' own metrics show to the nanosecond; arrivals scatter \
         around them by the time that two processes on a busy machine need to be woken.",
    );
}

fn add_sends(section: &mut Section, takeover: &Takeover, found: &Findings) {
    section.row(
        Row::new("sends while there is work", found.rate, Unit::PerSecond)
            .target(Target::AtLeast(245.0))
            .beside([Number::new("one every 4 ms", 250.0, Unit::PerSecond)]),
    );
    section.row(
        Row::new(
            "takeover: from SIGKILL to the first send of the successor",
            found.takeover / 1e6,
            Unit::Seconds,
        )
        .target(Target::AtMost(5.0)),
    );
    section.row(
        Row::new(
            "arrivals: last of the killed sender to first of its successor",
            found.silence / 1e3,
            Unit::Milliseconds,
        )
        .target(Target::AtLeast(4.0)),
    );
    section.row(
        Row::new("sent twice", found.repeats as f64, Unit::Count)
            .target(Target::AtMost(takeover.claimed as f64)),
    );
    for (measure, micros) in [
        ("arrivals: smallest distance", found.smallest_gap),
        (
            "arrivals: longest distance while there is work",
            found.longest_gap,
        ),
    ] {
        section.row(Row::new(measure, micros / 1e3, Unit::Milliseconds));
    }
    section.row(Row::new(
        "arrivals: distances under 4 ms",
        found.short_gaps as f64,
        Unit::Count,
    ));
    section.note(format!(
        "{} sends arrived. The rate leaves out the {:.2} s between the killed sender's last and its successor's first \
         arrival, and the last {} arrivals, from the moment on when only the killed sender's claimed pushes were left.",
        found.sends,
        found.silence / 1e6,
        found.late
    ));
}

fn add_gaps(section: &mut Section, who: &str, metrics: &Exposition) {
    let smallest = metrics.value("postrider_push_send_gap_min_seconds", None);
    let early = metrics.value("postrider_push_send_gap_seconds_bucket", Some(("le", "0.004")));
    section.row(
        Row::new(
            format!("smallest distance of send starts, {who}"),
            smallest.unwrap_or(f64::NAN) * 1e3,
            Unit::Milliseconds,
        )
        .target(Target::AtLeast(4.0)),
    );
    section.row(
        Row::new(
            format!("distances of send starts within 4 ms, {who}"),
            early.unwrap_or(f64::NAN),
            Unit::Count,
        )
        .target(Target::AtMost(0.0)),
    );
}
