//! The push lane: standing by, leading, and the order in which a term is taken up and laid down.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use broker::{Broker, ConnectionState, Queue};
use chrono::{DateTime, Utc};
use config::Config;
use domain::clock::Clock;
use domain::push::{RetryPolicy, SwrveWatch, queue_lease};
use http_client::{SwrveClient, SwrveSettings};
use leadership::{Candidate, LaneWatch, Term};
use lifecycle::{Shutdown, error_chain};
use store::Store;
use store::push::{HoldView, SwrveHold};
use telemetry::Metric;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::Error;
use super::backlog::Backlog;
use super::claimer::Claimer;
use super::completer::Completer;
use super::health_watch::HealthWatch;
use super::plan::Planner;
use super::sender::{self, Sender};
use super::starts::Starts;

/// Pushes claimed in one statement: a quarter of a second of sending, so that a claim is never old when its turn comes.
const CLAIM_BATCH: usize = 64;
/// What a claim allows beyond the request itself: waiting for its turn, recording its outcome.
const CLAIM_SLACK: Duration = Duration::from_secs(20);
/// How long the leader may be without the broker before it steps down; a reconnect takes less.
const BROKER_LOSS: Duration = Duration::from_secs(3);

/// How long the database may take to tell or note whether the lane is held.
const HOLD_LIMIT: Duration = Duration::from_secs(2);

/// Everything that the lane needs in every term.
pub struct Lane {
    config: Arc<Config>,
    store: Store,
    broker: Broker,
    clock: Arc<dyn Clock>,
    swrve: SwrveSettings,
    pauses: LaneWatch,
}

/// What the last term of this process leaves to the next: the lane is held in a term of its own.
struct LastTerm {
    epoch: i64,
    /// Since when Swrve had failed everything.
    failing_since: Option<DateTime<Utc>>,
}

impl Lane {
    /// Prepares it; fails when the client of Swrve cannot be set up as configured.
    pub fn new(
        config: Arc<Config>,
        store: Store,
        broker: Broker,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let swrve = SwrveSettings {
            url: config.swrve.url.expose().to_owned(),
            timeout: config.swrve.timeout,
            test: config.swrve.test,
        };
        // Each term makes a client of its own; this one only finds out early whether that will work.
        SwrveClient::new(&swrve).map_err(Error::Swrve)?;
        Ok(Self {
            pauses: LaneWatch::new(store.clone(), store::Lane::Push),
            config,
            store,
            broker,
            clock,
            swrve,
        })
    }

    /// Stands by and leads in turns until shutdown.
    pub async fn lead(self, shutdown: Shutdown) {
        let candidate = Candidate::new(
            self.store.clone(),
            leadership::Settings {
                name: "push".to_owned(),
                ttl: self.config.push.leader.ttl,
                poll: self.config.push.leader.poll,
            },
        );
        Metric::PushLeader.set(0);
        // Without a series from the beginning on, Prometheus would not see the first one as an increase.
        Metric::PushLeaderTakeovers.increment(0);
        Metric::PushPoolSize.set(self.config.pool_size() as f64);
        let mut last = None;
        while let Some(term) = self.next_term(&candidate, &shutdown).await {
            tracing::info!(epoch = term.lease().epoch, "leading the push lane");
            Metric::PushLeader.set(1);
            Metric::PushLeaderEpoch.set(term.lease().epoch as f64);
            Metric::PushLeaderTakeovers.increment(u64::from(term.is_takeover()));
            if let Err(error) = self.serve(term, &mut last, &shutdown).await {
                tracing::error!(error = error_chain(&error), "the push lane could not be served");
                // Another replica may have more luck meanwhile.
                let _ = tokio::time::timeout(self.config.push.leader.ttl, shutdown.cancelled()).await;
            }
            Metric::PushLeader.set(0);
            Metric::PushFailingSince.set(f64::NAN);
            // What the term left behind is found by its leases.
            Metric::PushClaimsInFlight.set(0);
        }
    }

    /// One term. Sends stop first, so that a successor may start; then what is in flight is recorded; the messages are
    /// settled last.
    async fn serve(&self, term: Term, last: &mut Option<LastTerm>, shutdown: &Shutdown) -> Result<(), Error> {
        let (validity, epoch) = (term.validity(), term.lease().epoch);
        let hold = self.hold().await?;
        // What was heard before another process led is of another time.
        let heard = last.take().filter(|last| last.epoch + 1 == epoch);
        let health_watch = Arc::new(HealthWatch::new(match &hold {
            None => SwrveWatch::trusting(),
            Some(hold) if hold.answered_at.is_some() => SwrveWatch::wary(),
            Some(_) => SwrveWatch::holding(heard.and_then(|last| last.failing_since)),
        }));
        let (work, inbox) = mpsc::channel(CLAIM_BATCH);
        let (endings, outbox) = mpsc::channel(4 * CLAIM_BATCH);
        // Not past the grace period: what it cannot record by then is found by its lease.
        let mut completer = AbortOnDropHandle::new(tokio::spawn(self.completer().run(outbox)));
        let mut sender =
            sender::spawn(self.sender(&term, &health_watch)?, inbox, endings).map_err(Error::Sender)?;
        let prefetch = u16::try_from(self.config.pool_size() + 1 + 2 * CLAIM_BATCH).unwrap_or(u16::MAX);
        // The leader does not read the queue before what waits has been sent.
        let mut consumer = hold
            .is_none()
            .then(|| self.broker.consume(Queue::PushReady, prefetch));
        let stop = CancellationToken::new();
        let watch = async {
            let ended = tokio::select! {
                biased;
                () = stop.cancelled() => Ok(()),
                () = validity.ended() => {
                    Metric::LeaseLosses.increment_with(&[("kind", "leader")], 1);
                    Ok(())
                }
                () = shutdown.cancelled() => Ok(()),
                () = self.broker_is_lost() => {
                    tracing::warn!("leaving the push lane to a replica that reaches the broker");
                    Ok(())
                }
                () = self.pauses.paused() => Ok(()),
                () = health_watch.held(), if hold.is_none() => Ok(()),
                () = sender.failed() => Err(Error::SenderEnded),
                _ = &mut completer => Err(Error::CompleterEnded),
            };
            sender.stop();
            stop.cancel();
            if hold.is_none() && health_watch.holds() {
                self.hold_lane(&term, &health_watch).await;
            }
            ended
        };
        let claimer = self.claimer(&term);
        let claiming = async {
            match &mut consumer {
                Some(consumer) => claimer.run(consumer, work, &stop).await,
                None => {
                    let backlog = Backlog {
                        store: &self.store,
                        claimer,
                        health_watch: &health_watch,
                    };
                    backlog.run(work, &stop).await;
                }
            }
            stop.cancel();
        };
        let ((), ended) = tokio::join!(claiming, watch);
        let resigning = async {
            sender.no_more_starts().await;
            term.resign().await;
        };
        let stopping = async {
            if let Some(consumer) = &mut consumer {
                consumer.stop().await;
            }
        };
        tokio::join!(resigning, stopping);
        sender.finished().await;
        if !matches!(ended, Err(Error::CompleterEnded))
            && let Err(error) = completer.await
        {
            tracing::error!(error = error_chain(&error), "the completer failed");
        }
        if let Some(consumer) = consumer {
            consumer.close().await;
        }
        if hold.is_none() && health_watch.holds() {
            self.forgive(&health_watch).await;
        }
        *last = Some(LastTerm {
            epoch,
            failing_since: health_watch.failing_since(),
        });
        ended
    }

    /// The outage that is in force, or is being caught up with.
    async fn hold(&self) -> Result<Option<HoldView>, Error> {
        let holds = store::within(HOLD_LIMIT, self.store.list_holds())
            .await
            .map_err(Error::Hold)?;
        Ok(holds.into_iter().find(|hold| hold.class == store::push::SWRVE))
    }

    /// Notes that the lane is held, which the next term finds. If that cannot be noted, it finds out by itself.
    async fn hold_lane(&self, term: &Term, health_watch: &HealthWatch) {
        let answer = health_watch.last_words();
        tracing::warn!(answer, "Swrve is out of order; the push lane is held and probed");
        let change = self
            .store
            .change_swrve_hold(term.lease(), SwrveHold::Begin(&answer));
        if let Err(error) = store::within(HOLD_LIMIT, change).await {
            tracing::warn!(
                error = error_chain(&error),
                "cannot note that Swrve is out of order"
            );
        }
    }

    /// What failed before it was known that Swrve is out of order is not the fault of those pushes.
    async fn forgive(&self, health_watch: &HealthWatch) {
        let accused = health_watch.accused();
        let forgiving = self.store.forgive_attempts(&accused, self.clock.now());
        if let Err(error) = store::within(HOLD_LIMIT, forgiving).await {
            tracing::warn!(error = error_chain(&error), "some attempts still count");
        }
    }

    /// A replica without the broker would lead and send nothing, beside others that could. No replica leads a paused lane.
    async fn next_term(&self, candidate: &Candidate, shutdown: &Shutdown) -> Option<Term> {
        let mut states = self.broker.state();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return None,
                connected = states.wait_for(ConnectionState::is_connected) => { connected.ok()?; }
            }
            if !self.pauses.opened(shutdown).await {
                return None;
            }
            // Told to stop, as by a shutdown, a candidate does not leave a lease behind that it was just granted.
            let standing_by = shutdown.child();
            let pausing = async {
                self.pauses.paused().await;
                standing_by.trigger();
                std::future::pending().await
            };
            let term = tokio::select! {
                term = candidate.next_term(&standing_by) => term,
                term = pausing => term,
            };
            if term.is_some() || shutdown.is_cancelled() {
                return term;
            }
        }
    }

    /// Completes when the broker has been out of reach for so long that it is worth changing the leader.
    async fn broker_is_lost(&self) {
        let mut states = self.broker.state();
        loop {
            // The sender of states goes with the broker, which outlives every term.
            let _ = states.wait_for(|state| !state.is_connected()).await;
            let back = states.wait_for(ConnectionState::is_connected);
            if tokio::time::timeout(BROKER_LOSS, back).await.is_err() {
                return;
            }
        }
    }

    fn claimer<'a>(&'a self, term: &'a Term) -> Claimer<'a> {
        let lease = self.config.swrve.timeout * 2 + CLAIM_SLACK;
        Claimer {
            store: &self.store,
            leader: term.lease(),
            lease,
            // A send may take its timeout, and its outcome some time to be recorded.
            send_within: lease - self.config.swrve.timeout - CLAIM_SLACK / 2,
            batch: CLAIM_BATCH,
        }
    }

    fn completer(&self) -> Completer {
        let queue = &self.config.push.queue;
        Completer {
            store: self.store.clone(),
            queue_lease: queue_lease(queue.capacity, self.config.swrve.delay),
        }
    }

    fn sender(&self, term: &Term, health_watch: &Arc<HealthWatch>) -> Result<Sender, Error> {
        Ok(Sender {
            planner: Planner {
                swrve: SwrveClient::new(&self.swrve).map_err(Error::Swrve)?,
                push_keys: self.config.swrve.message_prototype_push_keys.clone(),
                clock: self.clock.clone(),
                zone: self.config.push.time_zone,
                grace: self.config.push.cron.grace,
            },
            clock: self.clock.clone(),
            policy: RetryPolicy {
                delay: self.config.push.retry.delay,
                max_attempts: self.config.push.retry.max_attempts,
            },
            retry_on_timeout: self.config.swrve.retry_on_timeout,
            delay: self.config.swrve.delay,
            pool_size: self.config.pool_size(),
            validity: term.validity(),
            starts: Starts::new(term.lease().epoch),
            health_watch: health_watch.clone(),
            fault_told: Mutex::default(),
        })
    }
}
