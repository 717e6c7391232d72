//! What a person in front of the console or the dashboard waits for, among a million dead letters, a million notifications and a thousand
//! resellers: each page, beside a page with nothing on it; what its server and the database do for it; and what fifty open consoles cost.

mod browser;
mod fill;
mod open;
mod visit;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use hyper::StatusCode;
use sqlx::AssertSqlSafe;

use self::visit::{REQUESTS, Visit};
use super::{Bench, dead_letters};
use crate::report::stats::quantile;
use crate::report::{Grid, Number, Row, Section, Target, Unit};
use crate::rig::{Rig, Service, settings};
use crate::sizes::Sizes;
use crate::{cpu, tell};

/// What the first byte of a page may take: 95 and 99 of 100, and 99 of 100 of the groups.
const LIMIT_95: f64 = 30.0;
const LIMIT_99: f64 = 80.0;
const LIMIT_GROUPS: f64 = 120.0;
/// The same of the failed deliveries of a week.
const LIMIT_FAILED: f64 = 50.0;
/// What the server may use for a page that has not changed.
const TICK_LIMIT: f64 = 5.0;
/// How long 10,000 rows may take as a file, in milliseconds, and what the server may need for it, in megabytes.
const FILE_LIMIT: f64 = 2_000.0;
const FILE_MEMORY_LIMIT: f64 = 10.0;
const RESELLERS: u64 = 1_000;
/// Of the first reseller.
const SUBSCRIPTIONS: u64 = 10;
/// Notifications for each dead letter.
const NOTIFICATIONS: u64 = 1;

pub(super) fn expected(sizes: &Sizes) -> Duration {
    const ASKING: Duration = Duration::from_secs(240);
    ASKING + Duration::from_secs(sizes.dead_letters / 10_000)
}

/// Measures every page, then files, consoles that are left open, and what is seen in a browser.
pub(super) async fn measure(bench: &Bench<'_>) -> Result<Section> {
    let (rig, letters) = (bench.rig, bench.sizes.dead_letters);
    rig.restart().await?;
    let notifications = letters * NOTIFICATIONS;
    tell(format_args!(
        "pages: writing {letters} dead letters and {notifications} notifications"
    ));
    dead_letters::fill(rig, letters).await?;
    fill::fill(rig, notifications).await?;
    rig.analyze().await?;
    let (operator, console_at) = rig.operator_api().await?;
    let (portal, dashboard_at) = rig.portal(&settings()).await?;
    // Of one who acts: the page of a job to be made is for those alone.
    let key = rig.operator_key().await?;
    let reseller_key = rig.reseller_key("reseller-0").await?;
    let console = visit::sign_in(console_at, &key).await?;
    let dashboard = visit::enter(dashboard_at, &reseller_key).await?;

    let mut section = Section::new("pages");
    tell("pages: a page with nothing on it");
    console.warm_up("/console/sign-in").await?;
    let floor = quantile(&console.ask("/console/sign-in").await?, 0.5);
    let floor = Number::new("the page to sign in, median", floor, Unit::Milliseconds);
    for (name, visit, service, pages) in [
        ("console", &console, &operator, pages_of_console(rig).await?),
        ("dashboard", &dashboard, &portal, pages_of_dashboard(rig).await?),
    ] {
        let mut grid = Grid::new(format!("{name}, {REQUESTS} requests each"), "page");
        for page in pages {
            tell(format_args!("pages: {name}, {}", page.name));
            grid.line(page.name, page.rows(rig, visit, service, &floor).await?);
        }
        section.grids.push(grid);
    }
    section.grids.push(unchanged(rig, &console, &operator).await?);
    file(&console, &operator, &mut section).await?;
    open::measure(rig, (&operator, console_at), &key, &mut section).await?;
    let doors = browser::Doors {
        console: (console_at, key),
        dashboard: (dashboard_at, visit::link(dashboard_at, &reseller_key).await?),
    };
    browser::measure(doors, &mut section).await?;
    section.note(format!(
        "{letters} open dead letters in 300 groups, {RESELLERS} resellers, the first of them with {SUBSCRIPTIONS} subscriptions and \
         {notifications} notifications of seven days, of which one in 50,000 has failed; each request on a connection of its own. CPU is \
         what the service's process and all of PostgreSQL's used meanwhile, for each request; other work on the machine makes requests slower, \
         but hardly more expensive.",
    ));
    rig.restart().await?;
    Ok(section)
}

/// A page that is measured.
struct Page {
    name: &'static str,
    path: String,
    limits: (f64, f64),
}

impl Page {
    async fn rows(&self, rig: &Rig, visit: &Visit, service: &Service, floor: &Number) -> Result<Vec<Row>> {
        visit.warm_up(&self.path).await?;
        let before = rig.usage();
        let times = visit.ask(&self.path).await?;
        let used = rig.usage().since(&before);
        let (limit_95, limit_99) = self.limits;
        let row = |measure: &str, share| Row::new(measure, quantile(&times, share), Unit::Milliseconds);
        let cpu = |who: &str| {
            Row::new(
                format!("CPU of {who}"),
                used.of(who).total() * 1e3 / REQUESTS as f64,
                Unit::Milliseconds,
            )
        };
        Ok(vec![
            row("median", 0.5).beside([floor.clone()]),
            row("95th of 100", 0.95).target(Target::Under(limit_95)),
            row("99th of 100", 0.99).target(Target::Under(limit_99)),
            cpu(&service.process.name),
            cpu("PostgreSQL"),
        ])
    }
}

fn page(name: &'static str, path: impl Into<String>) -> Page {
    Page {
        name,
        path: path.into(),
        limits: (LIMIT_95, LIMIT_99),
    }
}

/// The first value that a statement finds.
async fn find(rig: &Rig, statement: &str) -> Result<String> {
    let found = sqlx::query_scalar(AssertSqlSafe(statement)).fetch_one(&rig.pool);
    found.await.context("there is nothing to show")
}

const FAILED: &str = "SELECT id::text FROM notifications WHERE status = 'FAILED' LIMIT 1";

async fn pages_of_console(rig: &Rig) -> Result<Vec<Page>> {
    let letter = find(
        rig,
        "SELECT id::text FROM dead_letters WHERE lane = 'reseller' LIMIT 1",
    )
    .await?;
    let notification = find(rig, FAILED).await?;
    let page = |name, path: &str| page(name, format!("/console{path}"));
    let groups = |name, path: &str| Page {
        limits: (LIMIT_95 + LIMIT_GROUPS - LIMIT_99, LIMIT_GROUPS),
        ..page(name, path)
    };
    Ok(vec![
        page("Now", ""),
        groups("groups", "/dead-letters"),
        groups("groups by reseller", "/dead-letters/resellers"),
        page("groups of a lane", "/dead-letters?lane=push"),
        page("dead letters", "/dead-letters/list"),
        page(
            "dead letters, filtered",
            "/dead-letters/list?fingerprint=delivery%2Fdns&reseller=reseller-7",
        ),
        page("a dead letter", &format!("/dead-letters/{letter}")),
        page("jobs", "/jobs"),
        page(
            "a job to be made",
            "/jobs/new?action=replay&fingerprint=delivery%2Fdns",
        ),
        page("waiting", "/waiting"),
        page("lanes", "/lanes"),
        page("resellers", "/resellers"),
        page("a reseller", "/resellers/reseller-0"),
        page(
            "a subscription",
            "/subscriptions/00000000-0000-4000-8000-000000000007",
        ),
        page("quota requests", "/quota-requests"),
        page("system", "/system"),
        page("mails", "/mails"),
        page("pauses", "/pauses"),
        page("audit", "/audit"),
        page("access", "/access"),
        page("a story", &format!("/explain/{notification}")),
    ])
}

async fn pages_of_dashboard(rig: &Rig) -> Result<Vec<Page>> {
    let notification = find(rig, FAILED).await?;
    let of_one = |name, part: &str| {
        page(
            name,
            format!("/app/s/00000000-0000-4000-8000-000000000007/{part}"),
        )
    };
    let failed = Page {
        limits: (LIMIT_FAILED, LIMIT_FAILED),
        ..page(
            "failed deliveries of seven days",
            "/app/deliveries?status=FAILED,GIVEN_UP",
        )
    };
    Ok(vec![
        page("overview", "/app"),
        page("deliveries", "/app/deliveries"),
        failed,
        of_one("deliveries of one", "deliveries"),
        page("a notification", format!("/app/n/{notification}")),
        of_one("what waits", "scheduled"),
        of_one("settings", "settings"),
        of_one("quota", "quota"),
        of_one("metrics", "metrics"),
        of_one("replays", "replays"),
        page("activity", "/app/activity"),
        page("event types", "/app/event-types"),
    ])
}

/// What pages that follow what happens cost when nothing has: the browser says what it has, and gets nothing.
async fn unchanged(rig: &Rig, console: &Visit, operator: &Service) -> Result<Grid> {
    let mut grid = Grid::new(
        format!("a page asked for again, {REQUESTS} requests each"),
        "page",
    );
    for (name, path) in [
        ("groups", "/console/dead-letters"),
        ("dead letters", "/console/dead-letters/list"),
        ("jobs", "/console/jobs"),
        ("resellers", "/console/resellers"),
        ("Now", "/console"),
    ] {
        tell(format_args!("pages: {name} again"));
        console.warm_up(path).await?;
        let mut tag = console
            .get(path, None)
            .await?
            .tag
            .context("a page without a tag")?;
        let (mut times, mut same) = (Vec::with_capacity(REQUESTS), 0);
        let before = rig.usage();
        for _ in 0..REQUESTS {
            let started = Instant::now();
            let answer = console.get(path, Some(&tag)).await?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
            same += u64::from(answer.status == StatusCode::NOT_MODIFIED);
            tag = answer.tag.unwrap_or(tag);
        }
        let used = rig.usage().since(&before).of(&operator.process.name).total();
        let used = used * 1e3 / REQUESTS as f64;
        grid.line(
            name,
            vec![
                Row::new("median", quantile(&times, 0.5), Unit::Milliseconds),
                Row::new("99th of 100", quantile(&times, 0.99), Unit::Milliseconds),
                Row::new("CPU of operator-api", used, Unit::Milliseconds).target(Target::Under(TICK_LIMIT)),
                Row::count("answered with nothing", same),
            ],
        );
    }
    Ok(grid)
}

/// A list as a file of 10,000 rows.
async fn file(console: &Visit, operator: &Service, section: &mut Section) -> Result<()> {
    const PATH: &str = "/console/dead-letters/export?format=csv";
    tell("pages: a file");
    let peak = || cpu::memory_of(operator.process.pid).map_or(f64::NAN, |memory| memory.peak);
    let (before, started) = (peak(), Instant::now());
    let answer = console.get(PATH, None).await?;
    let took = started.elapsed().as_secs_f64() * 1e3;
    // The heads, what says that there are more, and what stands after the last line are no rows.
    let rows = answer.body.split(|byte| *byte == b'\n').count().saturating_sub(3);
    section.row(
        Row::new(format!("a file of {rows} dead letters"), took, Unit::Milliseconds)
            .target(Target::Under(FILE_LIMIT)),
    );
    section.row(
        Row::new(
            "what it adds to the most memory that operator-api ever had",
            peak() - before,
            Unit::Megabytes,
        )
        .target(Target::Under(FILE_MEMORY_LIMIT)),
    );
    Ok(())
}
