//! The command line of `postrider subscriptions`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, Subcommand};
use domain::subscription::SubscriptionState;
use serde::Serialize;
use uuid::Uuid;

use crate::commands::outcome::Within;
use crate::commands::reseller::{Common, OPERATORS, identifier};
use crate::confirm::Yes;
use crate::operator::OperatorArgs;
use crate::output::{FormArgs, JsonArgs};
use crate::part::Part;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  postrider subscriptions check https://reseller.example/hooks
  postrider subscriptions create --url https://reseller.example/hooks --event-types 'domain.*' --email ops@reseller.example
  (printf whsec_; openssl rand -base64 32) > secret
  postrider subscriptions create --url https://reseller.example/hooks --event-types '*' --email ops@reseller.example --secret-file secret
  postrider subscriptions list
  postrider subscriptions list --reseller acme                  for operators
  postrider subscriptions update 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --event-types 'domain.*,contact.updated'
  postrider subscriptions states 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider subscriptions verify 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --wait
  postrider subscriptions confirm 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --code 5F0C81A94D
  postrider subscriptions test 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --wait")]
pub(crate) enum SubscriptionsCommand {
    /// Lists subscriptions; for operators those of a reseller, or of all.
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Shows one.
    Show(ShowArgs),
    /// Sends a challenge to a URL, before there is a subscription or before an old secret is revoked, and shows step by step how far it gets; exit
    /// code 1 when a step fails.
    Check(CheckArgs),
    /// Makes one; prints its identifier and its signing secret.
    Create(Box<CreateArgs>),
    /// Changes what is given, and leaves the rest as it is.
    Update(Box<UpdateArgs>),
    /// Activates one that is DEACTIVATED.
    Activate(Waited),
    /// Deactivates one: nothing more is sent, and what waits is given up.
    #[command(after_help = "\
It asks first, and without a terminal needs --yes: what is given up is sent again by `postrider resend` or `postrider replay` alone. That
takes seconds: what was not given up yet when the subscription is activated again goes on.

Examples:
  postrider subscriptions deactivate 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider subscriptions deactivate 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --yes")]
    Deactivate(Confirmed),
    /// Pauses one: its notifications wait.
    Pause(One),
    /// Lets a paused one go on.
    Resume(One),
    /// Tries everything of one at once that is in RETRY.
    #[command(after_help = "\
Each uses the next of the attempts that it has left; they are sent at the pace of the subscription, those that are due first before others. At most
1,000 at once: given again, the command goes on. `postrider notifications resend` with --id tries some at once.

Examples:
  postrider subscriptions retry-now 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d")]
    RetryNow(One),
    /// Challenges the endpoint of one that is PENDING_VERIFICATION once more.
    Verify(Waited),
    /// Confirms the address that mails go to, with the code that was sent there.
    Confirm(ConfirmArgs),
    /// Sends a test event; prints the identifier of its notification.
    Test(TestArgs),
    /// Deletes one, for good.
    #[command(after_help = "Examples:
  postrider subscriptions delete 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider subscriptions delete 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --yes")]
    Delete(Confirmed),
    /// Shows the deliveries of the last hours in numbers: rates, durations, answers by status.
    Metrics(MetricsArgs),
    /// Lists the states that one has been in and its pauses, the newest first.
    States(StatesArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// For operators: of this reseller.
    #[arg(long, value_name = "ID", help_heading = OPERATORS)]
    pub(super) reseller: Option<String>,
    /// For operators: with this in their URL.
    #[arg(long, value_name = "TEXT", help_heading = OPERATORS)]
    pub(super) with_url: Option<String>,
    /// For operators: only those that have failed since their last success.
    #[arg(long, help_heading = OPERATORS)]
    pub(super) failing: bool,
    /// For operators: in this state.
    #[arg(long, ignore_case = true, help_heading = OPERATORS, value_parser = PossibleValuesParser::new(SubscriptionState::ALL.map(SubscriptionState::as_str)))]
    pub(super) state: Option<String>,
    /// Where the previous part ended.
    #[arg(long)]
    pub(super) cursor: Option<String>,
    #[command(flatten)]
    pub(super) common: Common,
    #[command(flatten)]
    pub(super) operator: OperatorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// What the subscription has, or would have, as its URL.
    pub(super) url: String,
    /// A file with the secret that the challenge is signed with, for an endpoint that checks signatures already. With a new one it tells whether the
    /// endpoint takes that, while the old one signs along.
    #[arg(long, value_name = "FILE")]
    pub(super) secret_file: Option<String>,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(super) one: One<FormArgs>,
    #[command(flatten)]
    pub(super) operator: OperatorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct One<F: Args = JsonArgs> {
    /// The subscription.
    #[arg(value_parser = identifier)]
    pub(super) id: Uuid,
    #[command(flatten)]
    pub(super) common: Common<F>,
}

/// A subscription, and whether it is confirmed already what is done to it.
#[derive(Debug, Args)]
pub(crate) struct Confirmed {
    #[command(flatten)]
    pub(super) one: One,
    #[command(flatten)]
    pub(super) yes: Yes,
}

#[derive(Debug, Args)]
pub(crate) struct MetricsArgs {
    #[command(flatten)]
    pub(super) one: One<FormArgs>,
    /// How many hours back, the present one included.
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=672))]
    pub(super) hours: u32,
    /// List the event types instead, with how long after their event they were delivered.
    #[arg(long, conflicts_with_all = ["step", "event_type"])]
    pub(super) by_event_type: bool,
    /// List the hours, or the steps, of this event type alone.
    #[arg(long, value_name = "TYPE")]
    pub(super) event_type: Option<String>,
    /// List steps of so many hours instead, with how long after their event notifications were delivered.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=672))]
    pub(super) step: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct StatesArgs {
    #[command(flatten)]
    pub(super) one: One<FormArgs>,
    #[command(flatten)]
    pub(super) part: Part,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true))]
pub(crate) struct ConfirmArgs {
    #[command(flatten)]
    pub(super) one: One,
    /// The code, as it stands in the mail.
    #[arg(long, group = "what")]
    pub(super) code: Option<String>,
    /// Sends the code to the address once more.
    #[arg(long, group = "what")]
    pub(super) send_again: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    #[command(flatten)]
    pub(super) waited: Waited,
    /// Sends the example of this event type, whatever the subscription selects; postrider.test when left out.
    #[arg(long, value_name = "TYPE")]
    pub(super) event_type: Option<String>,
    /// Sends this variant of the event type instead of its example.
    #[arg(long, value_name = "NAME", requires = "event_type")]
    pub(super) variant: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Waited {
    #[command(flatten)]
    pub(super) one: One,
    /// Waits until it is known what came of it; exit code 1 when that is no good.
    #[arg(long)]
    pub(super) wait: bool,
    #[command(flatten)]
    pub(super) within: Within,
}

#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fields {
    /// The words by which mails call it.
    #[arg(long, value_name = "TEXT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    /// How long the endpoint may take to answer.
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timeout_millis: Option<u64>,
    /// Whether what an outage of the endpoint gives up is sent again by itself once it answers.
    #[arg(long, value_name = "true|false")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) resend_after_outage: Option<bool>,
    /// For how long what failed is tried again: some minutes, or a day with growing waits.
    #[arg(long, value_name = "PLAN", ignore_case = true, value_parser = retry_plan())]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_plan: Option<String>,
    /// Whether what the endpoint answers with 400 to 499 is tried again as well, save 410.
    #[arg(long, value_name = "true|false")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_client_errors: Option<bool>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A first subscription, from a secret to the first event; the endpoint has to know the secret before it is challenged:
  (printf whsec_; openssl rand -base64 32) > secret                    a secret of your own
  SIGNING_SECRET=$(cat secret) postrider listen                        or start your endpoint with it
  postrider subscriptions check https://reseller.example/hooks         can it be reached, step by step
  postrider subscriptions create --url https://reseller.example/hooks --event-types 'domain.*' --email ops@reseller.example --secret-file secret
  postrider subscriptions verify $ID --wait                            when it is not ACTIVE within seconds
  postrider subscriptions confirm $ID --code 5F0C81A94D                the code that was sent to the address
  postrider subscriptions test $ID --wait                              a first event")]
pub(crate) struct CreateArgs {
    /// The endpoint: an https URL.
    #[arg(long)]
    pub(super) url: String,
    /// Event types, prefixes such as domain.*, or * for all; with commas between them, or repeated.
    #[arg(long, value_name = "TYPES", value_delimiter = ',', required = true)]
    pub(super) event_types: Vec<String>,
    /// Who is told of trouble.
    #[arg(long)]
    pub(super) email: String,
    #[command(flatten)]
    pub(super) fields: Fields,
    /// File with a signing secret of your own; - for standard input. A new one is made without it.
    #[arg(long, value_name = "FILE")]
    pub(super) secret_file: Option<String>,
    /// Challenges the endpoint only when `postrider subscriptions verify` asks for it.
    #[arg(long, conflicts_with = "wait")]
    pub(super) verify_later: bool,
    /// Waits until the endpoint has answered its challenge; exit code 1 when it does not.
    #[arg(long)]
    pub(super) wait: bool,
    #[command(flatten)]
    pub(super) within: Within,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// The subscription.
    #[arg(value_parser = identifier)]
    pub(super) id: Uuid,
    /// Another endpoint, which is challenged first.
    #[arg(long)]
    pub(super) url: Option<String>,
    /// The whole filter, which takes the place of the one before.
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub(super) event_types: Option<Vec<String>>,
    /// Who is told of trouble.
    #[arg(long)]
    pub(super) email: Option<String>,
    /// Changes it only if it still has this version, from `postrider subscriptions show`; the one that it has now when not given.
    #[arg(long, value_name = "VERSION")]
    pub(super) if_version: Option<String>,
    /// Waits until the new endpoint has answered its challenge; exit code 1 when it does not.
    #[arg(long, requires = "url")]
    pub(super) wait: bool,
    #[command(flatten)]
    pub(super) within: Within,
    #[command(flatten)]
    pub(super) fields: Fields,
    #[command(flatten)]
    pub(super) common: Common,
}

/// In whatever letters it is typed, the API's name of it.
fn retry_plan() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(["SHORT", "DAY"]).map(|plan| plan.to_uppercase())
}
