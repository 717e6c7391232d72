//! What an operator who looks into many dead letters waits for: lists from any place on, with each filter, and groups.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use domain::clock::{Clock as _, SystemClock};
use hyper::StatusCode;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use super::Bench;
use crate::report::results::rfc3339;
use crate::report::stats::quantile;
use crate::report::{Grid, Number, Row, Section, Target, Unit};
use crate::rig::Rig;
use crate::sizes::Sizes;
use crate::{http, tell};

/// Requests of each kind, after some that are not measured.
const REQUESTS: usize = 100;
const WARM_UP: usize = 5;
/// What a list and a count may take.
const LIMIT: f64 = 200.0;
/// Dead letters of one statement of the filling.
const FILL_BATCH: u64 = 50_000;
/// The time over which the dead letters are spread, in seconds.
const SPAN: u64 = 3 * 86_400;

/// 300 groups, half of the dead letters in each lane: 100 codes of Swrve's, 50 endpoints with four kinds of failures.
const FILL: &str = "
    INSERT INTO dead_letters (lane, reason, fingerprint, push_id, notification_id, subscription_id, reseller_id, event_type,
                              prototype, attempts, error_type, detail, target, created_at)
    SELECT CASE WHEN push THEN 'push' ELSE 'reseller' END, CASE WHEN k % 2 = 0 THEN 'FAILED' ELSE 'GIVEN_UP' END,
           CASE WHEN push THEN 'swrve/503/' || (1000 + k % 100)
                ELSE 'delivery/' || (ARRAY['timeout', 'dns', 'tls', 'http/500/html'])[1 + k / 64 % 4] END,
           CASE WHEN push THEN gen_random_uuid() END, CASE WHEN NOT push THEN gen_random_uuid() END,
           CASE WHEN NOT push THEN ('00000000-0000-4000-8000-' || lpad((k % 50)::text, 12, '0'))::uuid END,
           CASE WHEN NOT push THEN 'reseller-' || k % 20 END, CASE WHEN NOT push THEN 'bench.type' || k % 40 END,
           CASE WHEN push THEN 'prototype-' || k % 10 END, 4, 'HTTP', 'the endpoint failed, of which there is more to tell',
           CASE WHEN push THEN (1000 + k % 100)::text ELSE 'https://hooks-' || k % 50 || '.example' END,
           now() - n * interval '{step} microseconds'
    FROM (SELECT n, n % 2 = 0 AS push, hashint4(n) & 16777215 AS k FROM generate_series({from}, {to}) AS n) AS letter";

pub(super) fn expected(sizes: &Sizes) -> Duration {
    const ASKING: Duration = Duration::from_secs(75);
    ASKING + Duration::from_secs(sizes.dead_letters / 25_000)
}

/// Measures lists and groups among just written dead letters.
pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let (rig, letters) = (bench.rig, bench.sizes.dead_letters);
    rig.restart().await?;
    let mut section = Section::new("dead-letters");
    tell(format_args!("dead letters: writing {letters}"));
    let took = fill(rig, letters).await?;
    section.row(Row::new(
        "dead letters written a second",
        letters as f64 / took,
        Unit::PerSecond,
    ));
    let floor = bare_round_trip(&rig.database_url).await?;
    let floor = Number::new("SELECT 1, median", floor, Unit::Milliseconds);
    let (_service, address) = rig.operator_api().await?;
    let key = rig.viewer_key().await?;
    let deep = cursor_at(rig, letters / 2).await?;
    let mut grid = Grid::new(format!("{REQUESTS} requests each"), "asked");
    for (name, path) in questions(&deep) {
        tell(format_args!("dead letters: {name}"));
        let times = ask(address, &path, &key).await?;
        let row = |measure: &str, share| Row::new(measure, quantile(&times, share), Unit::Milliseconds);
        let rows = vec![
            row("median", 0.5).beside([floor.clone()]),
            row("99th of 100", 0.99).target(Target::Under(LIMIT)),
        ];
        grid.line(name, rows);
    }
    section.grids.push(grid);
    let groups: Value = serde_json::from_slice(&get(address, "/dead-letters/groups", &key).await?)?;
    if groups["total"].as_u64() != Some(letters) {
        let found = &groups["total"];
        section.broken(format!("{found} of {letters} dead letters were counted"));
    }
    section.note(format!(
        "{letters} dead letters of both lanes in 300 groups, just written and not vacuumed, over three days; each request on a \
         connection of its own, through operator-api; the floor is SELECT 1 on an open connection.",
    ));
    rig.restart().await?;
    Ok(section)
}

/// What is asked, by name.
fn questions(deep: &str) -> Vec<(&'static str, String)> {
    let list = |query: &str| format!("/dead-letters?{query}");
    let groups = |query: &str| format!("/dead-letters/groups?{query}");
    vec![
        ("list, newest", list("limit=50")),
        ("list, oldest", list("order=oldest&limit=50")),
        (
            "list, 200 from the middle on",
            list(&format!("limit=200&cursor={deep}")),
        ),
        ("list, by lane", list("lane=push")),
        ("list, by reason", list("reason=FAILED")),
        ("list, by fingerprint", list("fingerprint=delivery/dns")),
        ("list, by the beginning of one", list("fingerprint=swrve/*")),
        ("list, by target", list("target=https://hooks-7.example")),
        (
            "list, by subscription",
            list("subscription=00000000-0000-4000-8000-000000000007"),
        ),
        ("list, by reseller", list("reseller=reseller-7")),
        ("list, by event type", list("eventType=bench.type7")),
        ("list, by prototype", list("prototype=prototype-7")),
        (
            "list, by reseller and fingerprint",
            list("reseller=reseller-7&fingerprint=delivery/tls"),
        ),
        (
            "list, none match in the prototype",
            list("prototype=prototype-7&lane=reseller"),
        ),
        ("list, all states", list("state=ALL")),
        ("groups", groups("limit=1000")),
        ("groups, by lane", groups("lane=reseller")),
        (
            "groups, by the beginning of a fingerprint",
            groups("fingerprint=swrve/*"),
        ),
        ("groups, of an age", groups("since={since}&until={until}")),
        (
            "groups, by subscription",
            groups("subscription=00000000-0000-4000-8000-000000000007"),
        ),
        ("groups, by reseller", groups("reseller=reseller-7")),
        ("groups, by prototype", groups("prototype=prototype-7")),
    ]
    .into_iter()
    .map(|(name, path)| (name, aged(&path)))
    .collect()
}

/// Puts a time of some hours in, which cuts hours on both sides.
fn aged(path: &str) -> String {
    let at = |ago: u64| rfc3339(SystemClock.now() - Duration::from_secs(ago));
    path.replace("{since}", &at(SPAN / 2))
        .replace("{until}", &at(2_000))
}

/// Writes the dead letters; returns how many seconds it took.
pub(super) async fn fill(rig: &Rig, letters: u64) -> Result<f64> {
    let started = Instant::now();
    let step = (SPAN * 1_000_000 / letters.max(1)).to_string();
    for from in (0..letters).step_by(FILL_BATCH as usize) {
        let statement = FILL
            .replace("{step}", &step)
            .replace("{from}", &(from + 1).to_string())
            .replace("{to}", &letters.min(from + FILL_BATCH).to_string());
        rig.pool
            .execute(AssertSqlSafe(statement))
            .await
            .context("failed to write dead letters")?;
    }
    Ok(started.elapsed().as_secs_f64())
}

/// The cursor of the list that goes on after so many dead letters.
async fn cursor_at(rig: &Rig, letters: u64) -> Result<String> {
    let cursor = sqlx::query_scalar(
        "SELECT (extract(epoch FROM created_at) * 1000000)::bigint || '-' || replace(id::text, '-', '')
         FROM dead_letters ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET $1",
    )
    .bind(i64::try_from(letters)?)
    .fetch_one(&rig.pool)
    .await?;
    Ok(cursor)
}

/// The median of bare round trips, in milliseconds.
async fn bare_round_trip(url: &str) -> Result<f64> {
    let mut connection = PgConnection::connect(url).await?;
    let mut times = Vec::with_capacity(REQUESTS);
    for _ in 0..REQUESTS {
        let started = Instant::now();
        connection.execute("SELECT 1").await?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    connection.close().await?;
    Ok(quantile(&times, 0.5))
}

async fn get(address: SocketAddr, path: &str, key: &str) -> Result<Vec<u8>> {
    let answer = http::get_with_key(address, path, key).await?;
    ensure!(
        answer.status == StatusCode::OK,
        "{path} was answered with {}: {}",
        answer.status,
        String::from_utf8_lossy(&answer.body)
    );
    Ok(answer.body.into())
}

/// The times of the requests in milliseconds.
async fn ask(address: SocketAddr, path: &str, key: &str) -> Result<Vec<f64>> {
    let mut times = Vec::with_capacity(REQUESTS);
    for request in 0..WARM_UP + REQUESTS {
        let started = Instant::now();
        get(address, path, key).await?;
        if request >= WARM_UP {
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(times)
}
