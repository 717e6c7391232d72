//! The loop that keeps the stages busy: what arrives goes into the scheduler, whose turn it is gets claimed, what is claimed
//! is attempted, what is over makes room.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use broker::{Consumer, Delivery};
use domain::linger::{Linger, Pace};
use domain::notification::{NotificationId, RetryPolicy};
use leadership::LaneWatch;
use lifecycle::{Shutdown, error_chain};
use metrics::Gauge;
use store::webhook::SpillReason;
use telemetry::Metric;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::attempt;
use super::claimer::{Claimed, Claimer};
use super::completer::{AttemptResult, Completer};
use super::endpoints::Endpoints;
use super::outages::{Outages, PROBE_INTERVAL};
use super::scheduler::{Capacity, FairScheduler, Turn};
use super::spans;
use super::statistics::Statistics;
use super::under_way::{Done, UnderWay};
use super::{Lane, Tools};
use crate::claim::paused;
use crate::message::Message;
use crate::record::Batch;

/// Messages taken from the queue at once, and notifications claimed in one statement, whether they came or were fetched.
const BATCH: usize = 256;
/// Claims under way at once, by kind. More of them would only wait for each other in the database.
const CLAIMS: usize = 2;
/// Between two claims, by the notifications a second. A claim costs as much as 15 to 25 notifications in it, so that on a machine that
/// is busy with claims of one or two, gathering makes each of them earlier. With fewer a second, each would only wait.
const PACES: &[Pace] = &[
    Pace {
        from: 500,
        interval: Duration::from_millis(3),
    },
    Pace {
        from: 1_500,
        interval: Duration::from_millis(8),
    },
];
/// Notifications that may wait in the scheduler. What exceeds it goes back to the database.
const BUFFER: usize = 2_048;
/// Notifications that may be on their way back to the database; while there are more, no further messages are read. What the client of the
/// broker has prefetched takes a hundred bytes for each, what is read takes five times as many, and of a full queue more than a hundred
/// thousand are prefetched.
const ASIDE: usize = 2 * BUFFER;
/// Outcomes that may wait to be recorded.
const OUTBOX: usize = 1_024;
/// How long the database may take to put notifications aside before it counts as away.
const SPILL_LIMIT: Duration = Duration::from_secs(10);

/// One engine.
pub struct Engine {
    lane: Lane,
    tools: Tools,
    outages: Arc<Outages>,
}

/// Makes the attempts of a lane until shutdown, whenever it is not paused; none when the installation has no key for
/// signing secrets, which leaves the lane off.
pub async fn deliver(lane: Lane, tools: Option<Tools>, shutdown: Shutdown) {
    match tools {
        Some(tools) => deliver_unless_paused(lane, &tools, &shutdown).await,
        None => {
            tracing::warn!("the reseller lane is off: reseller.secrets.key is not set");
            shutdown.cancelled().await;
        }
    }
}

/// An engine from each end of a pause to the next pause.
async fn deliver_unless_paused(lane: Lane, tools: &Tools, shutdown: &Shutdown) {
    let pauses = LaneWatch::new(tools.store.clone(), store::Lane::Reseller);
    // What it holds is not forgotten with a pause.
    let outages = Arc::new(Outages::new(lane, tools.store.clone(), tools.clock.clone()));
    while pauses.opened(shutdown).await {
        let open = shutdown.child();
        let pausing = async {
            pauses.paused().await;
            open.trigger();
            std::future::pending().await
        };
        let engine = Engine {
            lane,
            tools: tools.clone(),
            outages: outages.clone(),
        };
        tokio::select! {
            () = engine.run(open.clone()) => {}
            () = pausing => {}
        }
    }
}

/// The state of the loop.
pub(crate) struct RunLoop {
    lane: Lane,
    /// Shared with every attempt: each of them would otherwise count a dozen references up and down that all threads share.
    tools: Arc<Tools>,
    policy: RetryPolicy,
    pub(crate) claimer: Arc<Claimer>,
    pub(crate) outages: Arc<Outages>,
    pub(crate) scheduler: FairScheduler<Message>,
    claiming: usize,
    /// Between two claims, when many come.
    linger: Linger,
    under_way: Gauge,
    fetching: usize,
    pub(crate) settling: usize,
    /// Notifications that are being put into the database.
    aside: usize,
    pub(crate) done: mpsc::UnboundedSender<Done>,
    outbox: mpsc::Sender<AttemptResult>,
}

impl Engine {
    /// An engine for one lane.
    pub fn new(lane: Lane, tools: Tools) -> Self {
        let outages = Outages::new(lane, tools.store.clone(), tools.clock.clone());
        Self {
            lane,
            tools,
            outages: Arc::new(outages),
        }
    }

    /// Delivers until shutdown; then what has begun is finished and recorded, and the rest goes back to the queue.
    pub async fn run(self, shutdown: Shutdown) {
        let slots = self.lane.slots(&self.tools.config);
        Metric::DeliverySlots.set_with(&[("lane", self.lane.label())], slots as f64);
        let prefetch = u16::try_from(slots + BUFFER + BATCH).unwrap_or(u16::MAX);
        let mut consumer = self.tools.broker.consume(self.lane.queue(), prefetch);
        let (outbox, endings) = mpsc::channel(OUTBOX);
        let completer = Completer {
            lane: self.lane,
            tools: self.tools.clone(),
            statistics: Arc::new(Statistics::new(self.tools.store.clone())),
        };
        let completer = AbortOnDropHandle::new(tokio::spawn(completer.run(endings)));
        let outages = self.outages.clone();
        let keeping = AbortOnDropHandle::new(tokio::spawn(async move { outages.keep().await }));
        let (done, mut dones) = mpsc::unbounded_channel();
        let mut run_loop = self.run_loop(slots, &shutdown, done, outbox);
        run_loop.serve(&mut consumer, &mut dones, &shutdown).await;
        for message in run_loop.scheduler.clear() {
            message.requeue().await;
        }
        let finishing = async {
            while run_loop.is_busy() {
                let Some(done) = dones.recv().await else { break };
                run_loop.handle(done);
            }
        };
        tokio::join!(finishing, consumer.stop());
        run_loop.under_way.set(0.0);
        drop((run_loop, keeping));
        if let Err(error) = completer.await {
            tracing::error!(error = error_chain(&error), "the completer failed");
        }
        consumer.close().await;
    }

    fn run_loop(
        self,
        slots: usize,
        shutdown: &Shutdown,
        done: mpsc::UnboundedSender<Done>,
        outbox: mpsc::Sender<AttemptResult>,
    ) -> RunLoop {
        let delivery = &self.tools.config.reseller.delivery;
        let endpoints = Endpoints::new(
            self.tools.store.clone(),
            self.tools.sealer.clone(),
            delivery.timeout,
            delivery.max_timeout,
        );
        let capacity = Capacity {
            slots,
            slots_each: delivery.max_in_flight_per_subscription,
            buffer: BUFFER,
        };
        let mut scheduler = FairScheduler::new(capacity);
        for (subscription, _) in self.outages.withheld() {
            scheduler.withhold(subscription);
        }
        RunLoop {
            lane: self.lane,
            outages: self.outages,
            policy: self.tools.policy(),
            claimer: Arc::new(Claimer {
                lane: self.lane,
                tools: self.tools.clone(),
                endpoints,
                stop: shutdown.token(),
            }),
            tools: Arc::new(self.tools),
            scheduler,
            claiming: 0,
            linger: Linger::new(PACES),
            under_way: Metric::DeliveriesInFlight.gauge(&[("lane", self.lane.label())]),
            fetching: 0,
            settling: 0,
            aside: 0,
            done,
            outbox,
        }
    }
}

impl RunLoop {
    async fn serve(
        &mut self,
        consumer: &mut Consumer,
        dones: &mut mpsc::UnboundedReceiver<Done>,
        shutdown: &Shutdown,
    ) {
        let mut waits = None;
        let mut probes = interval(PROBE_INTERVAL);
        probes.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                _ = probes.tick() => self.probe(),
                () = until(waits) => {}
                Some(done) = dones.recv() => {
                    self.handle(done);
                    // Whatever else is over makes room for the same claim.
                    while let Ok(done) = dones.try_recv() {
                        self.handle(done);
                    }
                }
                deliveries = consumer.next_batch(BATCH), if self.aside <= ASIDE => match deliveries {
                    Some(deliveries) => self.buffer(deliveries).await,
                    None => return shutdown.cancelled().await,
                },
            }
            self.heed_outages();
            waits = self.start_claims();
            self.under_way.set(self.scheduler.in_flight() as f64);
        }
    }

    async fn buffer(&mut self, deliveries: Vec<Delivery>) {
        for delivery in deliveries {
            match delivery.envelope.group {
                Some(subscription) => {
                    let (id, span) = (delivery.envelope.id.into(), spans::message(self.lane, &delivery));
                    let message = Message::new(delivery.receipt, span);
                    self.scheduler.arrive(subscription, id, message);
                }
                // Not a message of this lane: the archiver shows it to the operators.
                None => {
                    let _ = delivery.receipt.reject().await;
                }
            }
        }
        let over = self.scheduler.overflow();
        self.put_aside(over, SpillReason::Busy);
    }

    /// Puts notifications back into the database.
    pub(crate) fn put_aside(&mut self, over: Vec<Turn<Message>>, why: SpillReason) {
        if over.is_empty() {
            return;
        }
        self.settling += 1;
        self.aside += over.len();
        let claimer = self.claimer.clone();
        let mut subscriptions: Vec<Uuid> = over.iter().map(|turn| turn.subscription).collect();
        subscriptions.sort_unstable();
        subscriptions.dedup();
        let putting = UnderWay::new(Done::PutAside(subscriptions, over.len()), self.done.clone());
        tokio::spawn(async move {
            spill(&claimer, over, why).await;
            drop(putting);
        });
    }

    /// Starts what may start; returns when to look again, if some may then.
    fn start_claims(&mut self) -> Option<Instant> {
        let mut waits = None;
        while self.claiming < CLAIMS {
            let now = Instant::now();
            waits = self.linger.wait(now);
            if waits.is_some() {
                break;
            }
            let turns = self.scheduler.take(BATCH);
            if turns.is_empty() {
                break;
            }
            self.linger.begin(now, turns.len());
            self.claiming += 1;
            let claimer = self.claimer.clone();
            let batch = Batch::begin(spans::CLAIM, turns.iter().map(|turn| &turn.message.span));
            let mut ids: Vec<NotificationId> = turns.iter().map(|turn| turn.id).collect();
            ids.sort_unstable();
            ids.dedup();
            let claiming = UnderWay::new(Done::Claimed(turns, None), self.done.clone());
            tokio::spawn(async move {
                let claimed = claimer.claim(&ids).await;
                batch.end();
                claiming.ended(claimed);
            });
        }
        while self.fetching < CLAIMS {
            // Together: one by one, ten thousand with a little each would cost as many statements as notifications.
            let fetches = self.scheduler.fetches(BATCH);
            if fetches.is_empty() {
                break;
            }
            self.fetching += 1;
            let claimer = self.claimer.clone();
            let fetching = UnderWay::new(Done::Fetched(fetches.clone(), None), self.done.clone());
            tokio::spawn(async move {
                let started = SystemTime::now();
                let claimed = match claimer.fetch(&fetches).await {
                    Some(claimed) => {
                        spans::fetched(&claimed.claims.claimed, started);
                        Some(claimed)
                    }
                    None => claimer.ask_again(&fetches).await,
                };
                fetching.ended(claimed);
            });
        }
        waits
    }

    fn handle(&mut self, done: Done) {
        match done {
            Done::Attempted(subscription) => self.scheduler.release(subscription, 1),
            Done::Settled => self.settling -= 1,
            Done::PutAside(subscriptions, count) => {
                self.settling -= 1;
                self.aside -= count;
                for subscription in subscriptions {
                    self.scheduler.note_put_aside(subscription);
                }
            }
            Done::Claimed(turns, claimed) => {
                self.claiming -= 1;
                self.begin_turns(turns, claimed);
            }
            Done::Fetched(fetches, claimed) => {
                self.fetching -= 1;
                let claimed = claimed.unwrap_or_default();
                let mut used: HashMap<Uuid, usize> = HashMap::new();
                for notification in &claimed.claims.claimed {
                    *used.entry(notification.subscription_id).or_default() += 1;
                }
                for fetch in fetches {
                    let subscription = fetch.subscription;
                    let used = used.get(&subscription).copied().unwrap_or(0);
                    let more = claimed.more.contains(&subscription);
                    self.scheduler.fetched(fetch, used, more);
                }
                self.begin(claimed, &mut HashMap::new());
            }
            Done::Probed(fetch, claimed) => self.begin_probe(fetch, claimed),
        }
    }

    /// Begins what was claimed of some turns; the others give their slots back, and their messages have nothing more to
    /// say.
    fn begin_turns(&mut self, turns: Vec<Turn<Message>>, claimed: Option<Claimed>) {
        let stopped = claimed.is_none();
        let claimed = claimed.unwrap_or_default();
        let mut messages: HashMap<NotificationId, Message> = HashMap::new();
        let mut settled = Vec::new();
        let mut slots: HashMap<Uuid, usize> = HashMap::new();
        for turn in turns {
            *slots.entry(turn.subscription).or_default() += 1;
            // Two messages about one notification: the second has nothing to say.
            settled.extend(messages.insert(turn.id, turn.message));
        }
        for notification in &claimed.claims.claimed {
            if let Some(slots) = slots.get_mut(&notification.subscription_id) {
                *slots = slots.saturating_sub(1);
            }
            if notification.backlog {
                self.scheduler.note_backlog(notification.subscription_id);
            }
        }
        for (subscription, unused) in slots {
            self.scheduler.release(subscription, unused);
        }
        self.begin(claimed, &mut messages);
        settled.extend(messages.into_values());
        if settled.is_empty() {
            return;
        }
        self.settling += 1;
        let done = self.done.clone();
        tokio::spawn(async move {
            for message in &mut settled {
                spans::not_attempted(&mut message.span, "not_claimed");
            }
            if stopped {
                for message in settled {
                    message.requeue().await;
                }
            } else {
                Message::ack_all(settled).await;
            }
            let _ = done.send(Done::Settled);
        });
    }

    pub(crate) fn begin(&self, claimed: Claimed, messages: &mut HashMap<NotificationId, Message>) {
        let until = claimed.until.unwrap_or_else(Instant::now);
        for notification in claimed.claims.claimed {
            let message = messages
                .remove(&notification.id)
                .unwrap_or_else(|| Message::none(spans::backlog(&notification)));
            let target = claimed.targets.get(&notification.subscription_id).cloned();
            let slot = UnderWay::new(Done::Attempted(notification.subscription_id), self.done.clone());
            if let Ok(lag) = (self.tools.clock.now() - notification.accepted_at).to_std()
                && notification.attempts.total == 1
                && !notification.again
            {
                Metric::DeliveryLag.record_duration(lag);
            }
            let (tools, policy, outbox) = (self.tools.clone(), self.policy, self.outbox.clone());
            let outages = self.outages.clone();
            tokio::spawn(async move {
                let attempt = attempt::make(
                    &tools,
                    &outages,
                    &policy,
                    notification,
                    target,
                    until,
                    &message.span,
                );
                let made = attempt.await;
                // The completer outlives the attempts; without it the lease finds the notification.
                let _ = outbox.send(AttemptResult { made, message }).await;
                drop(slot);
            });
        }
    }

    fn is_busy(&self) -> bool {
        self.claiming + self.fetching + self.settling + self.scheduler.in_flight() > 0
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// Puts notifications back into the database, for as long as it takes; after the stop their messages go back instead.
async fn spill(claimer: &Claimer, over: Vec<Turn<Message>>, why: SpillReason) {
    let over = over.into_iter().map(|turn| (turn.id, turn.message));
    let (ids, mut messages): (Vec<NotificationId>, Vec<Message>) = over.unzip();
    for message in &mut messages {
        spans::not_attempted(&mut message.span, "sidelined");
    }
    let tools = &claimer.tools;
    let count = loop {
        let spilling = tools.store.spill_notifications(&ids, why, tools.clock.now());
        match store::within(SPILL_LIMIT, spilling).await {
            Ok(count) => break count,
            Err(error) if error.is_transient() => {
                tracing::warn!(error = error_chain(&error), "cannot put notifications aside");
            }
            Err(error) => {
                let count = ids.len();
                tracing::error!(
                    error = error_chain(&error),
                    count,
                    "the database refuses to put notifications aside"
                );
                break spill_singly(claimer, &ids, why).await;
            }
        }
        if paused(&claimer.stop).await.is_none() {
            for message in messages {
                message.requeue().await;
            }
            return;
        }
    };
    if why == SpillReason::Busy {
        Metric::NotificationsSidelined.increment(count);
    }
    Message::ack_all(messages).await;
}

/// Puts each back by itself, so that one that the database refuses for good keeps neither the others nor, as one of those that are on their
/// way for ever, the reading. What is not put back is found again by its lease. Returns how many were.
async fn spill_singly(claimer: &Claimer, ids: &[NotificationId], why: SpillReason) -> u64 {
    let tools = &claimer.tools;
    let spill_one = |id| async move {
        let now = tools.clock.now();
        tools.store.spill_notifications(&[id], why, now).await
    };
    let spilled = store::singly(SPILL_LIMIT, ids, spill_one, |id, error| {
        tracing::error!(%id, error = error_chain(&error), "passed over one that could not be put aside");
    });
    spilled.await.into_iter().sum()
}
