//! The reseller lane's part of the demo: subscriptions at a receiver, events of every kind, and what became of them.

mod arrivals;
mod case;
mod mails;
mod mix;
mod subscriptions;
mod table;
mod waiting;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use tokio::time::Instant;

use crate::ingest::{Answer, Ingest};
use crate::operator;
use crate::output;
use crate::portal::Portal;
use crate::webhooks::Webhooks;

pub(super) use subscriptions::unverified;

use arrivals::Arrivals;
use case::{Case, Expected, Posted};
use subscriptions::{Maker, Subscriptions};
use waiting::Watch;

/// Requests under way at once.
const CONNECTIONS: usize = 16;

#[derive(Debug, Args)]
pub(super) struct ResellerArgs {
    /// Where reseller-portal listens.
    #[arg(long, env = "PORTAL_URL", default_value = "http://127.0.0.1:8081")]
    pub(super) portal_url: String,
    /// An API key of the reseller; without it the reseller lane is left out.
    #[arg(long, env = "RESELLER_KEY", hide_env_values = true)]
    pub(super) reseller_key: Option<String>,
    /// The reseller that the key is for.
    #[arg(long, env = "RESELLER_ID", value_name = "ID", default_value = "demo")]
    pub(super) reseller: String,
    /// Where operator-api listens.
    #[arg(long, env = "OPERATOR_URL", default_value = "http://127.0.0.1:8082")]
    operator_url: String,
    /// An API key of an administrator, who approves a quota.
    #[arg(long, env = "ADMIN_KEY", hide_env_values = true)]
    admin_key: Option<String>,
    /// Where `postrider receive` listens.
    #[arg(long, env = "RECEIVER_URL", default_value = "http://127.0.0.1:8091")]
    pub(super) receiver_url: String,
    /// Where the mail server keeps mails; without it they are not looked at.
    #[arg(long, env = "MAIL_DIR", value_name = "FOLDER")]
    mail_dir: Option<PathBuf>,
    /// How many events to hand in that are simply delivered.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=5_000))]
    events: u32,
}

/// Hands the mix in, waits, shows the outcome, and returns what deviates.
pub(super) async fn run(
    args: &ResellerArgs,
    ingest: &Ingest,
    run: &str,
    timeout: Duration,
) -> anyhow::Result<Vec<String>> {
    let Some(key) = args.reseller_key.as_deref().filter(|key| !key.is_empty()) else {
        output::note("no key of a reseller is given as RESELLER_KEY: the reseller lane is left out");
        return Ok(Vec::new());
    };
    let admin_key = args
        .admin_key
        .as_deref()
        .context("no key of an administrator is given as ADMIN_KEY")?;
    let portal = Portal::new(&args.portal_url, key)?;
    let webhooks = Webhooks::new(&args.receiver_url)?;
    let deadline = Instant::now() + timeout;
    let maker = Maker {
        portal: &portal,
        admin: &operator::connect(&args.operator_url, admin_key)?,
        webhooks: &webhooks,
        run,
        deadline,
    };
    let cases = mix::cases(run, &args.reseller, args.events, portal.event_types().await?)?;
    webhooks.control(&[], &[]).await?;
    let subscriptions = maker.make().await?;
    let demo = Demo {
        ingest,
        portal: &portal,
        webhooks: &webhooks,
        subscriptions: &subscriptions,
        run,
        deadline,
    };
    let outcome = demo.drive(cases, args).await;
    // Whatever came of it, later notifications are not to fail as these were told to.
    let cleared = webhooks.control(&[], &[]).await;
    subscriptions.remove(&portal).await;
    let deviations = outcome?;
    cleared?;
    Ok(deviations)
}

struct Demo<'a> {
    ingest: &'a Ingest,
    portal: &'a Portal,
    webhooks: &'a Webhooks,
    subscriptions: &'a Subscriptions,
    run: &'a str,
    deadline: Instant,
}

impl Demo<'_> {
    async fn drive(&self, cases: Vec<Case>, args: &ResellerArgs) -> anyhow::Result<Vec<String>> {
        let rules: Vec<_> = cases.iter().flat_map(|case| case.rules.clone()).collect();
        self.webhooks.control(&rules, &self.subscriptions.secrets).await?;
        let start = Instant::now();
        let posted = self.post(cases).await?;
        output::note(format_args!(
            "handed in {} events in {:.2} s; waiting until each notification is where it should be",
            posted.iter().map(|case| case.answers.len()).sum::<usize>(),
            start.elapsed().as_secs_f64()
        ));
        let ended = Watch::new(self.ingest, self.subscriptions, self.deadline)
            .all(posted)
            .await;
        output::result(table::of(&ended))?;
        let arrivals = Arrivals::observe(self.webhooks, self.run).await?;
        output::result(&arrivals)?;
        let mut deviations: Vec<_> = ended.iter().filter_map(case::Ended::deviation).collect();
        deviations.extend(arrivals.deviation());
        deviations.extend(self.subscriptions.deviation(self.portal).await?);
        if let Some(folder) = &args.mail_dir {
            let mails = mails::wait(folder, self.run, self.deadline).await?;
            output::result(format_args!(
                "{mails} mails about it are in {}.",
                folder.display()
            ))?;
            deviations.extend(mails::deviation(mails));
        }
        Ok(deviations)
    }

    async fn post(&self, cases: Vec<Case>) -> anyhow::Result<Vec<Posted>> {
        let mut posted = Vec::with_capacity(cases.len());
        for case in cases {
            // Repeated requests go one after the other, so that the first is the first.
            let at_once = if case.expected == Expected::OneEvent {
                1
            } else {
                CONNECTIONS
            };
            let answers: Vec<Answer> = stream::iter(&case.requests)
                .map(|request| self.ingest.post_event(request, None))
                .buffered(at_once)
                .try_collect()
                .await?;
            posted.push(Posted { case, answers });
        }
        Ok(posted)
    }
}
