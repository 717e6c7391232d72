//! What is known of the system at one moment, and finding it out.
//!
//! It deliberately gives nothing a meaning; that is `evaluate`'s business. What cannot be found out is left open, so that an
//! answer comes while the database or the broker is away.

use std::collections::BTreeMap;
use std::time::Duration;

use broker::{Broker, ConnectionState, Queue};
use chrono::{DateTime, TimeDelta, Utc};
use config::Config;
use domain::month::Month;
use lifecycle::error_chain;
use runtime::connections::{Counters, LATELY, Report};
use store::push::HoldView;
use store::status::{
    Deaths, Depths, JobInProgress, LastLook, Leadership, MailsInTrouble, Overdue, PausedWaiting,
    QuotaWaiting, SubscriptionCount, SubscriptionInTrouble, SwrveFailure, Waiting,
};
use store::webhook::Outbox;
use store::webpush::StoredMonth;
use store::{ApiKey, BrokenGlass, Lane, Pausable, PauseView, ProcessView, Store};
use uuid::Uuid;

/// How long finding out may take at most. Below what a request may take, so that there is an answer in any case.
const LIMIT: Duration = Duration::from_secs(5);
/// What counts as the last time, of dead letters.
pub(crate) const RECENT: TimeDelta = TimeDelta::minutes(10);
/// How far back a failure of an endpoint says that it fails, as the metric has it: one that gets nothing cannot succeed either.
const FAILING: TimeDelta = TimeDelta::hours(1);
/// For how long it is told that a key was used to sign in although there is a provider.
const BROKEN_GLASS: TimeDelta = TimeDelta::hours(24);
/// How long the engines of a lane may take to begin once its pause has ended.
const RESUMING: TimeDelta = TimeDelta::seconds(10);
/// Most keys that are looked up because they are about to end.
const ENDING_KEYS: u32 = 100;
/// The lease of the dispatcher that sends pushes.
const PUSH_LEASE: &str = "push";

/// Everything that is known.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// When.
    pub(crate) now: DateTime<Utc>,
    pub(crate) settings: Settings,
    pub(crate) broker: BrokerFacts,
    pub(crate) database: Database,
}

/// What the configuration says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) has_mail_server: bool,
    pub(crate) has_sealing_key: bool,
    /// More than public addresses over https may be dialled.
    pub(crate) opens_egress: bool,
    /// There are keys to make and read push endpoints with.
    pub(crate) has_webpush_keys: bool,
    pub(crate) leader_ttl: Duration,
}

/// The connection to the broker, and its queues in the order of [`Queue::ALL`].
#[derive(Debug, Clone)]
pub(crate) struct BrokerFacts {
    pub(crate) state: ConnectionState,
    pub(crate) queues: Vec<QueueFacts>,
}

/// A queue; its depth is open when it could not be asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueFacts {
    pub(crate) queue: Queue,
    /// How many messages it holds at most; `None` when there is no limit.
    pub(crate) capacity: Option<u32>,
    pub(crate) depth: Option<Depth>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Depth {
    pub(crate) messages: u32,
    pub(crate) consumers: u32,
}

/// What the database says.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    /// Nothing, and why.
    Away(String),
    /// It lacks migrations, so that nothing else can be asked.
    NotMigrated,
    Known(Box<Tables>),
}

/// What is in the tables.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    pub(crate) processes: Vec<Process>,
    pub(crate) leader: Option<Leadership>,
    pub(crate) pauses: Vec<PauseView>,
    /// Which lanes' pauses ended within [`RESUMING`], and when.
    pub(crate) resumed: Vec<(Lane, DateTime<Utc>)>,
    /// How much waits because of those of subscriptions and resellers.
    pub(crate) paused: Vec<PausedWaiting>,
    /// What is held because what it goes to is out of order.
    pub(crate) holds: Vec<HoldView>,
    pub(crate) push: PushFacts,
    pub(crate) reseller: ResellerFacts,
    pub(crate) subscriptions: Vec<SubscriptionCount>,
    pub(crate) in_trouble: Vec<SubscriptionInTrouble>,
    /// How many subscriptions that are served fail.
    pub(crate) failing: u64,
    pub(crate) outbox: Outbox,
    pub(crate) mails: MailsInTrouble,
    pub(crate) months_ahead: i32,
    pub(crate) has_this_month: bool,
    pub(crate) webpush: WebpushFacts,
    pub(crate) jobs: Vec<JobInProgress>,
    /// Visits with keys of the last day, although people sign in with a provider.
    pub(crate) broken_glass: BrokenGlass,
    /// Keys in use that end by themselves within a week, the next one first.
    pub(crate) ending_keys: Vec<ApiKey>,
    /// What an operator API found last when it looked by itself.
    pub(crate) last_look: Option<LastLook>,
    /// When the last outage was over that something was held for.
    pub(crate) last_hold_end: Option<DateTime<Utc>>,
}

/// What is stored of Web Push.
#[derive(Debug, Clone, Default)]
pub(crate) struct WebpushFacts {
    pub(crate) months_ahead: i32,
    pub(crate) has_this_month: bool,
    /// The oldest first.
    pub(crate) months: Vec<StoredMonth>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct PushFacts {
    pub(crate) depths: Depths,
    pub(crate) overdue: Overdue,
    pub(crate) deaths: Deaths,
    /// What Swrve last said of those that wait.
    pub(crate) failures: Vec<SwrveFailure>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ResellerFacts {
    pub(crate) depths: Depths,
    pub(crate) waiting: Waiting,
    /// What waits because its daily quota is used up, if anything does.
    pub(crate) quotas: Option<QuotaWaiting>,
    pub(crate) deaths: Deaths,
}

/// A service that reports itself.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) id: Uuid,
    pub(crate) service: String,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) beat_at: DateTime<Utc>,
    /// How long ago it reported itself.
    pub(crate) age: Duration,
    pub(crate) report: Report,
}

impl Process {
    /// After how long without a report a service counts as silent: four reports.
    const SILENT_AFTER: Duration = Duration::from_secs(runtime::connections::BEAT_INTERVAL.as_secs() * 4);

    pub(crate) fn is_silent(&self) -> bool {
        self.age > Self::SILENT_AFTER
    }

    /// How long it had been running when it reported itself last.
    pub(crate) fn uptime(&self) -> Duration {
        (self.beat_at - self.started_at).to_std().unwrap_or_default()
    }

    /// What it did in a second, between its last two reports.
    fn rates(&self) -> Option<Rates> {
        let previous = self.report.previous.as_ref()?;
        let seconds = (self.beat_at - previous.at).to_std().ok()?.as_secs_f64();
        (seconds > 0.0).then(|| {
            Rates::between(
                &previous.counters.unwrap_or_default(),
                &self.report.counters,
                seconds,
            )
        })
    }
}

impl From<ProcessView> for Process {
    fn from(view: ProcessView) -> Self {
        Self {
            id: view.process,
            service: view.service,
            host: view.host,
            pid: view.pid,
            version: view.version,
            started_at: view.started_at,
            beat_at: view.beat_at,
            age: view.age,
            // What another version says and we cannot read is as good as nothing.
            report: serde_json::from_value(view.state).unwrap_or_default(),
        }
    }
}

/// What is done in a second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Rates {
    pub(crate) pushes_accepted: f64,
    pub(crate) pushes_sent: f64,
    pub(crate) pushes_failed: f64,
    pub(crate) pushes_retried: f64,
    pub(crate) events_accepted: f64,
    pub(crate) notifications_delivered: f64,
    pub(crate) notifications_failed: f64,
    pub(crate) notifications_retried: f64,
    pub(crate) webpush_direct: f64,
    pub(crate) webpush_stored: f64,
    pub(crate) webpush_errors: f64,
    pub(crate) webpush_opened: f64,
}

impl Rates {
    #[expect(
        clippy::cast_precision_loss,
        reason = "nothing is done so often within seconds"
    )]
    fn between(before: &Counters, after: &Counters, seconds: f64) -> Self {
        let rate = |count: fn(&Counters) -> u64| count(after).saturating_sub(count(before)) as f64 / seconds;
        Self {
            pushes_accepted: rate(|c| c.pushes_accepted),
            pushes_sent: rate(|c| c.pushes_sent),
            pushes_failed: rate(|c| c.pushes_failed),
            pushes_retried: rate(|c| c.pushes_retried),
            events_accepted: rate(|c| c.events_accepted),
            notifications_delivered: rate(|c| c.notifications_delivered),
            notifications_failed: rate(|c| c.notifications_failed),
            notifications_retried: rate(|c| c.notifications_retried),
            webpush_direct: rate(|c| c.webpush_direct),
            webpush_stored: rate(|c| c.webpush_stored),
            webpush_errors: rate(|c| c.webpush_errors),
            webpush_opened: rate(|c| c.webpush_opened),
        }
    }

    fn add(&mut self, other: &Self) {
        self.pushes_accepted += other.pushes_accepted;
        self.pushes_sent += other.pushes_sent;
        self.pushes_failed += other.pushes_failed;
        self.pushes_retried += other.pushes_retried;
        self.events_accepted += other.events_accepted;
        self.notifications_delivered += other.notifications_delivered;
        self.notifications_failed += other.notifications_failed;
        self.notifications_retried += other.notifications_retried;
        self.webpush_direct += other.webpush_direct;
        self.webpush_stored += other.webpush_stored;
        self.webpush_errors += other.webpush_errors;
        self.webpush_opened += other.webpush_opened;
    }
}

/// What all processes together have done within the last minutes, or since they were started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Lately {
    /// How far back the oldest report looks.
    pub(crate) span: Duration,
    pub(crate) pushes_claimed: u64,
    pub(crate) push_attempts: u64,
    pub(crate) swrve_errors: u64,
    pub(crate) notifications_claimed: u64,
    pub(crate) ingest_requests: u64,
    pub(crate) ingest_errors: u64,
    pub(crate) webpush_accepted: u64,
    pub(crate) webpush_errors: u64,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "nothing is done so often within minutes"
)]
impl Lately {
    /// Whether `count` is more than `per_second` over all of the last minutes, however long ago the processes were started.
    pub(crate) fn exceeds(&self, count: u64, per_second: f64) -> bool {
        count as f64 > per_second * LATELY.as_secs_f64()
    }

    /// Which part of `all` is `count`; none of nothing.
    pub(crate) fn share(&self, count: u64, all: u64) -> f64 {
        count as f64 / all.max(1) as f64
    }
}

/// How long `waiting` take at a rate; `None` when nothing waits, or hardly anything is done.
pub(crate) fn time_to_send(waiting: u64, per_second: f64) -> Option<Duration> {
    #[expect(clippy::cast_precision_loss, reason = "a time to the second needs no more")]
    let seconds = waiting as f64 / per_second;
    let known = waiting > 0 && per_second >= 0.1;
    // In whole seconds, the last one begun.
    known
        .then(|| Duration::try_from_secs_f64(seconds.ceil()).ok())
        .flatten()
}

impl Tables {
    /// What all processes together have done within the last minutes.
    pub(crate) fn lately(&self) -> Lately {
        let mut sum = Lately::default();
        for process in self.living() {
            let Some(earlier) = process.report.earlier else {
                continue;
            };
            let (after, before) = (&process.report.counters, &earlier.counters);
            let done = |count: fn(&Counters) -> u64| count(after).saturating_sub(count(before));
            sum.span = sum.span.max(Duration::from_secs(earlier.seconds));
            sum.pushes_claimed += done(|c| c.pushes_claimed);
            sum.push_attempts += done(|c| c.push_attempts);
            sum.swrve_errors += done(|c| c.swrve_errors);
            sum.notifications_claimed += done(|c| c.notifications_claimed);
            sum.ingest_requests += done(|c| c.ingest_requests);
            sum.ingest_errors += done(|c| c.ingest_errors);
            sum.webpush_accepted += done(|c| c.webpush_direct + c.webpush_stored);
            sum.webpush_errors += done(|c| c.webpush_errors);
        }
        sum
    }

    /// One report of each process that lives: services that share one count the same things.
    pub(crate) fn living(&self) -> impl Iterator<Item = &Process> {
        let mut latest: BTreeMap<Uuid, &Process> = BTreeMap::new();
        for process in self.processes.iter().filter(|process| !process.is_silent()) {
            let known = latest.entry(process.id).or_insert(process);
            if known.beat_at < process.beat_at {
                *known = process;
            }
        }
        latest.into_values()
    }

    /// What all processes together do in a second.
    pub(crate) fn rates(&self) -> Rates {
        let mut sum = Rates::default();
        for rates in self.living().filter_map(Process::rates) {
            sum.add(&rates);
        }
        sum
    }

    /// The process that leads the push lane, as it says itself.
    pub(crate) fn leading(&self) -> Option<&Process> {
        let epoch = self.leader.as_ref()?.epoch;
        let leads =
            |process: &&Process| process.service == "dispatcher" && process.report.leading == Some(epoch);
        self.processes.iter().find(leads)
    }

    /// The outage of Swrve, if there is one or what waited meanwhile is still being sent.
    pub(crate) fn swrve_hold(&self) -> Option<&HoldView> {
        self.holds.iter().find(|hold| hold.class == store::push::SWRVE)
    }

    /// The classes of failures that are held because most endpoints fail in them.
    pub(crate) fn outages(&self) -> impl Iterator<Item = &HoldView> {
        self.holds.iter().filter(|hold| hold.class != store::push::SWRVE)
    }

    /// How much waits because of a pause, as far as it is counted. What an operator stops by a lane is all that is due there.
    pub(crate) fn waiting_for(&self, pause: &PauseView) -> Option<u64> {
        if pause.scope == "lane" {
            let depths = match pause.key.as_str() {
                "push" => &self.push.depths,
                _ => &self.reseller.depths,
            };
            return Some(crate::pauses::due(depths));
        }
        crate::pauses::waiting_for(&self.paused, pause)
    }

    /// Whether an operator has stopped a lane.
    pub(crate) fn lane_is_paused(&self, lane: &str) -> bool {
        let mut pauses = self.pauses.iter();
        pauses.any(|pause| pause.scope == "lane" && pause.key == lane)
    }

    /// Whether an operator has stopped a lane, or did until a moment ago: its engines look for the end of a pause by themselves.
    pub(crate) fn lane_is_paused_or_resuming(&self, lane: Lane, now: DateTime<Utc>) -> bool {
        let mut resumed = self.resumed.iter();
        self.lane_is_paused(lane.as_str())
            || resumed.any(|(resumed, at)| *resumed == lane && now - *at < RESUMING)
    }
}

/// Finds everything out, in less time than a request may take.
pub(crate) async fn find_out(store: &Store, broker: &Broker, config: &Config, now: DateTime<Utc>) -> Facts {
    let limit = config.operator.request_timeout.mul_f64(0.7).min(LIMIT);
    let (database, queues) = tokio::join!(
        tokio::time::timeout(limit, look_into(store, now)),
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

async fn look_into(store: &Store, now: DateTime<Utc>) -> Result<Database, store::Error> {
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
        deaths: store.deaths("reseller", now - RECENT).await?,
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
