//! Finding out what is known, from the database and the broker.

use std::time::Duration;

use broker::{Broker, Queue};
use chrono::{DateTime, TimeDelta, Utc};
use config::Config;
use domain::month::Month;
use domain::subscription::QuotaRequestStatus;
use lifecycle::error_chain;
use store::{Lane, Pausable, Store};

use super::process::Process;
use super::{
    BrokerFacts, Database, Depth, Facts, OpenRequests, PushFacts, QueueFacts, RESUMING, ResellerFacts,
    Settings, Tables, WebpushFacts,
};

/// How long finding out may take at most. Below what a request may take, so that there is an answer in any case.
const LIMIT: Duration = Duration::from_secs(5);
/// What counts as the last time, of dead letters.
const RECENT: TimeDelta = TimeDelta::minutes(10);
/// How far back a failure of an endpoint says that it fails, as the metric has it: one that gets nothing cannot succeed either.
const FAILING: TimeDelta = TimeDelta::hours(1);
/// For how long it is told that a key was used to sign in although there is a provider.
const BROKEN_GLASS: TimeDelta = TimeDelta::hours(24);
/// Most keys that are looked up because they are about to end.
const ENDING_KEYS: u32 = 100;
/// The lease of the dispatcher that sends pushes.
const PUSH_LEASE: &str = "push";

/// Finds everything out, in less time than a request may take.
pub(crate) async fn find_out(store: &Store, broker: &Broker, config: &Config, now: DateTime<Utc>) -> Facts {
    let limit = config.operator.request_timeout.mul_f64(0.7).min(LIMIT);
    let (database, queues) = tokio::join!(
        tokio::time::timeout(limit, look_into(store, config, now)),
        ask_for_queues(broker, config, limit)
    );
    Facts {
        now,
        settings: Settings {
            has_mail_server: config.mail.smtp_url.is_some(),
            has_sealing_key: config.reseller.secrets.key.is_some(),
            opens_egress: config.reseller.egress.opened().is_some(),
            has_webpush_keys: !config.webpush.keys.is_empty(),
            leader_ttl: config.push.leader.ttl,
        },
        broker: BrokerFacts {
            state: broker.state().borrow().clone(),
            queues,
        },
        database: match database {
            Ok(Ok(database)) => database,
            Ok(Err(error)) => {
                if error.is_transient() {
                    tracing::debug!(error = error_chain(&error), "the status cannot be read now");
                } else {
                    tracing::error!(error = error_chain(&error), "the status cannot be read");
                }
                Database::Away(error.to_string())
            }
            Err(_) => Database::Away("it does not answer".to_owned()),
        },
    }
}

/// Most pauses for which it is counted what waits, each time that the status is asked for.
const PAUSES_COUNTED: usize = 10;

async fn look_into(store: &Store, config: &Config, now: DateTime<Utc>) -> Result<Database, store::Error> {
    if !store.is_migrated().await? {
        return Ok(Database::NotMigrated);
    }
    let paused = async {
        let pauses = store.list_pauses().await?;
        // After those in force: what ends in between is among these.
        let resumed = resumed_lately(store, now).await?;
        let waiting = store.waiting_for_pauses(&pauses, PAUSES_COUNTED).await?;
        Ok((pauses, resumed, waiting))
    };
    let (processes, leader, (pauses, resumed, paused), holds, push, reseller) = tokio::try_join!(
        store.list_processes(),
        store.leadership(PUSH_LEASE),
        paused,
        store.list_holds(),
        push_facts(store, now),
        reseller_facts(store, now),
    )?;
    let month = Month::containing(now);
    let webpush = webpush_facts(store, month).await?;
    let (
        subscriptions,
        in_trouble,
        deactivated,
        failing,
        outbox,
        mails,
        months_ahead,
        has_this_month,
        jobs,
        broken_glass,
        ending_keys,
        last_look,
        last_hold_end,
    ) = tokio::try_join!(
        store.subscription_states(),
        store.subscriptions_in_trouble(now),
        // Of what was missed longer ago nothing can be replayed any more.
        store.subscriptions_deactivated(now, now - config.reseller.replay.max_age),
        store.count_failing_subscriptions(now - FAILING),
        store.outbox(),
        store.mails_in_trouble(now),
        store.partitions_ahead(month),
        store.has_partitions(month),
        store.jobs_in_progress(now),
        store.broken_glass(now - BROKEN_GLASS),
        store.keys_about_to_end(now, ENDING_KEYS),
        store.last_look(),
        store.last_hold_end(),
    )?;
    Ok(Database::Known(Box::new(Tables {
        processes: processes.into_iter().map(Process::from).collect(),
        leader,
        pauses,
        resumed,
        paused,
        holds,
        push,
        reseller,
        subscriptions,
        in_trouble,
        deactivated,
        failing,
        outbox,
        mails,
        months_ahead,
        has_this_month,
        webpush,
        jobs,
        broken_glass,
        ending_keys,
        last_look,
        last_hold_end,
    })))
}

/// The lanes whose pauses ended within [`RESUMING`].
async fn resumed_lately(
    store: &Store,
    now: DateTime<Utc>,
) -> Result<Vec<(Lane, DateTime<Utc>)>, store::Error> {
    let mut resumed = Vec::new();
    for lane in [Lane::Push, Lane::Reseller] {
        let pauses = store
            .pauses_since(&[Pausable::Lane(lane)], now - RESUMING, None)
            .await?;
        let ends = pauses.iter().filter_map(|pause| pause.resumed_at);
        resumed.extend(ends.map(|at| (lane, at)));
    }
    Ok(resumed)
}

/// For how long a look waits for the counts of what Web Push stores.
const COUNTING: Duration = Duration::from_secs(1);

async fn webpush_facts(store: &Store, month: Month) -> Result<WebpushFacts, store::Error> {
    Ok(WebpushFacts {
        months_ahead: store.webpush_partitions_ahead(month).await?,
        has_this_month: store.webpush_has_month(month).await?,
        // After millions were deleted, counting passes what is left of them: the rest is told without it.
        months: match tokio::time::timeout(COUNTING, store.webpush_months()).await {
            Ok(months) => months?,
            Err(_) => Vec::new(),
        },
    })
}

async fn push_facts(store: &Store, now: DateTime<Utc>) -> Result<PushFacts, store::Error> {
    Ok(PushFacts {
        depths: store.push_depths().await?,
        overdue: store.push_overdue().await?,
        deaths: store.deaths("push", now - RECENT).await?,
        failures: store.swrve_failures().await?,
    })
}

async fn reseller_facts(store: &Store, now: DateTime<Utc>) -> Result<ResellerFacts, store::Error> {
    Ok(ResellerFacts {
        depths: store.notification_depths().await?,
        waiting: store.notifications_waiting().await?,
        quotas: store.waiting_for_quotas(now).await?,
        requests: open_requests(store).await?,
        deaths: store.deaths("reseller", now - RECENT).await?,
    })
}

async fn open_requests(store: &Store) -> Result<OpenRequests, store::Error> {
    let (requested, most) = (Some(QuotaRequestStatus::Requested), OpenRequests::COUNTED);
    // The newest first.
    let open = store.list_quota_requests(None, requested, None, most + 1).await?;
    let count = open.len() as u64;
    let oldest = open.last().filter(|_| count <= u64::from(most));
    Ok(OpenRequests {
        count,
        oldest: oldest.map(|request| request.created_at),
    })
}

async fn ask_for_queues(broker: &Broker, config: &Config, limit: Duration) -> Vec<QueueFacts> {
    let mut queues = Vec::with_capacity(Queue::ALL.len());
    let deadline = tokio::time::Instant::now() + limit;
    for queue in Queue::ALL {
        let depth = match tokio::time::timeout_at(deadline, broker.depth(queue)).await {
            Ok(Ok(depth)) => Some(Depth {
                messages: depth.messages,
                consumers: depth.consumers,
            }),
            Ok(Err(_)) | Err(_) => None,
        };
        let capacity = match queue {
            Queue::PushReady => Some(config.push.queue.capacity),
            Queue::ResellerReady | Queue::ResellerRetry => Some(config.reseller.queue.capacity),
            Queue::PushDead | Queue::ResellerDead => None,
        };
        queues.push(QueueFacts {
            queue,
            capacity,
            depth,
        });
    }
    queues
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing listens there.
    const NOWHERE: &str = "127.0.0.1:1";

    #[tokio::test]
    async fn servers_that_are_away_are_facts_too() {
        let (database, amqp) = (
            format!("postgres://nobody@{NOWHERE}/none"),
            format!("amqp://{NOWHERE}"),
        );
        let config = Config::for_tests(&database, &amqp).unwrap();
        let (store, broker) = runtime::connections::open(&config, "operator-api").unwrap();
        let now = DateTime::UNIX_EPOCH;
        let facts = find_out(&store, &broker, &config, now).await;
        assert!(matches!(facts.database, Database::Away(_)), "{facts:?}");
        assert!(
            facts.broker.queues.iter().all(|queue| queue.depth.is_none()),
            "{facts:?}"
        );
        let findings = crate::status::evaluate::evaluate(&facts);
        assert_eq!(findings[0].id, "database-away", "{findings:?}");
        runtime::connections::close([broker], store).await;
    }
}
