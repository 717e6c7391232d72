//! `postrider demo --history`: a week that looks lived in, for the reseller of the demo.
//!
//! Its subscriptions are made as any reseller makes them, at the receiver of webhooks; what happened to them is made up and written straight
//! into the database, which must know no other reseller.

mod week;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use config::Sources;
use domain::clock::{Clock as _, SystemClock};
use domain::quota::{day_of, start_of};
use store::demo::PastWritten;
use tokio::time::Instant;
use uuid::Uuid;

use super::reseller::ResellerArgs;
use crate::commands::database::Database;
use crate::output;
use crate::portal::{Portal, SubscriptionRequest};
use crate::webhooks::Webhooks;

use week::{Days, KINDS, Kind, Made};

/// Whose past may be made up. No other: a real reseller's is never touched.
const RESELLER: &str = "demo";
/// How often a subscription is looked at until it is verified.
const POLL: Duration = Duration::from_millis(100);

/// Makes the subscriptions that are missing, and writes their week.
pub(super) async fn run(sources: &Sources, args: &ResellerArgs, timeout: Duration) -> anyhow::Result<()> {
    if args.reseller != RESELLER {
        bail!(
            "a past is made up for the reseller {RESELLER:?} alone, and RESELLER_ID or --reseller is {:?}",
            args.reseller
        );
    }
    let Some(key) = args.reseller_key.as_deref().filter(|key| !key.is_empty()) else {
        bail!(
            "no key of the reseller {RESELLER:?} is given; set it as RESELLER_KEY (`postrider keys create --name demo --role reseller \
             --reseller {RESELLER}`)"
        );
    };
    let database = Database::open_migrated(sources).await?;
    // Before anything is made.
    refuse_others(&database.store.other_resellers(RESELLER).await?)?;
    let portal = Portal::new(&args.portal_url, key)?;
    let webhooks = Webhooks::new(&args.receiver_url)?;
    let deadline = Instant::now() + timeout;
    let mut made = Vec::with_capacity(KINDS.len());
    for kind in &KINDS {
        made.push(subscription(&portal, &webhooks, kind, deadline).await?);
    }
    let examples: BTreeMap<String, String> = portal
        .event_types()
        .await?
        .into_iter()
        .map(|known| (known.name, known.example.get().to_owned()))
        .collect();
    let zone = database.config.reseller.quota.time_zone;
    let past = week::past(
        RESELLER,
        SystemClock.now(),
        &Days {
            of: &|at| day_of(at, zone),
            start: &|day| start_of(day, zone),
        },
        &made,
        &examples,
    );
    match database.store.write_past(RESELLER, &past).await? {
        PastWritten::Done => output::result(format_args!(
            "A week of {} notifications is there, for {} subscriptions of the reseller {RESELLER}.",
            past.notifications.len(),
            past.subscriptions.len()
        ))?,
        PastWritten::OthersToo(others) => refuse_others(&others)?,
        PastWritten::UnknownSubscription(id) => {
            bail!(
                "the subscription {id} is not in this database; is it the one that the portal at {} uses?",
                args.portal_url
            )
        }
    }
    Ok(())
}

fn refuse_others(others: &[String]) -> anyhow::Result<()> {
    if !others.is_empty() {
        bail!(
            "this database is not one of a demonstration: it knows other resellers than {RESELLER:?} ({}); nothing was written",
            others.join(", ")
        );
    }
    Ok(())
}

/// The one of an earlier run, or a new one, with a verified endpoint.
async fn subscription(
    portal: &Portal,
    webhooks: &Webhooks,
    kind: &'static Kind,
    deadline: Instant,
) -> anyhow::Result<Made> {
    let url = webhooks.endpoint(kind.path);
    let earlier = portal.subscriptions().await?;
    if let Some(earlier) = earlier.iter().find(|one| one.description == kind.description) {
        return Ok(Made {
            id: earlier.id,
            url,
            kind,
        });
    }
    let request = SubscriptionRequest {
        url: url.clone(),
        event_types: vec![kind.events.to_owned()],
        email: "webhooks@shop.example".to_owned(),
        description: kind.description.to_owned(),
        timeout_millis: week::TIMEOUT_MILLIS,
    };
    let id = portal.subscribe(&request).await?.id;
    verified(portal, id, deadline)
        .await
        .with_context(|| format!("the subscription {:?} at {url} is not verified", kind.description))?;
    Ok(Made { id, url, kind })
}

async fn verified(portal: &Portal, id: Uuid, deadline: Instant) -> anyhow::Result<()> {
    loop {
        let subscription = portal.subscription(id).await?;
        if subscription.state == "ACTIVE" {
            return Ok(());
        }
        if Instant::now() >= deadline {
            bail!("{}", super::reseller::unverified(&subscription));
        }
        tokio::time::sleep(POLL).await;
    }
}
