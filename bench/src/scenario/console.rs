//! What a person in front of the console waits for: the first byte of each page among a million dead letters, a million notifications and a
//! thousand resellers, beside a page with nothing on it; and what fifty consoles that are left open cost.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use domain::clock::{Clock as _, SystemClock};
use hyper::StatusCode;
use sqlx::{AssertSqlSafe, Executor as _};

use super::{Bench, dead_letters};
use crate::report::stats::quantile;
use crate::report::{Grid, Number, Row, Section, Target, Unit};
use crate::rig::Rig;
use crate::sizes::Sizes;
use crate::{http, tell};

/// Requests of each page, after some that are not measured.
const REQUESTS: usize = 100;
const WARM_UP: usize = 5;
/// What the first byte of a page may take: 95 and 99 of 100, and 99 of 100 of the groups.
const LIMIT_95: f64 = 30.0;
const LIMIT_99: f64 = 80.0;
const LIMIT_GROUPS: f64 = 120.0;
/// Consoles that are left open, how often each asks, and for how long that is measured.
const CONSOLES: usize = 50;
const TICK: Duration = Duration::from_secs(2);
const OPEN_FOR: Duration = Duration::from_secs(30);
/// What they may take in a second: 5 of 100 of one core.
const CPU_LIMIT: f64 = 50.0;
const RESELLERS: u64 = 1_000;
const SUBSCRIPTIONS: u64 = 10;
/// Notifications for each dead letter.
const NOTIFICATIONS: u64 = 1;
/// Rows of one statement of the filling.
const FILL_BATCH: u64 = 100_000;
/// The time over which the notifications are spread, in milliseconds.
const SPAN_MILLIS: u64 = 7 * 86_400_000;

const SUBSCRIBE: &str = "
    INSERT INTO subscriptions (id, reseller_id, url, event_types, email, state, state_reason, state_changed_at, verified_at, created_at,
                               updated_at)
    SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'reseller-' || n, 'https://hooks-' || n || '.example', ARRAY ['*'],
           'bench@localhost', 'ACTIVE', 'VERIFIED', now(), now(), now(), now()
    FROM generate_series(0, $1 - 1) AS n";

/// One event stands for all notifications of a statement. One in fifty thousand has failed, and one in a thousand waits.
const NOTIFY: &str = "
    WITH event AS (
        INSERT INTO events (id, event_id, reseller_id, type, body, occurred_at, created_at)
        SELECT id, id::text, 'reseller-0', 'bench.happened',
               '{\"id\":\"' || id || '\",\"type\":\"bench.happened\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"data\":{}}', at, at
        FROM (SELECT overlay(replace(gen_random_uuid()::text, '-', '') PLACING lpad(to_hex({from}), 12, '0') || '7' FROM 1)::uuid AS id,
                     to_timestamp({from} / 1000.0) AS at) AS made
        RETURNING id)
    INSERT INTO notifications (id, event, subscription_id, reseller_id, event_type, status, reason, next_attempt_at, attempts,
                               payload_bytes, created_at, updated_at, finished_at)
    SELECT overlay(replace(gen_random_uuid()::text, '-', '') PLACING lpad(to_hex(millis), 12, '0') || '8' FROM 1)::uuid,
           event.id, ('00000000-0000-4000-8000-' || lpad(s::text, 12, '0'))::uuid, 'reseller-' || s, 'bench.happened', status,
           CASE status WHEN 'SCHEDULED' THEN 'QUOTA' WHEN 'FAILED' THEN 'delivery/http/500' END,
           CASE status WHEN 'SCHEDULED' THEN now() + interval '1 day' END, CASE status WHEN 'SCHEDULED' THEN 0 ELSE 1 END, 384,
           to_timestamp(millis / 1000.0), to_timestamp(millis / 1000.0),
           CASE WHEN status <> 'SCHEDULED' THEN to_timestamp(millis / 1000.0) END
    FROM event, generate_series(0::bigint, {rows} - 1) AS n,
         LATERAL (SELECT {from} + n * {step} / 1000 AS millis, n % {subscriptions} AS s,
                         CASE WHEN n % 50000 = 7 THEN 'FAILED' WHEN n % 1000 = 1 THEN 'SCHEDULED' ELSE 'SENT' END AS status) AS one";

pub(super) fn expected(sizes: &Sizes) -> Duration {
    const ASKING: Duration = Duration::from_secs(120);
    ASKING + Duration::from_secs(sizes.dead_letters / 10_000)
}

/// Measures every page, then consoles that are left open.
pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let (rig, letters) = (bench.rig, bench.sizes.dead_letters);
    rig.restart().await?;
    let notifications = letters * NOTIFICATIONS;
    tell(format_args!(
        "console: writing {letters} dead letters and {notifications} notifications"
    ));
    dead_letters::fill(rig, letters).await?;
    fill(rig, notifications).await?;
    rig.analyze().await?;
    let (service, address) = rig.operator_api().await?;
    // Of one who acts: the page of a job to be made is for those alone.
    let key = rig.operator_key().await?;
    let cookie = sign_in(address, &key).await?;

    let mut section = Section::new("console");
    tell("console: a page with nothing on it");
    let floor = ask(address, "/console/sign-in", &cookie).await?;
    let floor = Number::new(
        "the page to sign in, median",
        quantile(&floor, 0.5),
        Unit::Milliseconds,
    );
    let mut grid = Grid::new(format!("first byte, {REQUESTS} requests each"), "page");
    for (name, path) in pages(rig).await? {
        tell(format_args!("console: {name}"));
        let times = ask(address, &path, &cookie).await?;
        let limit = if path == "/console/dead-letters" {
            LIMIT_GROUPS
        } else {
            LIMIT_99
        };
        let row = |measure: &str, share| Row::new(measure, quantile(&times, share), Unit::Milliseconds);
        grid.line(
            name,
            vec![
                row("median", 0.5).beside([floor.clone()]),
                row("95th of 100", 0.95).target(Target::Under(LIMIT_95.max(limit - LIMIT_99 + LIMIT_95))),
                row("99th of 100", 0.99).target(Target::Under(limit)),
            ],
        );
    }
    section.grids.push(grid);
    tell(format_args!("console: {CONSOLES} open ones"));
    let used = open_consoles(rig, address, &key).await?;
    section.row(
        Row::new(
            format!("CPU a second of {CONSOLES} open consoles"),
            used,
            Unit::Milliseconds,
        )
        .target(Target::Under(CPU_LIMIT)),
    );
    section.note(format!(
        "{letters} open dead letters in 300 groups, {notifications} notifications of seven days for {SUBSCRIPTIONS} subscriptions, \
         {RESELLERS} resellers; each request on a connection of its own. The open consoles show Now and ask every {} s, with a visit \
         each; measured is operator-api over {} s.",
        TICK.as_secs(),
        OPEN_FOR.as_secs(),
    ));
    drop(service);
    rig.restart().await?;
    Ok(section)
}

/// The pages, by name.
async fn pages(rig: &Rig) -> Result<Vec<(&'static str, String)>> {
    let one = |of: &'static str| format!("SELECT id::text FROM {of} LIMIT 1");
    let find = async |statement: String| -> Result<String> {
        let found = sqlx::query_scalar(AssertSqlSafe(statement))
            .fetch_one(&rig.pool)
            .await;
        found.context("there is nothing to show")
    };
    let letter = find(one("dead_letters WHERE lane = 'reseller'")).await?;
    let notification = find(one("notifications WHERE status = 'FAILED'")).await?;
    let page = |path: &str| format!("/console{path}");
    Ok(vec![
        ("Now", page("")),
        ("groups", page("/dead-letters")),
        ("groups of a lane", page("/dead-letters?lane=push")),
        ("dead letters", page("/dead-letters/list")),
        (
            "dead letters, filtered",
            page("/dead-letters/list?fingerprint=delivery%2Fdns&reseller=reseller-7"),
        ),
        ("a dead letter", page(&format!("/dead-letters/{letter}"))),
        ("jobs", page("/jobs")),
        (
            "a job to be made",
            page("/jobs/new?action=replay&fingerprint=delivery%2Fdns"),
        ),
        ("waiting", page("/waiting")),
        ("lanes", page("/lanes")),
        ("resellers", page("/resellers")),
        ("a reseller", page("/resellers/reseller-7")),
        (
            "a subscription",
            page("/subscriptions/00000000-0000-4000-8000-000000000007"),
        ),
        ("quota requests", page("/quota-requests")),
        ("system", page("/system")),
        ("mails", page("/mails")),
        ("pauses", page("/pauses")),
        ("audit", page("/audit")),
        ("access", page("/access")),
        ("a story", page(&format!("/explain/{notification}"))),
    ])
}

async fn fill(rig: &Rig, notifications: u64) -> Result<()> {
    sqlx::query(SUBSCRIBE)
        .bind(i64::try_from(RESELLERS)?)
        .execute(&rig.pool)
        .await
        .context("failed to write subscriptions")?;
    let now = u64::try_from(SystemClock.now().timestamp_millis())?;
    let step_micros = SPAN_MILLIS * 1_000 / notifications.max(1);
    for done in (0..notifications).step_by(FILL_BATCH as usize) {
        let statement = NOTIFY
            .replace(
                "{from}",
                &(now - SPAN_MILLIS + done * step_micros / 1_000).to_string(),
            )
            .replace("{rows}", &FILL_BATCH.min(notifications - done).to_string())
            .replace("{step}", &step_micros.to_string())
            .replace("{subscriptions}", &SUBSCRIPTIONS.to_string());
        rig.pool
            .execute(AssertSqlSafe(statement))
            .await
            .context("failed to write notifications")?;
    }
    Ok(())
}

/// The cookie of a new visit.
async fn sign_in(address: SocketAddr, key: &str) -> Result<String> {
    let form = format!("key={key}&next=%2Fconsole");
    let headers = [("sec-fetch-site", "same-origin".to_owned())];
    let answer = http::post_form_with(address, "/console/sign-in", form, &headers).await?;
    ensure!(
        answer.status == StatusCode::SEE_OTHER,
        "signing in was answered with {}",
        answer.status
    );
    answer.cookie.context("signing in was answered without a cookie")
}

async fn get(address: SocketAddr, path: &str, cookie: &str, is_tick: bool) -> Result<()> {
    let mut headers = vec![("cookie", cookie.to_owned())];
    if is_tick {
        headers.push(("x-postrider-tick", "1".to_owned()));
    }
    let answer = http::get_with(address, path, &headers).await?;
    ensure!(
        answer.status == StatusCode::OK,
        "{path} was answered with {}: {}",
        answer.status,
        String::from_utf8_lossy(&answer.body)
    );
    Ok(())
}

/// The times of the requests in milliseconds.
async fn ask(address: SocketAddr, path: &str, cookie: &str) -> Result<Vec<f64>> {
    let mut times = Vec::with_capacity(REQUESTS);
    for request in 0..WARM_UP + REQUESTS {
        let started = Instant::now();
        get(address, path, cookie, false).await?;
        if request >= WARM_UP {
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(times)
}

/// The CPU time that the service takes in a second for consoles that are left open, in milliseconds.
async fn open_consoles(rig: &Rig, address: SocketAddr, key: &str) -> Result<f64> {
    let mut consoles = Vec::with_capacity(CONSOLES);
    for number in 0..CONSOLES {
        let cookie = sign_in(address, key).await?;
        let share = u32::try_from(number)?;
        consoles.push(tokio::spawn(async move {
            // They were not opened at the same moment.
            tokio::time::sleep(TICK * share / CONSOLES as u32).await;
            loop {
                if let Err(error) = get(address, "/console", &cookie, true).await {
                    return error;
                }
                // As the page does: it asks again so long after it was answered. A clock that goes on meanwhile would keep all of them asking
                // at once on a machine that is slower than they are, until one waits too long.
                tokio::time::sleep(TICK).await;
            }
        }));
    }
    tokio::time::sleep(TICK * 2).await;
    let (before, started) = (rig.usage(), Instant::now());
    tokio::time::sleep(OPEN_FOR).await;
    let used = rig.usage().since(&before).of("operator-api").total();
    let lasted = started.elapsed().as_secs_f64();
    for console in consoles {
        if console.is_finished() {
            return Err(console.await?.context("an open console was answered otherwise"));
        }
        console.abort();
    }
    Ok(used / lasted * 1e3)
}
