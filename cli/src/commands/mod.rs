//! One file per command.

pub(crate) mod answers;
pub(crate) mod audit;
pub(crate) mod broker;
pub(crate) mod cancel;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod database;
pub(crate) mod dead_letters;
pub(crate) mod event;
pub(crate) mod event_types;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod find;
pub(crate) mod healthcheck;
pub(crate) mod history;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod listen;
pub(crate) mod mails;
pub(crate) mod migrate;
pub(crate) mod outcome;
pub(crate) mod pauses;
pub(crate) mod push;
pub(crate) mod quotas;
pub(crate) mod receive;
pub(crate) mod recover;
pub(crate) mod rescue;
pub(crate) mod reseller;
pub(crate) mod resellers;
pub(crate) mod retry_now;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod sign;
pub(crate) mod sim;
pub(crate) mod status;
pub(crate) mod trigger;
pub(crate) mod user_agents;
pub(crate) mod verify;
pub(crate) mod visits;
pub(crate) mod waiting;

use std::process::ExitCode;

use ::config::Sources;

use crate::args::Tool;
use crate::{demo, output};

/// Runs a tool. Most say with their exit code only whether they failed; one that says more returns it by itself.
pub(crate) async fn run(sources: &Sources, tool: Tool) -> anyhow::Result<ExitCode> {
    let done = match tool {
        Tool::Migrate(args) => migrate::run(sources, &args).await,
        Tool::Keys(command) => keys::run(sources, command).await,
        Tool::Config(command) => config::run(sources, &command),
        Tool::Broker(command) => broker::run(command).await,
        Tool::Pause(command) => pauses::pause(command).await,
        Tool::Resume(command) => pauses::resume(command).await,
        Tool::Pauses(args) => pauses::list(&args).await,
        Tool::Cancel(command) => cancel::run(command).await,
        Tool::RetryNow(command) => retry_now::run(command).await,
        Tool::Rescue(args) => rescue::run(&args).await,
        Tool::Recover(args) => recover::run(sources, &args).await,
        Tool::Sim(command) => sim::run(sources, command).await,
        Tool::Push(args) => push::run(args).await,
        Tool::Event(command) => event::run(command).await,
        Tool::EventTypes(command) => event_types::run(sources, command).await,
        Tool::Quotas(command) => quotas::run(sources, command).await,
        Tool::Receive(args) => receive::run(args).await,
        Tool::Demo(args) => demo::run(sources, args).await,
        Tool::Healthcheck(args) => healthcheck::run(&args).await,
        Tool::Explain(args) => explain::run(args).await,
        Tool::History(args) => history::run(&args).await,
        Tool::Waiting(args) => waiting::run(&args).await,
        Tool::Find(args) => find::run(&args).await,
        Tool::Status(args) => return status::run(args).await,
        Tool::DeadLetters(command) => return dead_letters::run(command).await,
        Tool::Jobs(command) => return jobs::run(command).await,
        Tool::Resellers(args) => resellers::resellers(&args).await,
        Tool::Mails(command) => mails::run(command).await,
        Tool::UserAgents(args) => user_agents::run(&args).await,
        Tool::Visits(command) => visits::run(command).await,
        Tool::Audit(args) => audit::run(&args).await,
        Tool::Listen(args) => return listen::run(args).await,
        Tool::Trigger(args) => return trigger::run(*args).await,
        Tool::Sign(args) => sign::run(&args),
        Tool::Verify(args) => return verify::run(&args).await,
        Tool::Events(command) => events::run(command).await,
        Tool::Overview(args) => reseller::overview::run(args).await,
        Tool::Activity(args) => reseller::overview::activity(args).await,
        Tool::Limits(args) => reseller::overview::limits(args).await,
        Tool::Subscriptions(command) => reseller::subscriptions::run(command).await,
        Tool::Notifications(command) => return reseller::notifications::run(command).await,
        Tool::Attempts(args) => reseller::notifications::attempts(args).await,
        Tool::Resend(args) => reseller::notifications::resend(args).await,
        Tool::Replay(args) => return reseller::replay::run(args).await,
        Tool::Replays(command) => reseller::replay::replays(command).await,
        Tool::Quota(command) => reseller::quota::run(command).await,
        Tool::PortalLinks(command) => reseller::portal_links::run(command).await,
        Tool::Secrets(command) => reseller::secrets::run(command).await,
        Tool::Tail(args) => reseller::tail::run(args).await,
        Tool::Completions(args) => completions::run(&args),
        Tool::Version => output::result(concat!("postrider ", env!("CARGO_PKG_VERSION"))).map_err(Into::into),
    };
    done.map(|()| ExitCode::SUCCESS)
}
