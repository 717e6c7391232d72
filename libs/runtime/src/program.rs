//! A whole program: from its sources of configuration to its exit code.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Arg, Command, value_parser};
use config::{Config, Sources};
use lifecycle::Shutdown;

use crate::report::tell;
use crate::{Error, Process, Service, descriptors};

/// The exit code for a wrong configuration: `EX_USAGE` of sysexits.h.
pub const BAD_CONFIGURATION: u8 = 64;

/// What the exit codes mean, for `--help`.
pub const EXIT_CODES: &str = "Exit codes:
  0   done; a service: stopped cleanly after SIGTERM or SIGINT
  1   failed; the reason is on standard error
  2   the command line is wrong
  64  the configuration is wrong; all of its errors are on standard error";

/// How long the last traces, log lines and metrics may take to be delivered.
const TELEMETRY_FLUSH: Duration = Duration::from_secs(3);
/// How long threads that still block at the end are waited for.
const THREADS_END: Duration = Duration::from_secs(1);

/// The `main` of a service's own binary: one service, and `--config FILE`.
pub fn main(service: Service) -> ExitCode {
    let command = Command::new(service.name())
        .version(env!("CARGO_PKG_VERSION"))
        .about("A service of Postrider; the same as `postrider serve` with its name")
        .after_help(EXIT_CODES)
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("YAML file with what differs from the defaults; also from POSTRIDER_CONFIG"),
        );
    let file = command.get_matches().remove_one::<PathBuf>("config");
    let name = service.name();
    exit(run(name, &Sources::of_process(file), vec![service]))
}

/// Runs services in this process until a signal stops them. The name stands in traces.
pub fn run(name: &str, sources: &Sources, services: Vec<Service>) -> Result<(), Error> {
    let config = config::load(sources)?;
    lifecycle::crypto::install_default_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    let outcome = runtime.block_on(run_with_telemetry(name, Arc::new(config), services));
    runtime.shutdown_timeout(THREADS_END);
    outcome
}

/// The exit code of a program that ended like this. A failure is told to the operator.
pub fn exit(outcome: Result<(), Error>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&error);
            if error.is_configuration() {
                BAD_CONFIGURATION.into()
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

async fn run_with_telemetry(name: &str, config: Arc<Config>, services: Vec<Service>) -> Result<(), Error> {
    let telemetry = telemetry::init(&telemetry_settings(name, &config)).map_err(|error| match error {
        telemetry::Error::Filter { .. } => Error::LogFilter(error),
        other => Error::Telemetry(other),
    })?;
    descriptors::raise(&config);
    let outcome = run_until_signal(config, services).await;
    telemetry.shutdown(TELEMETRY_FLUSH).await;
    outcome
}

async fn run_until_signal(config: Arc<Config>, services: Vec<Service>) -> Result<(), Error> {
    let shutdown = Shutdown::on_signals().map_err(Error::Signals)?;
    Process::bind(config, services).await?.run(shutdown).await?;
    tracing::info!("stopped");
    Ok(())
}

fn telemetry_settings(name: &str, config: &Config) -> telemetry::Settings {
    telemetry::Settings {
        log_format: match config.telemetry.log_format {
            config::LogFormat::Human => telemetry::LogFormat::Human,
            config::LogFormat::Json => telemetry::LogFormat::Json,
        },
        log_filter: config.telemetry.log_filter.clone(),
        otlp_endpoint: config
            .telemetry
            .otlp_endpoint
            .as_ref()
            .map(|url| url.expose().to_owned()),
        otlp_logs: config.telemetry.otlp_logs,
        otlp_metrics: config
            .telemetry
            .otlp_metrics
            .then_some(config.telemetry.otlp_metrics_interval),
        sample_ratio: config.telemetry.sample_ratio,
        service_name: name.to_owned(),
        instance: format!(
            "{}-{}",
            rustix::system::uname().nodename().to_string_lossy(),
            std::process::id()
        ),
    }
}
