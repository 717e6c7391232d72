//! `postrider trigger`: a signed sample of an event type, sent to an endpoint as Postrider would send it.
//!
//! It asks no server but that endpoint; an event type that is not built in is looked up at the reseller portal.

mod curl;
mod edit;
mod sample;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use domain::clock::{Clock as _, SystemClock};
use reqwest::{Response, Url};
use serde_json::{Value, json};

use crate::output::{self, JsonArgs};
use crate::portal::PortalArgs;
use crate::signing_secrets::SecretArgs;
use crate::{pretty, web};

use edit::Edit;
pub(super) use sample::signed_headers;
use sample::{Sample, Wanted};

/// As long as Postrider gives an endpoint by default.
const LIMIT: Duration = Duration::from_secs(10);
/// As much of an answer as Postrider keeps.
const SHOWN_BYTES: usize = 4_096;

#[derive(Debug, Args)]
#[command(after_help = "\
The notification has the example of the catalogue as its data, or one of the variants (`postrider events show TYPE`).
--set changes one value: its path as in the catalogue, places in lists as numbers; the value is JSON, or text if it is none.
postrider.test and postrider.verification can be sent too; the answer to a challenge is checked.

Examples:
  postrider trigger domain.created --to http://127.0.0.1:8000/hooks --secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
  postrider trigger domain.created --to $URL --set domain.name=example.net --set domain.nameservers.0=ns1.example.net
  postrider trigger contact.updated --to $URL --data contact.json --id order-17
  postrider trigger domain.created --to $URL --age 10m                    too old: the endpoint should refuse it
  postrider trigger postrider.verification --to $URL
  postrider trigger domain.created --to $URL --print-curl")]
pub(crate) struct TriggerArgs {
    /// An event type of the catalogue; `postrider events list` shows all of them.
    event_type: String,
    /// Where to send it.
    #[arg(long, value_name = "URL")]
    to: Url,
    /// One of the forms that the catalogue has of this event type.
    #[arg(long, value_name = "NAME", conflicts_with = "data")]
    variant: Option<String>,
    /// Changes a value of the data; may be repeated.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    edits: Vec<Edit>,
    /// File with the whole data, a JSON object; - for standard input.
    #[arg(long, value_name = "FILE")]
    data: Option<String>,
    /// The event, which is webhook-id as well; a new one when not given. Give it twice to send a duplicate.
    #[arg(long)]
    id: Option<String>,
    /// Signs as if it had been sent so long ago, such as 10m.
    #[arg(long)]
    age: Option<crate::age::Age>,
    #[command(flatten)]
    secrets: SecretArgs,
    /// Shows the request and sends nothing.
    #[arg(long)]
    dry_run: bool,
    /// Prints a command line for curl that sends it, and sends nothing.
    #[arg(long, conflicts_with_all = ["dry_run", "json", "output"])]
    print_curl: bool,
    // The request, and the answer.
    #[command(flatten)]
    form: JsonArgs,
    #[command(flatten)]
    portal: PortalArgs,
}

/// What came back.
struct Answer {
    status: u16,
    reason: &'static str,
    body: String,
    millis: u128,
}

/// Does what the command says.
pub(crate) async fn run(args: TriggerArgs) -> anyhow::Result<ExitCode> {
    if !matches!(args.to.scheme(), "http" | "https") {
        bail!(
            "--to {} is no HTTP URL; write one such as http://127.0.0.1:8000/hooks",
            args.to
        );
    }
    let secrets = args.secrets.required()?;
    let now = SystemClock.now();
    let wanted = Wanted {
        event_type: &args.event_type,
        variant: args.variant.as_deref(),
        data: args.data.as_deref(),
        edits: &args.edits,
        id: args.id.as_deref(),
        at: args.age.map_or(now, |age| age.before(now)),
    };
    let sample = Sample::make(wanted, &secrets, &args.portal).await?;
    if args.print_curl {
        output::result(curl::command(&args.to, &sample))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.dry_run {
        show_request(&args, &sample)?;
        return Ok(ExitCode::SUCCESS);
    }
    let answer = send(&args.to, &sample).await?;
    show_answer(&args, &sample, &answer)?;
    let complaint = complaint(&sample, &answer, args.age.is_some());
    if let Some(complaint) = &complaint {
        output::note(complaint);
    }
    Ok(if complaint.is_none() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn send(to: &Url, sample: &Sample) -> anyhow::Result<Answer> {
    let mut request = web::client(LIMIT)?.post(to.clone()).body(sample.body.clone());
    for (name, value) in &sample.headers {
        request = request.header(*name, value);
    }
    let start = Instant::now();
    let response = web::send(request, to.as_str()).await?;
    let millis = start.elapsed().as_millis();
    let status = response.status();
    Ok(Answer {
        status: status.as_u16(),
        reason: status.canonical_reason().unwrap_or_default(),
        body: beginning(response).await?,
        millis,
    })
}

/// An endpoint may answer without an end.
async fn beginning(mut response: Response) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    while bytes.len() < SHOWN_BYTES {
        let chunk = response.chunk().await.map_err(reqwest::Error::without_url);
        let Some(chunk) = chunk.context("the answer broke off")? else {
            break;
        };
        bytes.extend_from_slice(&chunk);
    }
    bytes.truncate(SHOWN_BYTES);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn show_request(args: &TriggerArgs, sample: &Sample) -> anyhow::Result<()> {
    if args.form.is_json() {
        return output::json(&sample.document(&args.event_type, &args.to));
    }
    let headers: Vec<String> = sample
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let head = headers.join("\n");
    output::exact(format_args!("POST {}\n{head}\n\n{}", args.to, sample.body))?;
    // A prompt right behind the body would be hard to read.
    if io::stdout().is_terminal() {
        output::note("");
    }
    Ok(())
}

fn show_answer(args: &TriggerArgs, sample: &Sample, answer: &Answer) -> anyhow::Result<()> {
    if args.form.is_json() {
        let mut document = sample.document(&args.event_type, &args.to);
        document["status"] = answer.status.into();
        document["answer"] = json!({"body": answer.body, "millis": answer.millis});
        return output::json(&document);
    }
    output::result(format_args!(
        "sent {} {} to {}",
        args.event_type, sample.id, args.to
    ))?;
    let answered = format!("answered {} {}", answer.status, answer.reason);
    output::result(format_args!("{} in {} ms", answered.trim_end(), answer.millis))?;
    if !answer.body.trim().is_empty() {
        output::result(pretty::indented(&pretty::json(answer.body.trim_end())))?;
    }
    Ok(())
}

/// What Postrider would hold against this answer.
fn complaint(sample: &Sample, answer: &Answer, has_age: bool) -> Option<String> {
    let advice = match answer.status {
        200..300 => return challenge_complaint(sample, answer),
        401 | 403 if has_age => {
            "; that is as it should be if --age is more than the five minutes that a timestamp may be off. Without --age it shows whether \
             the endpoint knows this secret"
        }
        401 | 403 => {
            "; does the endpoint know this secret? `postrider trigger … --dry-run` into a file and `postrider verify \
                      --request FILE` says why a signature is not accepted"
        }
        300..=399 | 410 => "; Postrider would deactivate the subscription at once",
        408 | 425 | 429 | 500.. => "; Postrider would try again",
        _ => "; Postrider would not try again",
    };
    Some(format!("{} is not 2xx{advice}", answer.status))
}

fn challenge_complaint(sample: &Sample, answer: &Answer) -> Option<String> {
    let challenge = sample.challenge.as_deref()?;
    let answered: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let is_met = answer.body.trim() == challenge || answered["challenge"] == challenge;
    (!is_met).then(|| {
        "the answer does not hold the challenge: answer with data.challenge as the whole body, or as {\"challenge\": …}; \
         Postrider would not verify this endpoint"
            .to_owned()
    })
}
