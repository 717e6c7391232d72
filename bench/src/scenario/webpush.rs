//! Web Push: what an idle user agent costs, how many messages go through directly and how many are stored, with nothing stored and with
//! millions; how long one takes, and how soon many user agents that come back at once have what waits for them.

mod backlog;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Resource, getrlimit};
use tokio::task::JoinSet;

use self::backlog::Backlog;
use super::Bench;
use super::rounds::rounds;
use super::strangers::raise_descriptors;
use crate::cpu::{self, CpuTime};
use crate::floors::Floor;
use crate::load::{Connection, UserAgent};
use crate::report::stats::quantile;
use crate::report::{Grid, Row, Section, Target, Unit};
use crate::rig::{Service, Usage};
use crate::sizes::Sizes;
use crate::tell;

/// User agents that are connected and idle, if as many descriptors may be open, and what one of them may take, in kB.
const IDLE: usize = 20_000;
/// Descriptors for what else a process has open.
const OTHER_DESCRIPTORS: usize = 1_000;
const MOST_KILOBYTES: f64 = 8.0;
/// How many user agents one address of this machine stands for.
const OF_AN_ADDRESS: usize = 5_000;
/// So many connect at the same time.
const CONNECTING: usize = 64;
/// Callers that send one message after another.
const CALLERS: usize = 32;
const LEAST_DIRECT: f64 = 10_000.0;
const LEAST_STORED: f64 = 5_000.0;
/// Messages a second at which times are taken, and what 99 of 100 may take from POST to the user agent.
const RATE: u64 = 1_000;
const MOST_P99: f64 = 20.0;
/// User agents that come back at once, and how long that may take.
const STORM: usize = 5_000;
const MOST_STORM: f64 = 10.0;
/// So that memory that is given back is gone.
const REST: Duration = Duration::from_secs(5);
/// A body as senders make them, encrypted.
const BODY: usize = 256;
/// What the rates have to be of those without, while millions of messages wait.
const LEAST_WHEN_FULL: f64 = 0.9;

/// Messages that wait while rates are measured again.
fn stored(sizes: &Sizes) -> u64 {
    sizes.waiting.iter().copied().max().unwrap_or_default()
}

pub(super) fn expected(sizes: &Sizes) -> Duration {
    let levels = if stored(sizes) > 0 { 2 } else { 1 };
    REST + Duration::from_secs(90)
        + sizes.round()
        + sizes.all_rounds(WAYS.len() * levels)
        + backlog::expected(stored(sizes))
}

/// The two nodes, and where they listen.
struct Nodes {
    connection: Service,
    endpoint: Service,
    agents: SocketAddr,
    senders: SocketAddr,
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("webpush");
    raise_descriptors();
    let descriptors = getrlimit(Resource::Nofile)
        .current
        .and_then(|most| usize::try_from(most).ok());
    let idle_count = IDLE.min(
        descriptors
            .unwrap_or(usize::MAX)
            .saturating_sub(OTHER_DESCRIPTORS),
    );
    let (connection, agents, endpoint, senders) = bench.rig.webpush().await?;
    let nodes = Nodes {
        connection,
        endpoint,
        agents,
        senders,
    };
    idle(&nodes, idle_count, &mut section).await?;
    tell("webpush: times");
    let p99 = times(&nodes, bench.sizes.measured).await?;
    let floor = bench.beside(&[Floor::RequestTime]).await?;
    section.row(
        Row::new("p99 from POST to user agent at 1,000/s", p99, Unit::Milliseconds)
            .target(Target::Under(MOST_P99))
            .beside(floor),
    );
    tell("webpush: all come back at once");
    let (seconds, lost) = storm(&nodes).await?;
    section.row(
        Row::new(
            "5,000 come back at once and have their message",
            seconds,
            Unit::Seconds,
        )
        .target(Target::AtMost(MOST_STORM)),
    );
    if lost > 0 {
        section.broken(format!("{lost} messages did not come"));
    }
    flat_out_both_ways(bench, &nodes, stored(bench.sizes), &mut section).await?;
    section.note(
        "user agents and senders run in the process that measures, on the same machine. An idle user agent has said hello, has \
         registered a channel, and says nothing; memory is what became resident of the node for all of them. Directly: each \
         message is acknowledged by its user agent before its sender has the answer 201; what was stored instead is not counted. \
         Senders show no VAPID statement: its signature is checked once in five seconds. What is stored beside waits for user agents that \
         do not come, 100 messages each, 256 bytes with a message id of 204; it takes turns with nothing in each round, and its share of the \
         rate without is that of the round.",
    );
    Ok(section)
}

/// A way that messages go: the label of its outcome, what it is to reach, and what the machine does without Postrider.
struct Way {
    outcome: &'static str,
    least: f64,
    floor: Floor,
}

const WAYS: [Way; 2] = [
    Way {
        outcome: "direct",
        least: LEAST_DIRECT,
        floor: Floor::Requests,
    },
    Way {
        outcome: "stored",
        least: LEAST_STORED,
        floor: Floor::Rows,
    },
];

/// What was seen of one of [`WAYS`].
struct Seen {
    count: f64,
    rate: f64,
    used: Usage,
}

/// Each of [`WAYS`], with nothing stored and, right after it, with millions.
struct Round {
    empty: [Seen; 2],
    full: Option<[Seen; 2]>,
}

/// How many messages a second go directly, and how many are stored, with nothing stored and with so many in turns; rows of all, and of who
/// used how much CPU time for them.
async fn flat_out_both_ways(
    bench: &Bench<'_>,
    nodes: &Nodes,
    stored: u64,
    section: &mut Section,
) -> Result<()> {
    let mut backlog = None;
    if stored > 0 {
        backlog = Some(Backlog::make(bench.rig, stored).await?);
    }
    let rounds = rounds(bench, "webpush, flat out", async || {
        let Some(backlog) = &mut backlog else {
            let empty = both_ways(bench, nodes).await?;
            return Ok(Round { empty, full: None });
        };
        backlog.show(false).await?;
        let empty = both_ways(bench, nodes).await?;
        backlog.show(true).await?;
        let full = Some(both_ways(bench, nodes).await?);
        Ok(Round { empty, full })
    })
    .await?;
    if let Some(backlog) = backlog {
        backlog.remove().await?;
    }
    for (index, way) in WAYS.iter().enumerate() {
        let empty: Vec<&Seen> = rounds.iter().map(|round| &round.empty[index]).collect();
        tell_way(bench, way, "", &empty, section).await?;
        let full: Vec<&Seen> = rounds
            .iter()
            .filter_map(|round| Some(&round.full.as_ref()?[index]))
            .collect();
        if full.is_empty() {
            continue;
        }
        let beside = format!(", {stored} stored");
        tell_way(bench, way, &beside, &full, section).await?;
        let shares: Vec<f64> = full
            .iter()
            .zip(empty)
            .map(|(full, empty)| full.rate / empty.rate)
            .collect();
        let measure = format!("{}{beside}, of those without", way.outcome);
        section.row(Row::median(measure, &shares, Unit::Times).target(Target::AtLeast(LEAST_WHEN_FULL)));
    }
    Ok(())
}

async fn both_ways(bench: &Bench<'_>, nodes: &Nodes) -> Result<[Seen; 2]> {
    let [direct, stored] = &WAYS;
    Ok([
        one_way(bench, nodes, direct).await?,
        one_way(bench, nodes, stored).await?,
    ])
}

async fn one_way(bench: &Bench<'_>, nodes: &Nodes, way: &Way) -> Result<Seen> {
    flat_out(nodes, bench.sizes.warm_up, way.outcome).await?;
    let before = bench.rig.usage();
    let (count, seconds) = flat_out(nodes, bench.sizes.measured, way.outcome).await?;
    Ok(Seen {
        count,
        rate: count / seconds,
        used: bench.rig.usage().since(&before),
    })
}

async fn tell_way(
    bench: &Bench<'_>,
    way: &Way,
    beside: &str,
    seen: &[&Seen],
    section: &mut Section,
) -> Result<()> {
    let measure = format!("{}, 32 callers{beside}", way.outcome);
    section.row(
        Row::of(measure, Unit::PerSecond, seen, |seen| seen.rate)
            .target(Target::AtLeast(way.least))
            .beside(bench.beside(&[way.floor]).await?),
    );
    let name = format!("CPU of 1,000 messages, {}{beside}", way.outcome);
    let mut grid = Grid::new(name, "process");
    let processes = seen.last().map(|seen| seen.used.entries()).unwrap_or_default();
    for (who, _) in processes {
        let row = |measure, seconds: fn(CpuTime) -> f64| {
            Row::of(measure, Unit::CpuPerThousand, seen, |seen| {
                seconds(seen.used.of(who)) * 1e3 / seen.count
            })
        };
        let rows = vec![
            row("CPU", CpuTime::total),
            row("of it in the kernel", |time| time.system),
        ];
        grid.line(who.clone(), rows);
    }
    section.grids.push(grid);
    Ok(())
}

fn address(index: usize) -> IpAddr {
    let host = u8::try_from(index / OF_AN_ADDRESS + 1).unwrap_or(u8::MAX);
    Ipv4Addr::new(127, 0, 1, host).into()
}

/// Connects and registers so many user agents.
async fn agents(nodes: &Nodes, count: usize) -> Result<Vec<UserAgent>> {
    let (to, mut tasks, mut connected) = (nodes.agents, JoinSet::new(), Vec::with_capacity(count));
    for index in 0..count {
        if tasks.len() == CONNECTING {
            connected.push(tasks.join_next().await.context("none is left")???);
        }
        tasks.spawn(async move {
            let mut agent = UserAgent::connect(address(index), to, "").await?;
            agent.register().await?;
            anyhow::Ok(agent)
        });
    }
    for agent in tasks.join_all().await {
        connected.push(agent?);
    }
    Ok(connected)
}

async fn idle(nodes: &Nodes, count: usize, section: &mut Section) -> Result<()> {
    let resident = || {
        let memory = cpu::memory_of(nodes.connection.process.pid);
        memory.map(|memory| memory.resident).context("the node is gone")
    };
    // What the first of them make stays: pools, caches, code that is read.
    drop(agents(nodes, 200).await?);
    tokio::time::sleep(REST).await;
    let before = resident()?;
    tell(format_args!("webpush: {count} connect"));
    let since = Instant::now();
    let agents = agents(nodes, count).await?;
    let connecting = since.elapsed();
    tokio::time::sleep(REST).await;
    let kilobytes = (resident()? - before) * 1e3 / count as f64;
    section.row(
        Row::new("resident for an idle user agent, kB", kilobytes, Unit::Count)
            .target(Target::AtMost(MOST_KILOBYTES)),
    );
    section.row(Row::new(
        format!("{count} connect and register"),
        connecting.as_secs_f64(),
        Unit::Seconds,
    ));
    drop(agents);
    tokio::time::sleep(REST).await;
    Ok(())
}

fn request(to: SocketAddr, endpoint: &str) -> Vec<u8> {
    let head = format!(
        "POST {endpoint} HTTP/1.1\r\nhost: {to}\r\nttl: 3600\r\ncontent-encoding: aes128gcm\r\ncontent-length: {BODY}\r\n\r\n"
    );
    let mut request = head.into_bytes();
    request.extend(std::iter::repeat_n(b'x', BODY));
    request
}

/// Each caller sends one message after another to a user agent of its own, which is connected or not; how many had this outcome, and
/// in how many seconds.
async fn flat_out(nodes: &Nodes, length: Duration, outcome: &'static str) -> Result<(f64, f64)> {
    let had_it = async || {
        let metrics = nodes.endpoint.metrics().await?;
        let label = Some(("outcome", outcome));
        let found = metrics.value("postrider_webpush_messages_total", label);
        anyhow::Ok(found.unwrap_or_default())
    };
    let senders = nodes.senders;
    let (agents, before) = (agents(nodes, CALLERS).await?, had_it().await?);
    let since = Instant::now();
    let mut tasks = JoinSet::new();
    for mut agent in agents {
        let request = request(senders, &agent.endpoint);
        let taking =
            (outcome == "direct").then(|| tokio::spawn(async move { while agent.take().await.is_ok() {} }));
        tasks.spawn(async move {
            let mut sender = Connection::open(senders).await?;
            while since.elapsed() < length {
                let status = sender.exchange(&request).await?;
                ensure!(status == 201, "a message was answered with {status}");
            }
            if let Some(taking) = taking {
                taking.abort();
            }
            Ok(())
        });
    }
    for sent in tasks.join_all().await {
        sent?;
    }
    let seconds = since.elapsed().as_secs_f64();
    Ok((had_it().await? - before, seconds))
}

/// The 99th percentile of the times from sending to having, in milliseconds, at an even rate.
async fn times(nodes: &Nodes, length: Duration) -> Result<f64> {
    let every = Duration::from_secs(CALLERS as u64) / u32::try_from(RATE)?;
    let (senders, since) = (nodes.senders, tokio::time::Instant::now());
    let mut tasks = JoinSet::new();
    for (index, mut agent) in agents(nodes, CALLERS).await?.into_iter().enumerate() {
        let request = request(senders, &agent.endpoint);
        tasks.spawn(async move {
            let mut sender = Connection::open(senders).await?;
            let mut due = since + every * u32::try_from(index)? / u32::try_from(CALLERS)?;
            let mut millis = Vec::new();
            while due < since + length {
                tokio::time::sleep_until(due).await;
                // From when it was due on: what is late because the one before it was late counts.
                let (status, taken) = tokio::join!(sender.exchange(&request), agent.take());
                ensure!(status? == 201, "a message was not taken");
                taken?;
                millis.push(due.elapsed().as_secs_f64() * 1e3);
                due += every;
            }
            anyhow::Ok(millis)
        });
    }
    let mut all = Vec::new();
    for millis in tasks.join_all().await {
        all.extend(millis?);
    }
    Ok(quantile(&all, 0.99))
}

/// How long it takes until all of many user agents that come back at once have the message that waits for them, in seconds, and how
/// many do not get it.
async fn storm(nodes: &Nodes) -> Result<(f64, u64)> {
    let (to, senders) = (nodes.agents, nodes.senders);
    let away: Vec<(String, String)> = agents(nodes, STORM)
        .await?
        .into_iter()
        .map(|agent| (agent.uaid, agent.endpoint))
        .collect();
    let mut sending = JoinSet::new();
    for some in away.chunks(STORM.div_ceil(CALLERS)) {
        let requests: Vec<_> = some
            .iter()
            .map(|(_, endpoint)| request(senders, endpoint))
            .collect();
        sending.spawn(async move {
            let mut sender = Connection::open(senders).await?;
            for request in requests {
                let status = sender.exchange(&request).await?;
                ensure!(status == 201, "a message was answered with {status}");
            }
            Ok(())
        });
    }
    for sent in sending.join_all().await {
        sent?;
    }
    let since = Instant::now();
    let mut tasks = JoinSet::new();
    for (index, (uaid, _)) in away.into_iter().enumerate() {
        tasks.spawn(async move {
            let coming = async {
                let mut agent = UserAgent::connect(address(index), to, &uaid).await?;
                agent.take().await
            };
            matches!(
                tokio::time::timeout(Duration::from_secs(60), coming).await,
                Ok(Ok(()))
            )
        });
    }
    let had = tasks.join_all().await;
    let lost = had.iter().filter(|had| !**had).count();
    Ok((since.elapsed().as_secs_f64(), lost as u64))
}
