//! `postrider demo`: real traffic through a running Postrider, and what became of it.
//!
//! It looks only at what any caller can see: the APIs' answers, `GET /push/{id}`, `GET /events/{id}`, the metrics, and what
//! arrived at the Swrve simulator, at the receiver, at the mail server and at a user agent. The push lane's part stands here, those of
//! the reseller lane and of Web Push in folders of their own.

mod case;
mod history;
mod metrics;
mod mix;
mod pacing;
mod posting;
mod reseller;
mod table;
mod waiting;
mod webpush;

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use config::Sources;
use domain::clock::{Clock as _, SystemClock};
use tokio::time::Instant;
use uuid::Uuid;

use crate::ingest::{Ingest, IngestArgs};
use crate::output;
use crate::simulator::Simulator;

use case::Case;
use pacing::Pacing;
use reseller::ResellerArgs;
use webpush::WebpushArgs;

#[derive(Debug, Args)]
#[command(after_help = "\
Sends pushes that are delivered, that fail in every way there is, that wait for their window, that are repeated and that
are refused, waits until each is where it should be, and prints a table of them. Then the same with events for a reseller, with
subscriptions of its own at a receiver of webhooks; then with messages of Web Push to a user agent that is connected, goes away and
comes back. Exits 1 when something deviates.

The Swrve simulator and the receiver are told how to fail; their earlier rules are lost. Needs the message prototype Hello with push
keys for IOS and ANDROID in swrve.messagePrototypePushKeys. With the default push.retry.delayInSeconds it takes some
minutes until a push is given up.

With --history nothing is sent: a week of made-up deliveries is written into the database of the configuration, for subscriptions that stay.")]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    ingest: IngestArgs,
    /// Where the Swrve simulator listens to which Postrider sends.
    #[arg(long, env = "SWRVE_SIM_URL", default_value = "http://127.0.0.1:8090")]
    swrve_sim_url: String,
    /// Where the dispatcher's metrics are; the pace of sends is checked there.
    #[arg(long, env = "METRICS_URL", default_value = "http://127.0.0.1:9090/metrics")]
    metrics_url: String,
    /// How many pushes to send that are simply delivered.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pushes: u32,
    /// How long to wait until all of them are where they should be.
    #[arg(long, value_name = "SECONDS", default_value_t = 420)]
    timeout: u64,
    /// Writes a made-up week for the reseller demo instead, in place of an earlier one; refused where the database knows another reseller.
    #[arg(long, conflicts_with_all = ["pushes", "events"])]
    history: bool,
    #[command(flatten)]
    reseller: ResellerArgs,
    #[command(flatten)]
    webpush: WebpushArgs,
}

/// Sends the mix, waits, and shows the outcome; or writes a past.
pub(crate) async fn run(sources: &Sources, args: DemoArgs) -> anyhow::Result<()> {
    if args.history {
        return history::run(sources, &args.reseller, Duration::from_secs(args.timeout)).await;
    }
    let ingest = Ingest::new(&args.ingest)?;
    let simulator = Simulator::new(&args.swrve_sim_url)?;
    let run = Uuid::now_v7().simple().to_string();
    let cases = mix::cases(&run, args.pushes, SystemClock.now());
    let rules: Vec<_> = cases.iter().flat_map(|case| case.rules.clone()).collect();
    simulator.script(&rules).await?;
    simulator.reset().await?;
    let outcome = drive(&args, &ingest, &simulator, cases).await;
    // Whatever came of it, later pushes are not to fail as these were told to.
    let cleared = simulator.script(&[]).await;
    let mut deviations = outcome?;
    cleared?;
    let timeout = Duration::from_secs(args.timeout);
    deviations.extend(reseller::run(&args.reseller, &ingest, &run, timeout).await?);
    deviations.extend(webpush::run(&args.webpush, timeout).await?);
    conclude(&deviations)
}

async fn drive(
    args: &DemoArgs,
    ingest: &Ingest,
    simulator: &Simulator,
    cases: Vec<Case>,
) -> anyhow::Result<Vec<String>> {
    let start = Instant::now();
    let posted = posting::post(ingest, cases).await?;
    output::note(format_args!(
        "posted {} pushes in {:.2} s; waiting until each is where it should be",
        posted.iter().map(|case| case.answers.len()).sum::<usize>(),
        start.elapsed().as_secs_f64()
    ));
    let deadline = Instant::now() + Duration::from_secs(args.timeout);
    let ended = waiting::wait(ingest, posted, deadline).await;
    output::result(table::of(&ended))?;
    let pacing = Pacing::observe(simulator, &args.metrics_url, &ended).await?;
    output::result(&pacing)?;
    let mut deviations: Vec<_> = ended.iter().filter_map(case::Ended::deviation).collect();
    deviations.extend(pacing.deviation());
    Ok(deviations)
}

fn conclude(deviations: &[String]) -> anyhow::Result<()> {
    if !deviations.is_empty() {
        bail!(
            "not everything is as it should be:\n  {}",
            deviations.join("\n  ")
        );
    }
    output::result(
        "Everything is where it should be: delivered, refused, given up or waiting for its time, and nothing was lost.",
    )?;
    Ok(())
}
