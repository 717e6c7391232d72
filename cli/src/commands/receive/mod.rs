//! `postrider receive`: a receiver of webhooks that checks, prints and fails on demand.

mod behaviour;
mod line;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use domain::counted::of as counted;
use lifecycle::Shutdown;
use simulators::receiver::{Options, Received, Receiver, Report, SecretFor, load_tls};
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::output::{self, JsonArgs};

pub(crate) use behaviour::Answers;

use behaviour::BehaviourArgs;

/// Every request at its end.
type Followed = broadcast::Receiver<Arc<Received>>;

#[derive(Debug, Args)]
#[command(after_help = "\
Prints one line for each request: when it came, how it was answered, whether its signature is right, event type, identifier,
and how long after the event it came. Every path is an endpoint. Verification challenges are answered.

Examples:
  postrider receive --secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
  postrider receive --answer 503,503,200 --answer 'contact.*=410'
  postrider receive --fail-first 2 --delay-millis 100
  curl -X PUT http://127.0.0.1:8091/_control -d '{\"rules\": [{\"hang\": true}]}'
  curl http://127.0.0.1:8091/_report
More in docs/receiver.md.")]
pub(crate) struct ReceiveArgs {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8091")]
    listen: SocketAddr,
    /// A signing secret, or /PATH=SECRET for one endpoint; may be repeated. Without any, nothing is checked.
    #[arg(
        long = "secret",
        value_name = "SECRET",
        env = "WEBHOOK_SECRET",
        hide_env_values = true,
        value_delimiter = ','
    )]
    secrets: Vec<String>,
    /// How far a timestamp may be away.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    tolerance_seconds: u64,
    #[command(flatten)]
    behaviour: BehaviourArgs,
    // Lines: where it listens, then each request with its headers and body.
    #[command(flatten)]
    form: JsonArgs,
    /// PEM file with the certificate chain; makes it an HTTPS server.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// PEM file with the key of the certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

/// Does what the command says.
pub(crate) async fn run(args: ReceiveArgs) -> anyhow::Result<()> {
    let shutdown = Shutdown::on_signals().context("failed to register the signal handlers")?;
    let options = options(&args)?;
    let listener = TcpListener::bind(args.listen).await.with_context(|| {
        format!(
            "failed to listen on {}; stop what listens there, or choose another address with --listen",
            args.listen
        )
    })?;
    let receiver = Receiver::start(listener, options)?;
    // Before anybody can know where it listens: not a request is missed.
    let followed = receiver.follow();
    let url = receiver.url("");
    if args.form.is_json() {
        output::result(serde_json::json!({ "listening": url }))?;
    } else {
        output::result(format_args!("listening on {url}"))?;
    }
    tokio::select! {
        () = shutdown.cancelled() => {}
        printed = print(followed, args.form.is_json()) => printed?,
    }
    output::note(summary(&receiver.report()));
    receiver.shutdown().await;
    Ok(())
}

fn options(args: &ReceiveArgs) -> anyhow::Result<Options> {
    let secrets = args.secrets.iter().filter(|text| !text.trim().is_empty());
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => Some(load_tls(certificate, key)?),
        _ => None,
    };
    Ok(Options {
        secrets: secrets.map(|text| secret(text)).collect::<Result<_, _>>()?,
        tolerance: Duration::from_secs(args.tolerance_seconds),
        script: args.behaviour.rules()?,
        tls,
        ..Options::default()
    })
}

/// The base64 of a secret holds no equals sign but at its end.
fn secret(text: &str) -> anyhow::Result<SecretFor> {
    let read = match text.split_once('=').filter(|_| text.starts_with('/')) {
        Some((path, secret)) => SecretFor::path(path, secret),
        None => SecretFor::everywhere(text),
    };
    read.context("a value of --secret is not usable")
}

/// Ends only with an error of standard output.
async fn print(mut followed: Followed, json: bool) -> anyhow::Result<()> {
    loop {
        match followed.recv().await {
            Ok(received) if json => output::result(serde_json::to_string(received.as_ref())?)?,
            Ok(received) => output::result(line::of(&received))?,
            Err(RecvError::Lagged(missed)) => {
                output::note(format_args!(
                    "{missed} requests came too fast to be printed; they are counted"
                ));
            }
            Err(RecvError::Closed) => bail!("the receiver has stopped"),
        }
    }
}

fn summary(report: &Report) -> String {
    format!(
        "{}, {} accepted, {} repeated, {} accepted twice",
        counted(report.received, "request", "requests"),
        report.accepted,
        report.repeats,
        report.duplicates
    )
}
