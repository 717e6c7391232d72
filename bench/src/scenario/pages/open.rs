//! Consoles that are left open: each asks for its page again and again.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::visit::sign_in;
use crate::report::{Row, Section, Target, Unit};
use crate::rig::{Rig, Service};
use crate::tell;

/// How many, how often each asks, and for how long that is measured.
const CONSOLES: u32 = 50;
const TICK: Duration = Duration::from_secs(2);
const OPEN_FOR: Duration = Duration::from_secs(30);
/// What they may take of the CPU in a second, in milliseconds: 5 of 100 of one core.
const CPU_LIMIT: f64 = 50.0;
/// How often in a second the whole system may be looked at for all of them.
const LOOKS_LIMIT: f64 = 1.0;
const LOOKS: &str = "postrider_status_looks_total";

pub(super) async fn measure(
    rig: &Rig,
    (service, address): (&Service, SocketAddr),
    key: &str,
    section: &mut Section,
) -> Result<()> {
    tell(format_args!("pages: {CONSOLES} open consoles"));
    let mut consoles = Vec::new();
    for number in 0..CONSOLES {
        let visit = sign_in(address, key).await?;
        consoles.push(tokio::spawn(async move {
            // They were not opened at the same moment.
            tokio::time::sleep(TICK * number / CONSOLES).await;
            let mut tag = String::new();
            loop {
                match visit.get("/console", Some(&tag)).await {
                    Ok(answer) => tag = answer.tag.unwrap_or(tag),
                    Err(error) => return error,
                }
                // As the page does: it asks again so long after it was answered. A clock that goes on meanwhile would keep all of them asking
                // at once on a machine that is slower than they are, until one waits too long.
                tokio::time::sleep(TICK).await;
            }
        }));
    }
    tokio::time::sleep(TICK * 2).await;
    let looks = async || anyhow::Ok(service.metrics().await?.value(LOOKS, None).unwrap_or_default());
    let (before, looks_before, started) = (rig.usage(), looks().await?, Instant::now());
    tokio::time::sleep(OPEN_FOR).await;
    let (used, looked) = (rig.usage().since(&before), looks().await? - looks_before);
    let lasted = started.elapsed().as_secs_f64();
    for console in consoles {
        if console.is_finished() {
            return Err(console.await?.context("an open console was answered otherwise"));
        }
        console.abort();
    }
    let cpu = |who: &str| {
        let millis = used.of(who).total() / lasted * 1e3;
        Row::new(
            format!("CPU a second of {CONSOLES} open consoles, {who}"),
            millis,
            Unit::Milliseconds,
        )
    };
    section.row(cpu("operator-api").target(Target::Under(CPU_LIMIT)));
    section.row(cpu("PostgreSQL"));
    section.row(
        Row::new(
            "looks at the whole system for them",
            looked / lasted,
            Unit::PerSecond,
        )
        .target(Target::AtMost(LOOKS_LIMIT)),
    );
    section.note(format!(
        "The open consoles show Now and ask {} s after each answer, with a visit each; measured over {} s.",
        TICK.as_secs(),
        OPEN_FOR.as_secs(),
    ));
    Ok(())
}
