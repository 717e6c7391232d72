//! The command line: commands and what they have in common. Each command's own arguments stand with the command.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::commands::audit::AuditArgs;
use crate::commands::broker::BrokerCommand;
use crate::commands::cancel::CancelCommand;
use crate::commands::completions::CompletionsArgs;
use crate::commands::config::ConfigCommand;
use crate::commands::dead_letters::DeadLettersCommand;
use crate::commands::event::EventCommand;
use crate::commands::event_types::EventTypesCommand;
use crate::commands::events::EventsCommand;
use crate::commands::explain::ExplainArgs;
use crate::commands::find::FindArgs;
use crate::commands::healthcheck::HealthcheckArgs;
use crate::commands::history::HistoryArgs;
use crate::commands::jobs::JobsCommand;
use crate::commands::keys::KeysCommand;
use crate::commands::listen::ListenArgs;
use crate::commands::mails::MailsCommand;
use crate::commands::migrate::MigrateArgs;
use crate::commands::pauses::{PauseCommand, PausesArgs, ResumeCommand};
use crate::commands::push::PushArgs;
use crate::commands::quotas::QuotasCommand;
use crate::commands::receive::ReceiveArgs;
use crate::commands::recover::RecoverArgs;
use crate::commands::rescue::RescueArgs;
use crate::commands::reseller::notifications::{AttemptsArgs, NotificationsCommand, ResendArgs};
use crate::commands::reseller::overview::{ActivityArgs, LimitsArgs, OverviewArgs};
use crate::commands::reseller::portal_links::PortalLinksCommand;
use crate::commands::reseller::quota::QuotaCommand;
use crate::commands::reseller::replay::{ReplayArgs, ReplaysCommand};
use crate::commands::reseller::secrets::SecretsCommand;
use crate::commands::reseller::subscriptions::SubscriptionsCommand;
use crate::commands::reseller::tail::TailArgs;
use crate::commands::resellers::ResellersArgs;
use crate::commands::retry_now::RetryNowCommand;
use crate::commands::serve::ServeArgs;
use crate::commands::sign::SignArgs;
use crate::commands::sim::SimCommand;
use crate::commands::status::StatusArgs;
use crate::commands::trigger::TriggerArgs;
use crate::commands::user_agents::UserAgentsArgs;
use crate::commands::verify::VerifyArgs;
use crate::commands::visits::VisitsCommand;
use crate::commands::waiting::WaitingArgs;
use crate::demo::DemoArgs;

const EXAMPLES: &str = "\
Examples:
  postrider migrate                                        prepare the database
  postrider up                                             run all services in this process
  postrider serve dispatcher                               run one of them
  postrider keys create --name shop --role ingest          make an API key for POST /push and POST /events
  postrider keys create --name acme --role reseller --reseller acme
  postrider push --platform IOS --prototype Hello --push-key 463B3209 --message 'Hello client!'
  postrider push show 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d
  postrider event send --type contact.deleted --reseller acme --data '{\"contact\": {\"id\": \"contact-42\"}}'
  postrider status                                         what is wrong, if anything
  postrider dead-letters groups                            what was given up, by what went wrong
  postrider explain 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d   what became of a push, an event, a notification
  postrider sim swrve --listen 127.0.0.1:8090              a stand-in for Swrve
  postrider listen                                         an endpoint on this machine, with a secret of its own
  export SIGNING_SECRET=whsec_…                            the secret of the commands below
  postrider trigger domain.created --to http://127.0.0.1:8000/hooks
  postrider verify --request request.txt                   why a signature is not accepted

docs/cli.md has a section for each command.";

const EXIT_CODES: &str = "\
Exit codes:
  0   done; a service: stopped cleanly after SIGTERM or SIGINT
  1   failed; the reason is on standard error
  2   the command line is wrong
  3   `postrider status` found something wrong
  4   what was waited for has not come, or not everything was delivered
  64  the configuration is wrong; all of its errors are on standard error";

/// The durable delivery platform for pushes and events: its services and the tools around them.
///
/// Services and database commands read one configuration: defaults, then the YAML file, then POSTRIDER__… variables, with
/// DATABASE_URL and AMQP_URL for the two servers. `postrider config show` prints what is in effect.
#[derive(Debug, Parser)]
#[command(name = "postrider", version, after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Cli {
    /// YAML file with what differs from the defaults; also from POSTRIDER_CONFIG.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Colours: auto has them on a terminal, unless NO_COLOR is set.
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: clap::ColorChoice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs all services in this process, with one admin listener.
    Up,
    /// Runs one service.
    Serve(ServeArgs),
    #[command(flatten)]
    Tool(Box<Tool>),
}

/// What is no service: it does something and ends.
#[derive(Debug, Subcommand)]
pub(crate) enum Tool {
    /// Brings the schema of the database up to date.
    Migrate(MigrateArgs),
    /// Makes, lists and revokes API keys.
    #[command(subcommand, alias = "key")]
    Keys(KeysCommand),
    /// Checks and shows the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Shows what Postrider wants of RabbitMQ, and rebuilds what RabbitMQ has lost.
    #[command(subcommand)]
    Broker(BrokerCommand),
    /// Runs and asks simulators of receivers and of a mail server.
    #[command(subcommand)]
    Sim(SimCommand),
    /// Hands in a push, shows one, or lists some.
    #[command(alias = "pushes")]
    Push(PushArgs),
    /// Hands in an event, or shows one with its notifications.
    #[command(subcommand)]
    Event(EventCommand),
    /// Shows and maintains the catalogue of event types.
    #[command(subcommand, alias = "event-type")]
    EventTypes(EventTypesCommand),
    /// Lists and decides quota requests of resellers, and sets limits of subscriptions.
    #[command(subcommand)]
    Quotas(QuotasCommand),
    /// Receives webhooks: checks signatures, prints what comes, and fails on demand.
    Receive(ReceiveArgs),
    /// Sends real traffic through a running Postrider and shows what became of it.
    Demo(DemoArgs),
    /// Shows how the system is, with what is wrong first and the command that helps.
    Status(StatusArgs),
    /// Shows what waits in both lanes and of Web Push, by what it waits for.
    Waiting(WaitingArgs),
    /// Tells the story of one push, event, notification or dead letter.
    Explain(ExplainArgs),
    /// Finds what an identifier, a name or a text is of, whatever it is: a push, an event, a subscription, a reseller, a device, a domain.
    Find(FindArgs),
    /// Shows what a lane did in each of the last minutes.
    History(HistoryArgs),
    /// Exits 0 when the URL answers with a 2xx status; for containers.
    Healthcheck(HealthcheckArgs),
    /// Finds out what was given up and why, and sends it again or puts it aside.
    #[command(subcommand, alias = "dead-letter", alias = "dl")]
    DeadLetters(DeadLettersCommand),
    /// Shows and steers bulk work on dead letters.
    #[command(subcommand, alias = "job")]
    Jobs(JobsCommand),
    /// Lists resellers, and how their subscriptions are.
    #[command(alias = "reseller")]
    Resellers(ResellersArgs),
    /// Lists user agents of Web Push, and where they are connected.
    #[command(alias = "user-agent")]
    UserAgents(UserAgentsArgs),
    /// Shows what resellers are told by mail, and sends it at once.
    #[command(subcommand, alias = "mail")]
    Mails(MailsCommand),
    /// Shows who is signed in to the console, and ends visits.
    #[command(subcommand, alias = "visit")]
    Visits(VisitsCommand),
    /// Shows who changed what, when, and why.
    Audit(AuditArgs),
    /// Stops a lane, a subscription, or all of a reseller for a while.
    #[command(
        subcommand,
        after_help = "Examples:\n  postrider pause lane push --for 2h --note 'Swrve asked us to wait, incident 17'\n  \
            postrider pause subscription 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --note 'endpoint under repair'\n  \
            postrider pause reseller acme --note 'by their request'"
    )]
    Pause(PauseCommand),
    /// Lets go on what is paused.
    #[command(
        subcommand,
        after_help = "Examples:\n  postrider resume lane push\n  \
            postrider resume subscription 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d\n  \
            postrider resume reseller acme --note 'the endpoint is back'"
    )]
    Resume(ResumeCommand),
    /// Lists what is paused, since when and why.
    Pauses(PausesArgs),
    /// Cancels pushes or notifications that have not been sent yet.
    #[command(
        subcommand,
        after_help = "Examples:\n  postrider cancel push 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --note 'sent by mistake'\n  \
            postrider cancel notification 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --note 'by their request'\n  \
            postrider cancel waiting --lane push --prototype campaign-2026-11 --dry-run"
    )]
    Cancel(CancelCommand),
    /// Makes retries at once that wait for their time.
    #[command(
        subcommand,
        after_help = "Examples:\n  postrider retry-now lane push --note 'Swrve is back'\n  \
            postrider retry-now endpoint https://hooks.acme.example/postrider\n  \
            postrider retry-now notification 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d"
    )]
    RetryNow(RetryNowCommand),
    /// Rescues at once what was lost.
    Rescue(RescueArgs),
    /// Makes a database safe to go on with that was restored to an earlier moment.
    Recover(RecoverArgs),
    /// Receives notifications on this machine: verifies, shows and passes them on.
    Listen(ListenArgs),
    /// Sends a signed sample of an event type to an endpoint.
    Trigger(Box<TriggerArgs>),
    /// Signs a body as Postrider does.
    Sign(SignArgs),
    /// Checks a signature, and says why it is not accepted.
    Verify(VerifyArgs),
    /// Shows which notifications there are and what they look like.
    #[command(subcommand)]
    Events(EventsCommand),
    /// Shows how it stands with each subscription of a reseller, after what needs it first.
    Overview(OverviewArgs),
    /// Lists who did what: the reseller's keys and people, and the operators for it.
    Activity(ActivityArgs),
    /// Shows what the installation allows a reseller: quotas, timeouts, retries, secrets, replays.
    #[command(alias = "limit")]
    Limits(LimitsArgs),
    /// Makes, shows and changes a reseller's subscriptions; operators see those of all.
    #[command(subcommand, alias = "subscription")]
    Subscriptions(SubscriptionsCommand),
    /// Lists notifications of a subscription, or for operators of a reseller; shows one, tells its story, sends many again, or cancels them.
    #[command(subcommand, alias = "notification")]
    Notifications(NotificationsCommand),
    /// Shows the attempts to deliver a notification, and what was answered.
    #[command(alias = "attempt")]
    Attempts(AttemptsArgs),
    /// Sends a notification again that has ended, or makes the next retry of one at once.
    Resend(ResendArgs),
    /// Sends again what a subscription missed.
    Replay(ReplayArgs),
    /// Shows replays, and ends one.
    #[command(subcommand)]
    Replays(ReplaysCommand),
    /// Shows how much a subscription may get, or asks for more.
    #[command(subcommand)]
    Quota(QuotaCommand),
    /// Makes one-time links that open the dashboard of a reseller, lists the visits that they began, and ends them.
    #[command(subcommand, alias = "portal-link")]
    PortalLinks(PortalLinksCommand),
    /// Lists, rotates and revokes the signing secrets of a subscription.
    #[command(subcommand, alias = "secret")]
    Secrets(SecretsCommand),
    /// Follows new notifications and what comes of them.
    #[command(alias = "changes")]
    Tail(TailArgs),
    /// Prints what makes a shell complete this command line.
    Completions(CompletionsArgs),
    /// Prints the version.
    Version,
}

#[cfg(test)]
mod tests;
