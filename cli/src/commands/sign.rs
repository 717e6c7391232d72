//! `postrider sign`: the headers of a body, as Postrider would sign it.

use anyhow::{Context as _, bail};
use clap::Args;
use domain::clock::{Clock as _, SystemClock};
use serde_json::{Map, Value};
use signing::{HEADER_ID, HEADER_SIGNATURE, HEADER_TIMESTAMP, Secret, idempotency_key, signature_header};

use crate::file;
use crate::output::{self, JsonArgs};
use crate::signing_secrets::SecretArgs;

#[derive(Debug, Args)]
#[command(after_help = "\
The body is signed byte by byte, a line end at its end included: write it with printf, not with echo.

Examples:
  export SIGNING_SECRET=whsec_…
  printf %s '{\"id\":\"order-17\",\"type\":\"domain.created\"}' | postrider sign
  postrider sign body.json --id order-17 --timestamp 1795254696 --secret $NEW --secret $OLD
  postrider sign body.json --signature-only")]
pub(crate) struct SignArgs {
    /// File with the body; - for standard input.
    #[arg(default_value = "-")]
    body: String,
    /// webhook-id; the member id of the body when not given.
    #[arg(long)]
    id: Option<String>,
    /// webhook-timestamp in seconds since 1970; now when not given.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(0..))]
    timestamp: Option<i64>,
    #[command(flatten)]
    secrets: SecretArgs,
    /// Prints the value of webhook-signature alone.
    #[arg(long, conflicts_with_all = ["json", "output"])]
    signature_only: bool,
    // The headers as an object.
    #[command(flatten)]
    form: JsonArgs,
}

/// Does what the command says.
pub(crate) fn run(args: &SignArgs) -> anyhow::Result<()> {
    let secrets = args.secrets.required()?;
    let body = file::read_bytes(&args.body)?;
    let id = match &args.id {
        Some(id) => id.clone(),
        None => id_of(&body).context("the body has no member id; give one with --id")?,
    };
    if id.is_empty() || id.contains('.') || id.chars().any(char::is_control) {
        bail!(
            "the id {id:?} cannot be signed: it must not be empty, nor hold a full stop or control characters"
        );
    }
    let timestamp = args.timestamp.unwrap_or_else(|| SystemClock.now().timestamp());
    let secrets: Vec<&Secret> = secrets.iter().collect();
    let signature = signature_header(&secrets, &id, timestamp, &body);
    if args.signature_only {
        output::result(signature)?;
        return Ok(());
    }
    let headers = [
        (HEADER_ID, id),
        (HEADER_TIMESTAMP, timestamp.to_string()),
        (HEADER_SIGNATURE, signature),
        ("idempotency-key", idempotency_key(&body)),
    ];
    if args.form.is_json() {
        let headers = headers.map(|(name, value)| (name.to_owned(), Value::from(value)));
        return output::json(&Map::from_iter(headers));
    }
    for (name, value) in headers {
        output::result(format_args!("{name}: {value}"))?;
    }
    Ok(())
}

fn id_of(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    body["id"].as_str().map(str::to_owned)
}
