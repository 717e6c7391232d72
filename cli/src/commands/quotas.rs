//! `postrider quotas`: what resellers ask for, decided by an administrator: on the database, or over the operator API, as API keys are made.

use anyhow::{Context as _, bail};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use config::Sources;
use domain::clock::{Clock as _, SystemClock};
use domain::subscription::QuotaRequestStatus;
use reqwest::Method;
use serde_json::{Map, Value, json};
use store::webhook::{Decided, Decision, LimitsChange, QuotaRequestView};
use uuid::Uuid;

use super::database::{Access, Database, by_hand};
use crate::operator::OperatorArgs;
use crate::output::{self, Column, Form, FormArgs};
use crate::part::Pages;
use crate::shown::{self, ShownColumn, cell};

/// Most quota requests that are listed.
const LISTED_MAX: u16 = 1_000;

#[derive(Debug, Subcommand)]
pub(crate) enum QuotasCommand {
    /// Lists quota requests, the newest first.
    Requests {
        /// Of this status: REQUESTED, APPROVED or DENIED; of any when missing.
        #[arg(long, value_parser = |name: &str| name.parse::<QuotaRequestStatus>())]
        status: Option<QuotaRequestStatus>,
        #[command(flatten)]
        form: FormArgs,
        #[command(flatten)]
        operator: OperatorArgs,
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
        #[command(flatten)]
        operator: OperatorArgs,
    },
    /// Denies a quota request.
    Deny {
        /// The request's identifier, from `postrider quotas requests`.
        id: Uuid,
        /// Why, for the reseller, which gets it by mail.
        #[arg(long, value_parser = NonEmptyStringValueParser::new())]
        note: String,
        #[command(flatten)]
        operator: OperatorArgs,
    },
    /// Sets limits of a subscription, whatever was asked for.
    #[command(
        after_help = "Examples:\n  postrider quotas set 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --daily-quota 50000 --note 'until the migration is over'\n  \
                      postrider quotas set 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --default --note 'the migration is over'"
    )]
    Set(SetArgs),
}

impl QuotasCommand {
    fn operator(&self) -> &OperatorArgs {
        match self {
            Self::Requests { operator, .. }
            | Self::Approve { operator, .. }
            | Self::Deny { operator, .. } => operator,
            Self::Set(args) => &args.operator,
        }
    }
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
    #[command(flatten)]
    operator: OperatorArgs,
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

const COLUMNS: [ShownColumn; 12] = [
    (Column::whole("id"), "/id"),
    (Column::whole("reseller"), "/resellerId"),
    (Column::whole("subscription").spare(5), "/subscriptionId"),
    (Column::whole("asks for"), "/dailyQuota"),
    (Column::whole("has now").spare(1), "/present/dailyQuota"),
    (Column::whole("used today").spare(2), "/present/usedToday"),
    (Column::whole("asks for a second").spare(7), "/requestsPerSecond"),
    (
        Column::whole("has a second").spare(8),
        "/present/requestsPerSecond",
    ),
    (Column::whole("status"), "/status"),
    (Column::whole("granted").spare(3), "/granted"),
    (Column::whole("granted a second").spare(6), "/grantedPerSecond"),
    (Column::prose("reason").spare(4), "/reason"),
];

/// Does what the command says.
pub(crate) async fn run(sources: &Sources, command: QuotasCommand) -> anyhow::Result<()> {
    let access = Access::open(sources, command.operator()).await?;
    if !matches!(command, QuotasCommand::Requests { .. }) {
        access.tell_actor(command.operator());
    }
    match command {
        QuotasCommand::Requests { status, form, .. } => list(&access, status, form.form()).await,
        QuotasCommand::Approve {
            id,
            granted,
            granted_per_second,
            note,
            ..
        } => decide(&access, id, &decision(true, (granted, granted_per_second), note)).await,
        QuotasCommand::Deny { id, note, .. } => {
            decide(&access, id, &decision(false, (None, None), Some(note))).await
        }
        QuotasCommand::Set(args) => set(&access, &args).await,
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

async fn list(access: &Access, status: Option<QuotaRequestStatus>, form: Form) -> anyhow::Result<()> {
    let requests = match access {
        Access::Database(database) => {
            let listing = database
                .store
                .list_quota_requests(None, status, None, LISTED_MAX.into());
            let requests = listing
                .await
                .with_context(|| database.failure("read the quota requests from"))?;
            with_present(database, &requests).await?
        }
        Access::Api(api) => {
            let status = status.map(|status| ("status".to_owned(), json!(status)));
            let query = Map::from_iter(status);
            let pages = Pages::new(api, "/quota-requests", query, LISTED_MAX.into());
            let mut document = pages.whole().await?;
            document["items"].take()
        }
    };
    shown::print(
        &json!({ "items": requests }),
        form,
        COLUMNS,
        "no quota request matches",
    )
}

/// The requests, those that wait for a decision with what their subscriptions have now, as the API lists them.
async fn with_present(database: &Database, requests: &[QuotaRequestView]) -> anyhow::Result<Value> {
    let open = requests
        .iter()
        .filter(|it| it.status == QuotaRequestStatus::Requested);
    let open: Vec<Uuid> = open.map(|request| request.subscription).collect();
    let reading = database.store.present_limits(&open, SystemClock.now());
    let present = reading
        .await
        .with_context(|| database.failure("read the quotas from"))?;
    let listed = requests.iter().map(|request| {
        let mut listed = json!(request);
        if request.status == QuotaRequestStatus::Requested {
            listed["present"] = json!(present.get(&request.subscription));
        }
        listed
    });
    Ok(listed.collect())
}

async fn decide(access: &Access, id: Uuid, decision: &Decision) -> anyhow::Result<()> {
    let decided = match access {
        Access::Database(database) => decide_in(database, id, decision).await?,
        Access::Api(api) => {
            let mut body = json!({ "note": decision.note });
            let act = if decision.approve { "approve" } else { "deny" };
            if decision.approve {
                body["granted"] = json!(decision.granted);
                body["grantedPerSecond"] = json!(decision.granted_per_second);
            }
            let path = format!("/quota-requests/{id}/{act}");
            api.post(&path, &body).await?
        }
    };
    if !decision.approve {
        return Ok(output::result(format_args!("denied {id}"))?);
    }
    let daily = decided["granted"]
        .as_u64()
        .map(|granted| format!("{granted} a day"));
    let rate = decided["grantedPerSecond"].as_u64();
    let rate = rate.map(|rate| format!("{rate} a second"));
    let granted: Vec<String> = daily.into_iter().chain(rate).collect();
    output::result(format_args!(
        "approved {id}: subscription {} of {} gets {}",
        cell(&decided, "/subscriptionId"),
        cell(&decided, "/resellerId"),
        granted.join(", ")
    ))?;
    Ok(())
}

/// Decides it past the services; gives it as it is then.
async fn decide_in(database: &Database, id: Uuid, decision: &Decision) -> anyhow::Result<Value> {
    let decided = database.store.decide_quota_request(id, decision).await;
    match decided.with_context(|| database.failure("decide the quota request in"))? {
        Decided::Done(request) => Ok(json!(request)),
        Decided::Before(status) => bail!("the quota request {id} is {status} already"),
        Decided::Unknown => {
            bail!("no quota request has the id {id}; `postrider quotas requests` shows all of them")
        }
    }
}

async fn set(access: &Access, args: &SetArgs) -> anyhow::Result<()> {
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
    let id = args.subscription;
    let note = args.note.as_deref();
    let before = limits_of(access, id).await?;
    match access {
        Access::Database(database) => {
            let act = by_hand(SystemClock.now(), note);
            let found = database.store.set_limits(id, limits, act).await;
            if !found.with_context(|| database.failure("set the limits in"))? {
                bail!("no subscription has the id {id}");
            }
        }
        // Only what is given: what another person changes at this moment stays.
        Access::Api(api) => {
            let mut body = json!({ "note": note });
            for (name, limit) in [
                ("dailyQuota", limits.daily_quota),
                ("requestsPerSecond", limits.requests_per_second),
            ] {
                if let Some(limit) = limit {
                    body[name] = json!(limit);
                }
            }
            let path = format!("/subscriptions/{id}/limits");
            let _: Value = api.send(Method::PUT, &path, &body).await?;
        }
    }
    output::result(format_args!("{} for {id}", told(&before, limits)))?;
    Ok(())
}

/// The limits that a subscription has of its own; null is the default.
async fn limits_of(access: &Access, id: Uuid) -> anyhow::Result<Value> {
    match access {
        Access::Database(database) => {
            let found = database.store.find_any_subscription(id).await;
            let found = found.with_context(|| database.failure("read the limits from"))?;
            let view = found.with_context(|| format!("no subscription has the id {id}"))?;
            Ok(json!({ "dailyQuota": view.daily_quota, "requestsPerSecond": view.requests_per_second }))
        }
        Access::Api(api) => api.get(&format!("/subscriptions/{id}"), &()).await,
    }
}

/// The limits that were set, with what they were `before`.
fn told(before: &Value, set: LimitsChange) -> String {
    let word = |limit: Option<u64>| limit.map_or("default".to_owned(), |limit| limit.to_string());
    let limits = [
        ("daily quota", "dailyQuota", set.daily_quota),
        ("attempts a second", "requestsPerSecond", set.requests_per_second),
    ];
    let told = limits.into_iter().filter_map(|(what, name, to)| {
        let (from, to) = (word(before[name].as_u64()), word(to?.map(u64::from)));
        Some(if from == to {
            format!("{what} {to} as before")
        } else {
            format!("{what} {from} → {to}")
        })
    });
    told.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_is_told_with_what_it_was() {
        let before = json!({"dailyQuota": 120, "requestsPerSecond": null});
        for (daily_quota, requests_per_second, said) in [
            (Some(Some(100)), None, "daily quota 120 → 100"),
            (
                Some(None),
                Some(Some(3)),
                "daily quota 120 → default, attempts a second default → 3",
            ),
            (Some(Some(120)), None, "daily quota 120 as before"),
            (None, Some(None), "attempts a second default as before"),
        ] {
            let set = LimitsChange {
                daily_quota,
                requests_per_second,
            };
            assert_eq!(told(&before, set), said);
        }
    }
}
