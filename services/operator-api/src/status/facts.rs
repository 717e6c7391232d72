//! What is known of the system at one moment.
//!
//! It deliberately gives nothing a meaning; that is `evaluate`'s business. What cannot be found out is left open, so that an
//! answer comes while the database or the broker is away.

mod find_out;
mod process;
mod rates;

use std::collections::BTreeMap;
use std::time::Duration;

use broker::{ConnectionState, Queue};
use chrono::{DateTime, TimeDelta, Utc};
use runtime::connections::Counters;
use store::push::HoldView;
use store::status::{
    Deactivated, Deaths, Depths, JobInProgress, LastLook, Leadership, MailsInTrouble, Overdue, PausedWaiting,
    QuotaWaiting, SubscriptionCount, SubscriptionInTrouble, SwrveFailure, Waiting,
};
use store::webhook::Outbox;
use store::webpush::StoredMonth;
use store::{ApiKey, BrokenGlass, Lane, PauseView};
use uuid::Uuid;

pub(crate) use find_out::find_out;
pub(crate) use process::Process;
pub(crate) use rates::{Lately, Rates, time_to_send};

/// How long the engines of a lane may take to begin once its pause has ended.
const RESUMING: TimeDelta = TimeDelta::seconds(10);

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
    /// Those that were deactivated before those in trouble were, if there are any.
    pub(crate) deactivated: Option<Deactivated>,
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
    pub(crate) requests: OpenRequests,
    pub(crate) deaths: Deaths,
}

/// Requests for more than a quota that wait for a decision.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OpenRequests {
    /// Counted up to one more than [`OpenRequests::COUNTED`].
    pub(crate) count: u64,
    /// When the oldest was made; not known where there are more than are counted.
    pub(crate) oldest: Option<DateTime<Utc>>,
}

impl OpenRequests {
    /// Most that are counted.
    pub(crate) const COUNTED: u32 = 100;
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
