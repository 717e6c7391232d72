//! `postrider quotas`: what resellers ask for, decided by an operator with access to the database, as API keys are made.

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use config::Sources;
use domain::clock::{Clock as _, SystemClock};
use domain::subscription::QuotaRequestStatus;
use serde_json::json;
use store::webhook::{Decided, Decision, LimitsChange};
use uuid::Uuid;

use super::database::{Database, by_hand};
use crate::output::{self, Column, Form, FormArgs};
use crate::shown::{self, ShownColumn};

/// Most quota requests that are listed.
const LISTED_MAX: u32 = 1_000;

#[derive(Debug, Subcommand)]
pub(crate) enum QuotasCommand {
    /// Lists quota requests, the newest first.
    Requests {
        /// Of this status: REQUESTED, APPROVED or DENIED; of any when missing.
        #[arg(long, value_parser = |name: &str| name.parse::<QuotaRequestStatus>())]
        status: Option<QuotaRequestStatus>,
        #[command(flatten)]
        form: FormArgs,
    },
    /// Approves a quota request; what waits for a coming day gets a new place.
    Approve {
        /// The request's identifier, from `postrider quotas requests`.
        id: Uuid,
        /// Notifications a day, when not as many as were asked for.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
        granted: Option<u32>,
        /// Attempts a second, when not as many as were asked for.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
        granted_per_second: Option<u32>,
        /// A word about it, for the reseller.
        #[arg(long)]
        note: Option<String>,
    },
    /// Denies a quota request.
    Deny {
        /// The request's identifier, from `postrider quotas requests`.
        id: Uuid,
        /// A word about it, for the reseller.
        #[arg(long)]
        note: Option<String>,
    },
    /// Sets limits of a subscription, whatever was asked for.
    #[command(
        after_help = "Examples:\n  postrider quotas set 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --daily-quota 50000 --note 'until the migration is over'\n  \
                      postrider quotas set 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --default --note 'the migration is over'"
    )]
    Set(SetArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The subscription's identifier.
    subscription: Uuid,
    #[command(flatten)]
    limits: LimitArgs,
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct LimitArgs {
    /// Notifications a day; the word default for those of the configuration.
    #[arg(long, value_name = "N", value_parser = |text: &str| Limit::of(text, 1_000_000_000))]
    daily_quota: Option<Limit>,
    /// Attempts a second; the word default for those of the configuration.
    #[arg(long, value_name = "N", value_parser = |text: &str| Limit::of(text, 100_000))]
    requests_per_second: Option<Limit>,
    /// Takes both limits away, so that those of the configuration hold.
    #[arg(long, conflicts_with_all = ["daily_quota", "requests_per_second"])]
    default: bool,
}

/// A limit of a subscription; the default when it has none of its own.
#[derive(Debug, Clone, Copy)]
struct Limit(Option<u32>);

impl Limit {
    fn of(text: &str, most: u32) -> Result<Self, String> {
        if text == "default" {
            return Ok(Self(None));
        }
        let limit = text.parse::<u32>().ok();
        let limit = limit.filter(|limit| (1..=most).contains(limit));
        limit
            .map(|limit| Self(Some(limit)))
            .ok_or_else(|| format!("a limit is a number from 1 to {most}, or default"))
    }
}

const COLUMNS: [ShownColumn; 9] = [
    (Column::whole("id"), "/id"),
    (Column::whole("reseller"), "/resellerId"),
    (Column::whole("subscription").spare(3), "/subscriptionId"),
    (Column::whole("quota"), "/dailyQuota"),
    (Column::whole("a second").spare(5), "/requestsPerSecond"),
    (Column::whole("status"), "/status"),
    (Column::whole("granted").spare(1), "/granted"),
    (Column::whole("granted a second").spare(4), "/grantedPerSecond"),
    (Column::prose("reason").spare(2), "/reason"),
];

/// Does what the command says.
pub(crate) async fn run(sources: &Sources, command: QuotasCommand) -> anyhow::Result<()> {
    let database = Database::open_migrated(sources).await?;
    match command {
        QuotasCommand::Requests { status, form } => list(&database, status, form.form()).await,
        QuotasCommand::Approve {
            id,
            granted,
            granted_per_second,
            note,
        } => decide(&database, id, decision(true, (granted, granted_per_second), note)).await,
        QuotasCommand::Deny { id, note } => decide(&database, id, decision(false, (None, None), note)).await,
        QuotasCommand::Set(args) => set(&database, &args).await,
    }
}

fn decision(
    approve: bool,
    (granted, granted_per_second): (Option<u32>, Option<u32>),
    note: Option<String>,
) -> Decision {
    Decision {
        approve,
        granted,
        granted_per_second,
        note,
        by: by_hand(SystemClock.now(), None).by.to_owned(),
        at: SystemClock.now(),
    }
}

async fn list(database: &Database, status: Option<QuotaRequestStatus>, form: Form) -> anyhow::Result<()> {
    let requests = database
        .store
        .list_quota_requests(None, status, None, LISTED_MAX)
        .await
        .with_context(|| database.failure("read the quota requests from"))?;
    shown::print(
        &json!({ "items": requests }),
        form,
        COLUMNS,
        "no quota request matches",
    )
}

async fn decide(database: &Database, id: Uuid, decision: Decision) -> anyhow::Result<()> {
    let decided = database
        .store
        .decide_quota_request(id, &decision)
        .await
        .with_context(|| database.failure("decide the quota request in"))?;
    match decided {
        Decided::Done(request) if request.status == QuotaRequestStatus::Approved => {
            let daily = request.granted.map(|granted| format!("{granted} a day"));
            let rate = request.granted_per_second.map(|rate| format!("{rate} a second"));
            let granted: Vec<String> = daily.into_iter().chain(rate).collect();
            output::result(format_args!(
                "approved {id}: subscription {} of {} gets {}",
                request.subscription,
                request.reseller,
                granted.join(", ")
            ))?;
        }
        Decided::Done(_) => output::result(format_args!("denied {id}"))?,
        Decided::Before(status) => bail!("the quota request {id} is {status} already"),
        Decided::Unknown => {
            bail!("no quota request has the id {id}; `postrider quotas requests` shows all of them")
        }
    }
    Ok(())
}

async fn set(database: &Database, args: &SetArgs) -> anyhow::Result<()> {
    let asked = |limit: Option<Limit>| {
        let limit = if args.limits.default {
            Some(Limit(None))
        } else {
            limit
        };
        limit.map(|Limit(limit)| limit)
    };
    let limits = LimitsChange {
        daily_quota: asked(args.limits.daily_quota),
        requests_per_second: asked(args.limits.requests_per_second),
    };
    let found = database
        .store
        .set_limits(
            args.subscription,
            limits,
            by_hand(SystemClock.now(), args.note.as_deref()),
        )
        .await
        .with_context(|| database.failure("set the limits in"))?;
    if !found {
        bail!("no subscription has the id {}", args.subscription);
    }
    output::result(format_args!("set the limits of {}", args.subscription))?;
    Ok(())
}
