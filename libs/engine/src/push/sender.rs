//! The middle stage: claimed pushes go to Swrve, one start at a time, on a thread of their own.
//!
//! The rules of the original service hold: at most `pool_size` sends are in flight, and when all are taken the reader
//! sends one itself and reads nothing meanwhile.

use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use domain::clock::Clock;
use domain::push::{HoldDecision, PushId, RetryPolicy, SendOutcome};
use futures::FutureExt;
use http_client::{Pacer, PreparedPush, Reply};
use leadership::Validity;
use lifecycle::error_chain;
use store::push::{ClaimedPush, Release};
use telemetry::Metric;
use telemetry::pace::Answer;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::health_watch::HealthWatch;
use super::plan::{Plan, Planner};
use super::result::complete;
use super::spans;
use super::starts::Starts;
use super::work::{AttemptResult, Work};

/// How often a fault of ours is told in the log while it lasts.
const FAULT_TOLD_EVERY: Duration = Duration::from_secs(5);

/// What the sender needs; it is moved to the sender's thread.
pub(crate) struct Sender {
    pub(crate) planner: Planner,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) policy: RetryPolicy,
    /// Whether a push is tried again when Swrve does not answer.
    pub(crate) retry_on_timeout: bool,
    pub(crate) delay: Duration,
    pub(crate) pool_size: usize,
    pub(crate) validity: Validity,
    pub(crate) starts: Starts,
    pub(crate) health_watch: Arc<HealthWatch>,
    /// When the log last told of a fault of ours.
    pub(crate) fault_told: Mutex<Option<Instant>>,
}

/// The running sender, as the lane sees it.
pub(crate) struct Running {
    stop: CancellationToken,
    no_more_starts: CancellationToken,
    finished: Option<oneshot::Receiver<()>>,
}

impl Running {
    /// Starts no further send; what is still claimed is handed back.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until no send will start any more.
    pub(crate) async fn no_more_starts(&self) {
        self.no_more_starts.cancelled().await;
    }

    /// Completes when the thread ends without having been asked to.
    pub(crate) async fn failed(&self) {
        self.no_more_starts.cancelled().await;
    }

    /// Waits until every send has its outcome.
    pub(crate) async fn finished(&mut self) {
        if let Some(finished) = self.finished.take() {
            // An error means that the thread is gone, which is what is waited for.
            let _ = finished.await;
        }
    }
}

/// Starts the sender on a thread and runtime of its own. It ends when `inbox` is closed or it is stopped.
pub(crate) fn spawn(
    sender: Sender,
    inbox: mpsc::Receiver<Work>,
    outbox: mpsc::Sender<AttemptResult>,
) -> io::Result<Running> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (stop, no_more_starts) = (CancellationToken::new(), CancellationToken::new());
    let (done, finished) = oneshot::channel();
    let guard = no_more_starts.clone().drop_guard();
    let stopped = stop.clone();
    std::thread::Builder::new()
        .name("push-sender".to_owned())
        .spawn(move || {
            let tasks = TaskTracker::new();
            runtime.block_on(async {
                match Pacer::new(sender.delay) {
                    Ok(pacer) => {
                        Loop::new(sender, pacer, outbox, stopped, tasks.clone())
                            .run(inbox)
                            .await
                    }
                    Err(error) => tracing::error!(error = error_chain(&error), "the sender has no pacer"),
                }
                drop(guard);
                tasks.close();
                tasks.wait().await;
            });
            // A lane that was dropped does not listen.
            let _ = done.send(());
        })?;
    Ok(Running {
        stop,
        no_more_starts,
        finished: Some(finished),
    })
}

struct Loop {
    sender: Arc<Sender>,
    pacer: Pacer,
    pool: Arc<Semaphore>,
    outbox: mpsc::Sender<AttemptResult>,
    stop: CancellationToken,
    tasks: TaskTracker,
    in_flight: metrics::Gauge,
    smallest_gap: Option<Duration>,
}

impl Loop {
    fn new(
        sender: Sender,
        mut pacer: Pacer,
        outbox: mpsc::Sender<AttemptResult>,
        stop: CancellationToken,
        tasks: TaskTracker,
    ) -> Self {
        // The last start of the leader before may lie a moment back.
        pacer.forbid_before(Instant::now() + sender.delay);
        let pool = Arc::new(Semaphore::new(sender.pool_size));
        Self {
            sender: Arc::new(sender),
            pacer,
            pool,
            outbox,
            stop,
            tasks,
            in_flight: Metric::PushSendsInFlight.gauge(&[]),
            smallest_gap: None,
        }
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<Work>) {
        while let Some(work) = inbox.recv().await {
            let stopped = self.stop.is_cancelled() || !self.sender.may_start(work.is_probe);
            let result = if stopped || Instant::now() >= work.send_before {
                hand_back(work)
            } else {
                match self.sender.planner.plan_safely(&work.push) {
                    Plan::Send(request) => match self.send(work, *request).await {
                        Some(work) => hand_back(work),
                        None => continue,
                    },
                    Plan::End(outcome) => {
                        let unsent = Reply {
                            elapsed: Duration::ZERO,
                            status: None,
                            outcome,
                        };
                        self.sender.ended(work, unsent)
                    }
                    Plan::Release(release) => AttemptResult::Released(release, work.message),
                }
            };
            // The completer outlives the sender; without it the lease finds the push.
            let _ = self.outbox.send(result).await;
        }
    }

    /// Sends when it is this push's turn; gives the work back when it may not start any more.
    async fn send(&mut self, work: Work, mut request: PreparedPush) -> Option<Work> {
        let permit = self.pool.clone().try_acquire_owned().ok();
        let (sender, id) = (Arc::clone(&self.sender), work.push.id);
        let started = Arc::new(OnceLock::new());
        let start_of_this = Arc::clone(&started);
        let hand_over = request.hand_over(move || sender.may_hand_over(id, start_of_this.get()));
        let turn = self.pacer.turn().await;
        if self.stop.is_cancelled() || !self.sender.may_start(work.is_probe) {
            return Some(work);
        }
        let start = turn.start();
        let _ = started.set(start.at);
        let mut sending = Box::pin(attempt(self.sender.clone(), work, request));
        // Polled here and now: spawned, it would start only after whatever this thread does next.
        let polled = futures::poll!(&mut sending);
        self.pacer.watch(hand_over);
        self.observe(start.gap, permit.is_none());
        match polled {
            Poll::Ready(result) => {
                let _ = self.outbox.send(result).await;
            }
            Poll::Pending => self.see_through(sending, permit).await,
        }
        None
    }

    /// Leaves a started send to the pool; or, when all of the pool is taken, lets the reader see it through itself, which
    /// reads nothing until it has the answer.
    async fn see_through(
        &self,
        mut sending: Pin<Box<impl Future<Output = AttemptResult> + Send + 'static>>,
        permit: Option<OwnedSemaphorePermit>,
    ) {
        let (outbox, in_flight) = (self.outbox.clone(), self.in_flight.clone());
        let Some(permit) = permit else {
            tokio::select! {
                result = &mut sending => {
                    let _ = outbox.send(result).await;
                }
                // Nothing will start any more, and a successor waiting to start must not wait for this answer.
                () = self.stop.cancelled() => {
                    self.tasks.spawn(async move {
                        let _ = outbox.send(sending.await).await;
                    });
                }
            }
            return;
        };
        in_flight.increment(1);
        self.tasks.spawn(async move {
            let result = sending.await;
            drop(permit);
            in_flight.decrement(1);
            let _ = outbox.send(result).await;
        });
    }

    fn observe(&mut self, gap: Option<Duration>, by_the_reader: bool) {
        let in_flight = self.sender.pool_size - self.pool.available_permits() + usize::from(by_the_reader);
        let second = self.sender.clock.now().timestamp();
        telemetry::pace::note(second, gap, u32::try_from(in_flight).unwrap_or(u32::MAX));
        let Some(gap) = gap else { return };
        Metric::PushSendGap.record_duration(gap);
        if self.smallest_gap.is_none_or(|smallest| gap < smallest) {
            self.smallest_gap = Some(gap);
            Metric::PushSendGapMin.set(gap.as_secs_f64());
        }
    }
}

/// One attempt from its start to its ending. A panic inside is an outcome like any other; what the term's end overtook
/// on its way to the connection is handed back.
async fn attempt(sender: Arc<Sender>, work: Work, mut request: PreparedPush) -> AttemptResult {
    let push = &work.push;
    let span = spans::send(&work, &mut request);
    let started = Instant::now();
    let reply = AssertUnwindSafe(request.send()).catch_unwind().await;
    let reply = reply.unwrap_or_else(|_| {
        Some(Reply {
            elapsed: started.elapsed(),
            status: None,
            outcome: SendOutcome::Internal {
                chain: "the attempt panicked; see the log".to_owned(),
            },
        })
    });
    let Some(reply) = reply else {
        let trace_id = span.trace_id();
        tracing::info!(push.id = %push.id, trace_id, "the term ended before the send had its connection");
        return hand_back(work);
    };
    let outcome = &reply.outcome;
    spans::answered(span, reply.status, outcome);
    Metric::SwrveResponse.record_duration(reply.elapsed);
    count(outcome);
    if let Some(answer) = answer(outcome) {
        telemetry::pace::note_answer(sender.clock.now().timestamp(), answer);
    }
    tracing::debug!(push.id = %push.id, outcome = ?outcome, "attempt ended");
    if let SendOutcome::NotTried { chain } = outcome {
        return sender.put_off(work, chain);
    }
    sender.ended(work, reply)
}

impl Sender {
    /// While Swrve is out of order, only probes may start.
    fn may_start(&self, is_probe: bool) -> bool {
        self.validity.holds() && (is_probe || !self.health_watch.holds())
    }

    /// The last look at the term before the bytes of a send are written. The log that proves the pace is told first.
    fn may_hand_over(&self, push: PushId, started: Option<&Instant>) -> bool {
        if !self.validity.holds() {
            return false;
        }
        if let Some(started) = started {
            self.starts.tell(push, *started);
        }
        self.validity.holds()
    }

    /// Hands a push back that could not be tried for want of something of our own: that is no attempt.
    fn put_off(&self, work: Work, lacking: &str) -> AttemptResult {
        let mut told = self.fault_told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|at| at.elapsed() >= FAULT_TOLD_EVERY) {
            *told = Some(Instant::now());
            tracing::warn!(
                error = lacking,
                "pushes cannot be tried for want of something of our own; they are handed back and tried later"
            );
        }
        let release = Release {
            id: work.push.id,
            lease_token: work.push.lease_token,
            deferred_to: None,
        };
        AttemptResult::PutOff(release, work.message)
    }

    /// What failed because Swrve is out of order is handed back like what was not sent.
    fn ended(&self, work: Work, mut reply: Reply) -> AttemptResult {
        let push = &work.push;
        self.observe(push, &reply.outcome);
        let decision = self
            .health_watch
            .observe(push.id, &reply.outcome, self.clock.now());
        if decision == HoldDecision::Spared {
            Metric::PushAttemptsSpared.increment(1);
            return hand_back(work);
        }
        if !self.retry_on_timeout {
            reply.outcome = reply.outcome.without_retry_on_timeout();
        }
        AttemptResult::Completed(
            complete(push, reply, &self.policy, self.clock.now()),
            work.message,
        )
    }

    /// How long an immediate push was under way. One with a schedule has waited because it was asked to, and one that was
    /// replayed because no operator had looked.
    fn observe(&self, push: &ClaimedPush, outcome: &SendOutcome) {
        if *outcome == SendOutcome::Delivered && push.cron_expression.is_none() && push.replayed_after == 0 {
            let since = self.clock.now() - push.id.created_at();
            Metric::PushDelivery.record_duration(since.to_std().unwrap_or_default());
        }
    }
}

fn count(outcome: &SendOutcome) {
    match outcome {
        SendOutcome::Delivered => Metric::SwrveAnswers.increment_with(&[("status", "2xx")], 1),
        SendOutcome::Refused { status, .. } => {
            Metric::SwrveAnswers.increment_with(&[("status", status.to_string().as_str())], 1);
        }
        SendOutcome::Unreachable { .. } => Metric::SwrveAnswers.increment_with(&[("status", "none")], 1),
        SendOutcome::NotTried { .. } => Metric::OwnFaults.increment_with(&[("lane", "push")], 1),
        SendOutcome::PrototypeKeyMissing { .. } | SendOutcome::Internal { .. } => {}
    }
}

/// What Swrve said, if it was asked.
fn answer(outcome: &SendOutcome) -> Option<Answer> {
    match outcome {
        SendOutcome::Delivered => Some(Answer::Taken),
        SendOutcome::Refused { status, .. } => Some(Answer::of(*status)),
        SendOutcome::Unreachable { .. } => Some(Answer::Missing),
        SendOutcome::NotTried { .. }
        | SendOutcome::PrototypeKeyMissing { .. }
        | SendOutcome::Internal { .. } => None,
    }
}

fn hand_back(work: Work) -> AttemptResult {
    let release = Release {
        id: work.push.id,
        lease_token: work.push.lease_token,
        deferred_to: None,
    };
    AttemptResult::Released(release, work.message)
}
