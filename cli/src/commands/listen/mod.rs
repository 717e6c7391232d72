//! `postrider listen`: an endpoint on this machine for a developer who is writing one. It checks and shows what comes, and can hand
//! it on to the endpoint that is being written.
//!
//! It is not `postrider receive`, which stands in for the endpoints of a whole installation, counts what arrives and is told
//! over HTTP how to fail; this one says why a signature is not accepted, and forwards.

mod arrival;
mod forward;
mod relay;
mod server;
mod statuses;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use domain::clock::{Clock as _, SystemClock};
use lifecycle::Shutdown;
use serde_json::{Value, json};
use signing::Secret;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::age::Age;
use crate::commands::reseller::{identifier, look, obstacle};
use crate::output::{self, JsonArgs};
use crate::portal::{Portal, PortalArgs};
use crate::shown::cell;
use crate::signing_secrets::SecretArgs;

use forward::Forward;
use relay::Relay;
use server::Endpoint;
use statuses::{Answers, Statuses};

#[derive(Debug, Args)]
#[command(after_help = "\
Every path is an endpoint. Verification challenges are answered. Requests whose signature is not right are answered with 401.
Without a secret it makes one and prints it: give it to `postrider trigger`, or to whatever else signs.

Examples:
  postrider listen
  postrider listen --secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw --forward-to http://127.0.0.1:8000/hooks
  postrider listen --subscription 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --secrets-file secrets --forward-to http://127.0.0.1:8000/hooks
  postrider listen --subscription 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --newer-than 2h
  postrider listen --status 500,500,200 --status 'contact.*=410' --delay 2s
  postrider listen --json --count 1 | tail -1 | jq .body")]
pub(crate) struct ListenArgs {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    #[command(flatten)]
    secrets: SecretArgs,
    /// How far a timestamp may be away.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    tolerance_seconds: u64,
    /// Passes what was verified on to this URL, byte for byte and with its headers, and answers what that answers.
    #[arg(long, value_name = "URL", conflicts_with = "statuses")]
    forward_to: Option<reqwest::Url>,
    /// Reads the notifications of this subscription from the portal as they come, and hands them to this endpoint too, signed with
    /// the secrets of this run. The subscription's own endpoint gets them all the same.
    #[arg(long, value_name = "ID", value_parser = identifier)]
    subscription: Option<Uuid>,
    /// With --subscription: those of events too that were accepted less than this long ago, such as 2h, the oldest first.
    #[arg(long, value_name = "AGE", requires = "subscription")]
    newer_than: Option<Age>,
    #[command(flatten)]
    portal: PortalArgs,
    /// What to answer: statuses for one notification after the other, of which the last stays. With a type (or domain.*)
    /// before it, for notifications of that type alone. May be repeated.
    #[arg(long = "status", value_name = "[TYPE=]STATUS[,STATUS…]")]
    statuses: Vec<Answers>,
    /// Waits so long before each answer, such as 500ms or 2s.
    #[arg(long, value_name = "TIME", value_parser = delay)]
    delay: Option<Duration>,
    /// Ends after so many requests; with exit code 1 when one of them was not verified.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    // Lines: where it listens, then each request with its headers and body.
    #[command(flatten)]
    form: JsonArgs,
}

/// Does what the command says.
pub(crate) async fn run(args: ListenArgs) -> anyhow::Result<ExitCode> {
    let shutdown = Shutdown::on_signals().context("failed to register the signal handlers")?;
    let mut secrets = args.secrets.secrets()?;
    let made = secrets.is_empty().then(Secret::generate);
    secrets.extend(made.clone());
    let listener = TcpListener::bind(args.listen).await.with_context(|| {
        format!(
            "failed to listen on {}; stop what listens there, or leave --listen out to take a free port",
            args.listen
        )
    })?;
    let url = format!("http://{}", listener.local_addr()?);
    let count = args.count;
    let mut held = None;
    let relay = match args.subscription {
        Some(subscription) => {
            let portal = Portal::connect(&args.portal)?;
            let found = look(&portal, &format!("/subscriptions/{subscription}"), &()).await?;
            held = held_up(&found);
            let since = args.newer_than.map(|age| age.before(SystemClock.now()));
            let to = url.parse()?;
            Some(Relay::begin(portal, (subscription, since), secrets.clone(), to).await?)
        }
        None => None,
    };
    introduce(&args, &url, secrets.len(), made.as_ref())?;
    held.into_iter().for_each(output::note);
    let endpoint = Arc::new(Endpoint::new(
        secrets,
        Duration::from_secs(args.tolerance_seconds),
        args.delay,
        Statuses::new(args.statuses),
        args.forward_to.map(Forward::new).transpose()?,
        (args.form.is_json(), args.count),
        shutdown.clone(),
    ));
    let serving = server::serve(listener, endpoint.clone(), shutdown);
    match relay {
        None => serving.await?,
        Some(relay) => tokio::select! {
            served = serving => served?,
            ended = relay.run() => ended?,
        },
    }
    output::note(endpoint.summary());
    Ok(if count.is_some() && endpoint.refused() > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn introduce(args: &ListenArgs, url: &str, known: usize, made: Option<&Secret>) -> anyhow::Result<()> {
    let secret = made.map(Secret::reveal);
    if args.form.is_json() {
        let mut line = json!({"listening": url, "secrets": known});
        if let Some(secret) = &secret {
            line["secret"] = secret.as_str().into();
        }
        output::result(line)?;
        return Ok(());
    }
    output::result(format_args!("listening on {url}"))?;
    if let Some(secret) = &secret {
        output::result(format_args!("secret {}", secret.as_str()))?;
        output::note("the secret was made for this run; give your own in SIGNING_SECRET or --secrets-file");
    }
    if let Some(subscription) = args.subscription {
        let since = args
            .newer_than
            .map_or("now on".to_owned(), |age| format!("{age} ago on"));
        output::note(format_args!(
            "reading what the subscription {subscription} is sent, from {since}"
        ));
        if args.newer_than.is_none() {
            output::note("what was sent before is brought with --newer-than, such as --newer-than 2h");
        }
    }
    if let Some(target) = &args.forward_to {
        output::note(format_args!("passing on to {target} what is verified"));
        if made.is_some() {
            output::note(
                "what is passed on is signed with the secret above: start your endpoint with it, or give its own with --secret",
            );
        }
    }
    Ok(())
}

/// What is to be known of a subscription that is sent nothing at present, before one waits for what it is sent; `None` of any other.
fn held_up(subscription: &Value) -> Option<String> {
    let obstacle = obstacle(subscription)?;
    // Where notifications are made and wait, they are read here all the same.
    let state = cell(subscription, "/state");
    let is_moved = cell(subscription, "/stateReason") == "ENDPOINT_CHANGED";
    let makes_none = state == "DEACTIVATED" || state == "PENDING_VERIFICATION" && !is_moved;
    Some(if makes_none {
        format!("{obstacle}. Until then no notifications are made of events, and nothing comes here")
    } else {
        format!("{obstacle}. Its notifications come here all the same")
    })
}

fn delay(text: &str) -> Result<Duration, &'static str> {
    const FORM: &str = "write a number with a unit, such as 500ms or 2s";
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let number: u32 = digits.parse().map_err(|_| FORM)?;
    match &text[digits.len()..] {
        "ms" => Ok(Duration::from_millis(number.into())),
        "s" => Ok(Duration::from_secs(number.into())),
        "m" => Ok(Duration::from_secs(u64::from(number) * 60)),
        _ => Err(FORM),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_notifications_from_being_made_is_told_and_what_lets_them_wait_is_no_wait_here() {
        let told = |subscription: Value| held_up(&subscription).unwrap_or_default();
        let (none, waits) = (
            "Until then no notifications are made of events, and nothing comes here",
            "Its notifications come here all the same",
        );
        let off = told(json!({"id": "s", "state": "DEACTIVATED", "stateReason": "BY_RESELLER"}));
        assert!(
            off.contains("`postrider subscriptions activate s`") && off.ends_with(none),
            "{off}"
        );
        let new = told(json!({"id": "s", "state": "PENDING_VERIFICATION", "stateReason": "CREATED"}));
        assert!(
            new.contains("`postrider subscriptions verify s --wait`") && new.ends_with(none),
            "{new}"
        );
        let moved =
            told(json!({"id": "s", "state": "PENDING_VERIFICATION", "stateReason": "ENDPOINT_CHANGED"}));
        assert!(moved.ends_with(waits), "{moved}");
        let paused = told(json!({"id": "s", "state": "ACTIVE", "pausedAt": "2026-11-21T12:00:00Z"}));
        assert!(
            paused.contains("`postrider subscriptions resume s`") && paused.ends_with(waits),
            "{paused}"
        );
        assert_eq!(told(json!({"id": "s", "state": "ACTIVE"})), "");
    }

    #[test]
    fn a_delay_has_a_unit() {
        assert_eq!(delay("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(delay("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(delay("1m"), Ok(Duration::from_secs(60)));
        for none in ["", "5", "s", "5h", "-1s", "1.5s", "5 s", "5ß"] {
            assert!(delay(none).is_err(), "{none}");
        }
    }
}
