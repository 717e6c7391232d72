//! `postrider sim`: simulators of receivers and of a mail server.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use config::Sources;
use lifecycle::Shutdown;
use simulators::smtp::SmtpSink;
use simulators::swrve::{Options, ResponseTime, SwrveSim, parse_script};
use tokio::net::TcpListener;

use crate::output::{self, Column, FormArgs, Table};
use crate::simulator::Simulator;

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Stands in for the Swrve push API until it is stopped, and then prints its report as JSON.
    #[command(after_help = "Examples:
  postrider sim swrve --listen 127.0.0.1:0 --response-time fixed:50 --rate-limit off
  curl -X PUT http://127.0.0.1:8090/script -d '[{\"match\": {\"user\": \"u-1\"}, \"status\": 503, \"times\": 2}]'
More in docs/swrve-simulator.md.")]
    Swrve(SwrveArgs),
    /// Stands in for a mail server until it is stopped: keeps each mail as a file, delivers none, and prints its report as
    /// JSON at the end.
    #[command(after_help = "Examples:
  postrider sim smtp --listen 127.0.0.1:1025 --dir .dev/mail
  POSTRIDER__MAIL__SMTP_URL=smtp://127.0.0.1:1025 postrider serve retry-worker")]
    Smtp(SmtpArgs),
    /// Shows what has arrived at a simulator that runs.
    Report {
        /// Where it listens.
        #[arg(env = "SWRVE_SIM_URL", default_value = "http://127.0.0.1:8090")]
        url: String,
        #[command(flatten)]
        form: FormArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SwrveArgs {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// How long an answer takes: fixed:MILLIS, seed for times as measured at Swrve (233 to 7,701 ms), or about:MILLIS for
    /// such times with another average. Without it about swrve.averageProcessingMillis when that is configured, else seed.
    #[arg(long, value_name = "seed|about:MILLIS|fixed:MILLIS")]
    response_time: Option<ResponseTime>,
    /// Most requests within any second; the rest get a 429. Or off.
    #[arg(long, value_name = "N|off", default_value = "300", value_parser = rate_limit)]
    rate_limit: RateLimit,
    /// JSON file with the rules in force from the start.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Makes the drawn response times repeatable.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// Wrapped, because clap takes a bare `Option` for an argument that may be missing.
#[derive(Debug, Clone, Copy)]
struct RateLimit(Option<u32>);

fn rate_limit(text: &str) -> Result<RateLimit, &'static str> {
    if text == "off" {
        return Ok(RateLimit(None));
    }
    match text.parse() {
        Ok(limit) => Ok(RateLimit(Some(limit))),
        Err(_) => Err("write a number of requests per second, or off"),
    }
}

#[derive(Debug, Args)]
pub(crate) struct SmtpArgs {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:1025")]
    listen: SocketAddr,
    /// The folder for the mails, one .eml file each; made if it is missing.
    #[arg(long, value_name = "FOLDER", default_value = "mail")]
    dir: PathBuf,
}

/// Does what the command says.
pub(crate) async fn run(sources: &Sources, command: SimCommand) -> anyhow::Result<()> {
    match command {
        SimCommand::Swrve(args) => swrve(sources, args).await,
        SimCommand::Smtp(args) => smtp(args).await,
        SimCommand::Report { url, form } => {
            let report = Simulator::new(&url)?.report().await?;
            let fields = serde_json::to_value(&report)?;
            form.form().print(&report, || table_of(&fields))
        }
    }
}

/// What was asked for, else the average that the services expect of Swrve, else what was measured at Swrve.
fn response_time(sources: &Sources, asked: Option<ResponseTime>) -> anyhow::Result<ResponseTime> {
    if let Some(asked) = asked {
        return Ok(asked);
    }
    let average = config::given_average_processing(sources)?;
    Ok(average.map_or(ResponseTime::Seed, ResponseTime::About))
}

async fn swrve(sources: &Sources, args: SwrveArgs) -> anyhow::Result<()> {
    let shutdown = Shutdown::on_signals().context("failed to register the signal handlers")?;
    let options = Options {
        response_time: response_time(sources, args.response_time)?,
        random_seed: args.seed,
        requests_per_second: args.rate_limit.0,
        script: match &args.script {
            None => Vec::new(),
            Some(file) => {
                let script = std::fs::read(file)
                    .with_context(|| format!("failed to read the script {}", file.display()))?;
                parse_script(&script)
                    .with_context(|| format!("the script {} is not usable", file.display()))?
            }
        },
        ..Options::default()
    };
    let listener = listen(args.listen).await?;
    let simulator = SwrveSim::start(listener, options)?;
    output::result(format_args!("listening on http://{}", simulator.addr()))?;
    shutdown.cancelled().await;
    let report = simulator.report();
    simulator.shutdown().await;
    output::json(&report)
}

async fn smtp(args: SmtpArgs) -> anyhow::Result<()> {
    let shutdown = Shutdown::on_signals().context("failed to register the signal handlers")?;
    let sink = SmtpSink::start(listen(args.listen).await?, &args.dir)
        .with_context(|| format!("failed to keep mails in {}", args.dir.display()))?;
    output::result(format_args!("listening on smtp://{}", sink.addr()))?;
    shutdown.cancelled().await;
    let report = sink.report();
    sink.shutdown().await;
    output::json(&report)
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!(
            "failed to listen on {address}; stop what listens there, or choose another address with --listen"
        )
    })
}

/// The report's own names, so that they can be looked up.
fn table_of(report: &serde_json::Value) -> Table {
    let mut table = Table::of([Column::whole("at the simulator"), Column::prose("value")]);
    for (name, value) in report.as_object().cloned().unwrap_or_default() {
        table.add_row([name, value.to_string()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn swrve_answers_after_about_the_time_that_the_services_are_told_to_expect() {
        let configured =
            Sources::default().with_variable("POSTRIDER__SWRVE__AVERAGE_PROCESSING_MILLIS", "2000");
        let chosen = |sources, asked| response_time(sources, asked).unwrap();
        let about = ResponseTime::About(Duration::from_secs(2));
        assert_eq!(chosen(&configured, None), about);
        assert_eq!(chosen(&configured, Some(ResponseTime::Seed)), ResponseTime::Seed);
        assert_eq!(chosen(&Sources::default(), None), ResponseTime::Seed);
    }
}
