//! What strangers who hold connections, and a reseller that never stops asking, do to reseller-portal and to a reseller that
//! is well.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use super::Bench;
use super::rounds::{rounds, times};
use crate::cpu;
use crate::load::Connection;
use crate::report::{Grid, Row, Section, Target, Unit};
use crate::rig::{Rig, Service, settings};
use crate::sizes::Sizes;
use crate::tell;

/// Connections of strangers, a quarter of each kind.
const STRANGERS: usize = 2_000;
/// From one request of the reseller that is well to the next.
const EVERY: Duration = Duration::from_millis(20);
/// From one made-up key of a connection to the next, and from the end of a connection to its next one.
const AGAIN: Duration = Duration::from_secs(1);
/// Connections of the reseller that never stops asking, and how long each pauses: as often as one reseller may ask.
const ASKING: usize = 16;
const PAUSE: Duration = Duration::from_millis(320);
/// So that every kind of connection is open before anything counts.
const BEGINNING: Duration = Duration::from_secs(8);
/// How often the memory is looked at.
const LOOKS: Duration = Duration::from_millis(250);
const MOST_MEMORY: f64 = 150.0;
const MOST_P99: f64 = 100.0;

/// Beside what the reseller that is well asks.
#[derive(Debug, Clone, Copy)]
enum Beside {
    Nothing,
    Strangers,
    Reseller,
}

impl Beside {
    const ALL: [Self; 3] = [Self::Nothing, Self::Strangers, Self::Reseller];

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Strangers => "2,000 hostile connections",
            Self::Reseller => "a reseller that asks for 50 lists a second",
        }
    }
}

pub(super) fn expected(sizes: &Sizes) -> Duration {
    sizes.all_rounds(Beside::ALL.len()) + BEGINNING * 3
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("strangers");
    raise_descriptors();
    let mut grid = Grid::new("GET /subscriptions of a reseller, 50 a second", "beside");
    for beside in Beside::ALL {
        grid.line(beside.name(), situation(bench, beside, &mut section).await?);
    }
    section.grids.push(grid);
    section.note(
        "a quarter each of the hostile connections: heads of 30,000 bytes that stop before their end, 50 requests for \
         /openapi.html whose answers are not read, silence, and a made-up key a second. All of them come from this machine, \
         so that portal.maxConnectionsPerPeer does not stop them. One that is closed comes again a second later. Memory is \
         the most that was resident.",
    );
    Ok(section)
}

/// The answers' times of a round, in milliseconds; requests that were not answered 200; the most memory.
struct Round {
    millis: Vec<f64>,
    failed: u64,
    memory: f64,
}

async fn situation(bench: &Bench<'_>, beside: Beside, section: &mut Section) -> Result<Vec<Row>> {
    let rig = bench.rig;
    rig.restart().await?;
    let (portal, address) = rig.portal(&settings()).await?;
    let well = request("/subscriptions", &rig.reseller_key("bench-0000").await?);
    let others = others(rig, beside, address).await?;
    tell(format_args!("strangers, beside {}: beginning", beside.name()));
    ask(&portal, address, &well, BEGINNING).await?;
    let what = format!("strangers, beside {}", beside.name());
    let measured = bench.sizes.measured;
    let rounds = rounds(bench, &what, async || {
        ask(&portal, address, &well, measured).await
    })
    .await?;
    let failed: u64 = rounds.iter().map(|round| round.failed).sum();
    if failed > 0 {
        section.broken(format!("beside {}: {failed} requests failed", beside.name()));
    }
    drop(others);
    let mut rows = times(
        &rounds
            .iter()
            .map(|round| round.millis.clone())
            .collect::<Vec<_>>(),
    );
    for row in &mut rows {
        if row.measure == "p99" {
            *row = row.clone().target(Target::AtMost(MOST_P99));
        }
    }
    let memory = rounds.iter().map(|round| round.memory).fold(0.0, f64::max);
    rows.push(Row::new("memory", memory, Unit::Megabytes).target(Target::AtMost(MOST_MEMORY)));
    Ok(rows)
}

/// Asks evenly for as long as this, on a connection of its own, and looks at the portal's memory meanwhile.
async fn ask(portal: &Service, address: SocketAddr, request: &[u8], length: Duration) -> Result<Round> {
    let mut connection = Connection::open(address).await?;
    let mut round = Round {
        millis: Vec::new(),
        failed: 0,
        memory: 0.0,
    };
    let (start, mut looked) = (Instant::now(), None::<Instant>);
    let mut ticks = tokio::time::interval(EVERY);
    while start.elapsed() < length {
        // A request that came late because the one before it was slow counts from when it was due.
        let due = ticks.tick().await.into_std();
        match connection.exchange(request).await {
            Ok(200) => round.millis.push(due.elapsed().as_secs_f64() * 1e3),
            Ok(_) => round.failed += 1,
            Err(_) => {
                round.failed += 1;
                connection = Connection::open(address).await?;
            }
        }
        if looked.is_none_or(|at| at.elapsed() >= LOOKS) {
            looked = Some(Instant::now());
            let memory = cpu::memory_of(portal.process.pid).context("the portal is gone")?;
            round.memory = round.memory.max(memory.resident);
        }
    }
    Ok(round)
}

/// Those beside; they end when this is dropped.
async fn others(rig: &Rig, beside: Beside, address: SocketAddr) -> Result<JoinSet<()>> {
    let mut others = JoinSet::new();
    match beside {
        Beside::Nothing => {}
        Beside::Strangers => {
            for number in 0..STRANGERS {
                others.spawn(again(address, Stranger::ALL[number % Stranger::ALL.len()]));
            }
        }
        Beside::Reseller => {
            let key = rig.reseller_key("bench-0001").await?;
            for path in ["/event-types", "/subscriptions"]
                .into_iter()
                .cycle()
                .take(ASKING)
            {
                others.spawn(insist(address, request(path, &key)));
            }
        }
    }
    Ok(others)
}

async fn insist(address: SocketAddr, request: Vec<u8>) {
    loop {
        if let Ok(mut connection) = Connection::open(address).await {
            while connection.exchange(&request).await.is_ok() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Stranger {
    StopsInHead,
    ReadsNothing,
    SaysNothing,
    MakesUpKeys,
}

impl Stranger {
    const ALL: [Self; 4] = [
        Self::StopsInHead,
        Self::ReadsNothing,
        Self::SaysNothing,
        Self::MakesUpKeys,
    ];

    /// One connection, until the portal closes it.
    async fn connection(self, address: SocketAddr) -> std::io::Result<()> {
        let said = match self {
            Self::StopsInHead => format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}", "a".repeat(30_000)),
            Self::ReadsNothing => "GET /openapi.html HTTP/1.1\r\nhost: x\r\n\r\n".repeat(50),
            Self::SaysNothing => String::new(),
            Self::MakesUpKeys => return make_up_keys(address).await,
        };
        let mut stream = narrow(address).await?;
        stream.write_all(said.as_bytes()).await?;
        if matches!(self, Self::ReadsNothing) {
            // Longer than the portal waits.
            tokio::time::sleep(Duration::from_secs(45)).await;
            return Ok(());
        }
        while stream.read(&mut [0; 1024]).await? > 0 {}
        Ok(())
    }
}

async fn again(address: SocketAddr, stranger: Stranger) {
    loop {
        let _ = stranger.connection(address).await;
        tokio::time::sleep(AGAIN).await;
    }
}

async fn make_up_keys(address: SocketAddr) -> std::io::Result<()> {
    let mut connection = Connection::open(address).await?;
    loop {
        let (one, two) = (uuid::Uuid::now_v7().simple(), uuid::Uuid::now_v7().simple());
        connection
            .exchange(&request("/subscriptions", &format!("pr_{one}{two}")))
            .await?;
        tokio::time::sleep(AGAIN).await;
    }
}

/// A connection that takes as little as the system allows.
async fn narrow(address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(1024)?;
    socket.connect(address).await
}

fn request(path: &str, key: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n\r\n").into_bytes()
}

/// As many descriptors as this process may have; what it starts inherits them.
pub(super) fn raise_descriptors() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: maximum,
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, most) {
        tell(format_args!("the limit of descriptors stays: {error}"));
    }
}
