//! `postrider verify`: whether a notification is signed as it should be, and if not, why. It is judged here with secrets that are given,
//! or by the reseller portal with those of a subscription, which are not shown.

mod request;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use domain::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};
use signing::{HEADER_ID, HEADER_SIGNATURE, HEADER_TIMESTAMP, SignedHeaders};
use uuid::Uuid;

use crate::commands::reseller::identifier;
use crate::output::{self, JsonArgs};
use crate::portal::{Portal, PortalArgs};
use crate::shown::cell;
use crate::signing_secrets::SecretArgs;
use crate::{diagnosis, file};
use signature_diagnosis::{Diagnosis, Evidence, diagnose};

use request::Request;

#[derive(Debug, Args)]
#[command(after_help = "\
A request file holds headers, an empty line and the body, byte by byte; or a line that `postrider listen --json` or
`postrider trigger --dry-run --json` printed.
Exit code 0: verified; 1: not.

Examples:
  postrider verify body.json -H 'webhook-id: order-17' -H 'webhook-timestamp: 1795254696' -H \"webhook-signature: $SIGNATURE\"
  postrider verify --request request.txt --secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
  postrider verify --request request.txt --at recorded             as of the time at which it was signed
  postrider verify --request request.txt --subscription 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider trigger domain.created --to http://x --dry-run | postrider verify --request -")]
pub(crate) struct VerifyArgs {
    /// File with the body; - for standard input.
    #[arg(default_value = "-")]
    body: String,
    /// A header of the request; may be repeated.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = request::header)]
    headers: Vec<(String, String)>,
    /// File with a whole request; - for standard input. --header goes before what it says.
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    request: Option<String>,
    #[command(flatten)]
    secrets: SecretArgs,
    /// The time to compare the timestamp with, such as 2026-11-21T12:00:00Z, or recorded for its own; now when not given.
    #[arg(long, value_name = "TIME|recorded", value_parser = moment)]
    at: Option<Moment>,
    /// How far the timestamp may be away.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    tolerance_seconds: u64,
    /// Asks the reseller portal instead, which has the secrets of this subscription and shows none; needs a key of the reseller.
    #[arg(long, value_name = "ID", value_parser = identifier,
          conflicts_with_all = ["secrets", "secrets_file", "tolerance_seconds"])]
    subscription: Option<Uuid>,
    #[command(flatten)]
    portal: PortalArgs,
    #[command(flatten)]
    form: JsonArgs,
}

/// When a request is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    At(DateTime<Utc>),
    /// At the time of its timestamp.
    Recorded,
}

fn moment(text: &str) -> Result<Moment, String> {
    if text == "recorded" {
        return Ok(Moment::Recorded);
    }
    text.parse()
        .map(Moment::At)
        .map_err(|_| "write a time such as 2026-11-21T12:00:00Z, or recorded".to_owned())
}

/// Does what the command says.
pub(crate) async fn run(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let is_verified = match args.subscription {
        Some(subscription) => asked(args, subscription).await?,
        None => judged(args)?,
    };
    Ok(if is_verified {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn request(args: &VerifyArgs) -> anyhow::Result<Request> {
    let mut request = match &args.request {
        Some(path) => Request::read(&file::read_bytes(path)?)?,
        None => Request::new(file::read_bytes(&args.body)?),
    };
    request.add(args.headers.clone());
    Ok(request)
}

/// Has the portal judge it, with the secrets of a subscription.
async fn asked(args: &VerifyArgs, subscription: Uuid) -> anyhow::Result<bool> {
    let portal = Portal::connect(&args.portal)?;
    let request = request(args)?;
    let body = std::str::from_utf8(&request.body)
        .context("the body is no UTF-8, which is what every notification is; the portal takes no other")?;
    let at = args.at.map(|at| match at {
        Moment::At(at) => at.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        Moment::Recorded => "recorded".to_owned(),
    });
    let path = format!("/subscriptions/{subscription}/signature-checks");
    let asked = json!({ "headers": request.headers(), "body": body, "at": at });
    let found: Value = portal.post(&path, &asked).await?;
    let is_verified = found["verdict"] == "verified";
    if args.form.is_json() {
        output::json(&found)?;
        return Ok(is_verified);
    }
    if is_verified {
        output::result(format_args!(
            "verified: {}, with the secret {}",
            output::harmless(request.header(HEADER_ID).unwrap_or_default()),
            cell(&found, "/secretId")
        ))?;
    } else {
        output::result(format_args!("NOT VERIFIED ({})", cell(&found, "/verdict")))?;
    }
    let causes = diagnosis::lines_of(&found["causes"]);
    if !causes.is_empty() {
        output::result(causes)?;
    }
    Ok(is_verified)
}

/// Judges it here, with secrets that are given.
fn judged(args: &VerifyArgs) -> anyhow::Result<bool> {
    let secrets = args.secrets.texts()?;
    if secrets.is_empty() {
        bail!(
            "no signing secret is given; SIGNING_SECRET or --secrets-file takes the one that was shown when the subscription \
             was made, or have the portal try those of a subscription with --subscription ID"
        );
    }
    let request = request(args)?;
    let texts: Vec<&str> = secrets.iter().map(String::as_str).collect();
    let headers = SignedHeaders::read(|name| request.header(name));
    let now = match args.at {
        Some(Moment::At(at)) => at.timestamp(),
        Some(Moment::Recorded) => headers
            .timestamp
            .and_then(|text| text.parse().ok())
            .unwrap_or_default(),
        None => SystemClock.now().timestamp(),
    };
    let found = diagnose(&Evidence {
        secrets: &texts,
        headers,
        idempotency_key: request.header("idempotency-key"),
        content_length: request
            .header("content-length")
            .and_then(|length| length.parse().ok()),
        body: &request.body,
        now,
        tolerance: Duration::from_secs(args.tolerance_seconds),
    });
    show(args, &request, &found, secrets.len())?;
    Ok(found.verdict.is_ok())
}

fn show(args: &VerifyArgs, request: &Request, found: &Diagnosis, secrets: usize) -> anyhow::Result<()> {
    let signed_at = request
        .header(HEADER_TIMESTAMP)
        .and_then(|text| DateTime::from_timestamp_secs(text.parse().ok()?))
        .map(|at| at.to_rfc3339_opts(SecondsFormat::Secs, true));
    if args.form.is_json() {
        return output::json(&json!({
            "verdict": diagnosis::verdict(found),
            "secret": found.verdict.ok().map(|signed| signed.secret + 1),
            "id": request.header(HEADER_ID),
            "signedAt": signed_at,
            "ageSeconds": found.verdict.ok().map(|signed| signed.age),
            "signatures": request.header(HEADER_SIGNATURE).map(|value| value.split_whitespace().count()),
            "causes": diagnosis::causes(&found.causes),
        }));
    }
    match found.verdict {
        Ok(signed) => {
            let which = if secrets > 1 {
                format!(", with secret {} of {secrets}", signed.secret + 1)
            } else {
                String::new()
            };
            output::result(format_args!(
                "verified: {}, signed {}{which}",
                output::harmless(request.header(HEADER_ID).unwrap_or_default()),
                signed_at.unwrap_or_default()
            ))?;
        }
        Err(error) => output::result(format_args!("NOT VERIFIED ({})", error.code()))?,
    }
    if !found.causes.is_empty() {
        output::result(diagnosis::lines(&found.causes))?;
    }
    Ok(())
}
