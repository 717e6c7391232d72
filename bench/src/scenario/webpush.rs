//! Web Push: what an idle user agent costs, how many messages go through directly and how many are stored, with nothing stored and with
//! millions; how long one takes, and how soon many user agents that come back at once have what waits for them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Resource, getrlimit};
use sqlx::{AssertSqlSafe, Executor as _};
use tokio::task::JoinSet;

use super::Bench;
use super::strangers::raise_descriptors;
use crate::cpu;
use crate::floors::Floor;
use crate::load::{CHANNEL, Connection, UserAgent};
use crate::report::stats::quantile;
use crate::report::{Grid, Row, Section, Target, Unit};
use crate::rig::Service;
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
/// Messages that wait for one user agent, and that are inserted by one statement and in a second, about.
const OF_A_USER_AGENT: u64 = 100;
const FILL_BATCH: u64 = 200_000;
const FILLED_A_SECOND: u64 = 50_000;
/// Statements that insert at the same time.
const FILLING: u64 = 2;

pub(super) fn expected(sizes: &Sizes) -> Duration {
    let waiting = sizes.waiting.iter().copied().max().unwrap_or_default();
    REST + Duration::from_secs(90) + sizes.round() * 5 + Duration::from_secs(waiting / FILLED_A_SECOND)
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
    let empty = flat_out_both_ways(bench, &nodes, "", &mut section).await?;
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
    let waiting = bench.sizes.waiting.iter().copied().max().unwrap_or_default();
    if waiting > 0 {
        fill(bench, waiting).await?;
        let beside = format!(", {waiting} stored");
        let full = flat_out_both_ways(bench, &nodes, &beside, &mut section).await?;
        for (what, before, after) in [("direct", empty.0, full.0), ("stored", empty.1, full.1)] {
            section.row(
                Row::new(
                    format!("{what}{beside}, of those without"),
                    after / before,
                    Unit::Times,
                )
                .target(Target::AtLeast(LEAST_WHEN_FULL)),
            );
        }
    }
    section.note(
        "user agents and senders run in the process that measures, on the same machine. An idle user agent has said hello, has \
         registered a channel, and says nothing; memory is what became resident of the node for all of them. Directly: each \
         message is acknowledged by its user agent before its sender has the answer 201; what was stored instead is not counted. \
         Senders show no VAPID statement: its signature is checked once in five seconds.",
    );
    Ok(section)
}

/// How many messages a second go directly, and how many are stored; rows of both, and of who used how much CPU time for them.
async fn flat_out_both_ways(
    bench: &Bench<'_>,
    nodes: &Nodes,
    beside: &str,
    section: &mut Section,
) -> Result<(f64, f64)> {
    let mut rates = Vec::new();
    for (outcome, least, floor) in [
        ("direct", LEAST_DIRECT, Floor::Requests),
        ("stored", LEAST_STORED, Floor::Rows),
    ] {
        tell(format_args!("webpush: {outcome}{beside}"));
        flat_out(nodes, bench.sizes.warm_up, outcome).await?;
        let before = bench.rig.usage();
        let (count, seconds) = flat_out(nodes, bench.sizes.measured, outcome).await?;
        let used = bench.rig.usage().since(&before);
        let rate = count / seconds;
        section.row(
            Row::new(format!("{outcome}, 32 callers{beside}"), rate, Unit::PerSecond)
                .target(Target::AtLeast(least))
                .beside(bench.beside(&[floor]).await?),
        );
        let mut grid = Grid::new(format!("CPU of 1,000 messages, {outcome}{beside}"), "process");
        for (who, time) in used.entries() {
            let row = |measure, seconds: f64| Row::new(measure, seconds * 1e3 / count, Unit::CpuPerThousand);
            let rows = vec![row("CPU", time.total()), row("of it in the kernel", time.system)];
            grid.line(who.clone(), rows);
        }
        section.grids.push(grid);
        rates.push(rate);
    }
    Ok((rates[0], rates[1]))
}

/// Has so many messages wait, for user agents that do not come.
async fn fill(bench: &Bench<'_>, rows: u64) -> Result<()> {
    tell(format_args!("webpush: inserting {rows} messages"));
    let mut filling = JoinSet::new();
    for turn in 0..FILLING {
        let pool = bench.rig.pool.clone();
        filling.spawn(async move {
            let mut from = turn * FILL_BATCH;
            while from < rows {
                let to = rows.min(from + FILL_BATCH);
                // What a crash would lose is made again by the next run: nothing waits for the disk.
                let statement = format!(
                    "SET synchronous_commit = off;
                     INSERT INTO webpush_messages (uaid, month, channel, version, received_at, expires_at, data, encoding)
                     SELECT md5((n / {OF_A_USER_AGENT})::text)::uuid, date_trunc('month', now() AT TIME ZONE 'UTC')::date, '{CHANNEL}',
                            'bench-' || n, now(), now() + interval '30 days', decode(repeat('78', {BODY}), 'hex'), 'aes128gcm'
                     FROM generate_series({from}::bigint, {to} - 1) AS n"
                );
                let inserted = pool.execute(AssertSqlSafe(statement)).await;
                inserted.context("failed to insert messages")?;
                from += FILLING * FILL_BATCH;
            }
            anyhow::Ok(())
        });
    }
    for filled in filling.join_all().await {
        filled?;
    }
    // What autovacuum would have done by itself, had they come at a natural pace.
    bench.rig.pool.execute("VACUUM ANALYZE webpush_messages").await?;
    bench.rig.checkpoint().await;
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
