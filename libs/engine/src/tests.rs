//! A third lane, in memory, on the pieces that both lanes share: what it brings itself is a queue, a table and an attempt. It shows what
//! those pieces promise without a broker and a database.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use telemetry::traces::Span;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::claim::{Claiming, claim};
use crate::message::Message;
use crate::record::{gather, record_all};

const BATCH: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Claimed,
    Sent,
}

/// The queue: what waits in it, and what was taken out of it and not settled yet.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<u64>,
    unsettled: Vec<u64>,
}

/// The table, and how the database does: so many of the next calls find it away, and it refuses all that has to do with these for good.
#[derive(Default)]
struct Table {
    rows: BTreeMap<u64, State>,
    attempts: BTreeMap<u64, u32>,
    away: usize,
    refused: BTreeSet<u64>,
    paused: bool,
}

impl Table {
    fn answers(&mut self, ids: &[u64]) -> Result<(), store::Error> {
        if self.away > 0 {
            self.away -= 1;
            let limit = Duration::from_secs(1);
            return Err(store::Error::Silent { limit });
        }
        match ids.iter().find(|id| self.refused.contains(id)) {
            Some(id) => Err(store::Error::Corrupt {
                what: "row",
                found: id.to_string(),
            }),
            None => Ok(()),
        }
    }

    /// Those of these that are in one state are in another one now.
    fn change(&mut self, ids: &[u64], from: State, to: State) -> Result<Vec<u64>, store::Error> {
        self.answers(ids)?;
        let changed: Vec<u64> = ids
            .iter()
            .copied()
            .filter(|id| self.rows.get(id) == Some(&from))
            .collect();
        self.rows.extend(changed.iter().map(|id| (*id, to)));
        Ok(changed)
    }
}

#[derive(Clone, Default)]
struct Lane {
    queue: Arc<Mutex<Queue>>,
    arrived: Arc<Notify>,
    table: Arc<Mutex<Table>>,
}

impl Claiming for Lane {
    const WHAT: &'static str = "numbers";
    const LIMIT: Duration = Duration::from_secs(1);
    type Id = u64;
    type Claimed = Vec<u64>;

    async fn claim_together(&self, ids: &[u64]) -> Result<Vec<u64>, store::Error> {
        let mut table = self.table.lock().unwrap();
        if table.paused {
            return Ok(Vec::new());
        }
        table.change(ids, State::Waiting, State::Claimed)
    }

    fn took_nothing(claimed: &Vec<u64>) -> bool {
        claimed.is_empty()
    }

    async fn any_waits(&self, ids: &[u64]) -> Result<bool, store::Error> {
        let table = self.table.lock().unwrap();
        Ok(ids.iter().any(|id| table.rows.get(id) == Some(&State::Waiting)))
    }

    async fn may_claim(&self) -> Result<bool, store::Error> {
        Ok(!self.table.lock().unwrap().paused)
    }

    fn sum(claims: Vec<Vec<u64>>) -> Vec<u64> {
        claims.concat()
    }
}

impl Lane {
    /// With what is queued here, a row for each.
    fn with(ids: impl IntoIterator<Item = u64>) -> Self {
        let lane = Self::default();
        for id in ids {
            lane.queue.lock().unwrap().waiting.push_back(id);
            lane.table.lock().unwrap().rows.insert(id, State::Waiting);
        }
        lane
    }

    /// Claims, attempts and records until it is stopped; what has begun by then is finished.
    async fn run(&self, stop: &CancellationToken) {
        let (work, claimed) = mpsc::channel(BATCH);
        let (endings, outbox) = mpsc::channel(BATCH);
        tokio::join!(
            self.claim_messages(work, stop),
            self.attempt(claimed, endings),
            self.record(outbox)
        );
    }

    async fn claim_messages(&self, work: mpsc::Sender<(u64, Message<u64>)>, stop: &CancellationToken) {
        loop {
            let arrived = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                arrived = self.next_batch() => arrived,
            };
            let mut messages = HashMap::new();
            for id in arrived {
                if let Some(second) = messages.insert(id, Message::new(id, Span::none())) {
                    self.settle(&second, false);
                }
            }
            let ids: Vec<u64> = messages.keys().copied().collect();
            let Some((claimed, _)) = claim(self, &ids, stop).await else {
                messages
                    .into_values()
                    .for_each(|message| self.settle(&message, true));
                return;
            };
            for id in claimed {
                let message = messages.remove(&id).unwrap();
                work.send((id, message)).await.unwrap();
            }
            messages
                .into_values()
                .for_each(|message| self.settle(&message, false));
        }
    }

    async fn attempt(
        &self,
        mut claimed: mpsc::Receiver<(u64, Message<u64>)>,
        endings: mpsc::Sender<(u64, Message<u64>)>,
    ) {
        while let Some((id, message)) = claimed.recv().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
            *self.table.lock().unwrap().attempts.entry(id).or_default() += 1;
            endings.send((id, message)).await.unwrap();
        }
    }

    async fn record(&self, mut outbox: mpsc::Receiver<(u64, Message<u64>)>) {
        let mut batch = Vec::new();
        while outbox.recv_many(&mut batch, BATCH).await > 0 {
            let write = |ids: Arc<[u64]>| async move {
                let recorded = self
                    .table
                    .lock()
                    .unwrap()
                    .change(&ids, State::Claimed, State::Sent)?;
                Ok(HashSet::from_iter(recorded))
            };
            let endings = std::mem::take(&mut batch);
            let messages = record_all(None, endings, |id| *id, write, |_, _, _| {}).await;
            messages
                .into_iter()
                .for_each(|message| self.settle(&message, false));
        }
    }

    async fn next_batch(&self) -> Vec<u64> {
        loop {
            let arrived = self.arrived.notified();
            if let mut queue = self.queue.lock().unwrap()
                && !queue.waiting.is_empty()
            {
                let count = queue.waiting.len().min(BATCH);
                let taken: Vec<u64> = queue.waiting.drain(..count).collect();
                queue.unsettled.extend(&taken);
                return taken;
            }
            arrived.await;
        }
    }

    fn settle(&self, message: &Message<u64>, requeue: bool) {
        let id = message.receipt.unwrap();
        let mut queue = self.queue.lock().unwrap();
        let place = queue.unsettled.iter().position(|other| *other == id).unwrap();
        queue.unsettled.remove(place);
        if requeue {
            queue.waiting.push_back(id);
        }
    }

    /// Runs until nothing is in the queue or taken out of it, then stops it.
    async fn run_until_settled(&self) {
        let stop = CancellationToken::new();
        let settled = async {
            loop {
                tokio::time::sleep(Duration::from_millis(5)).await;
                let queue = self.queue.lock().unwrap();
                if queue.waiting.is_empty() && queue.unsettled.is_empty() {
                    return stop.cancel();
                }
            }
        };
        tokio::join!(self.run(&stop), settled);
    }

    fn states(&self, state: State) -> Vec<u64> {
        let table = self.table.lock().unwrap();
        let rows = table.rows.iter().filter(|(_, other)| **other == state);
        rows.map(|(id, _)| *id).collect()
    }

    fn attempted_once(&self) -> Vec<u64> {
        let table = self.table.lock().unwrap();
        let once = table.attempts.values().all(|count| *count == 1);
        assert!(once, "{:?}", table.attempts);
        table.attempts.keys().copied().collect()
    }
}

#[tokio::test]
async fn everything_is_sent_once_although_messages_repeat_and_the_database_is_away_now_and_then() {
    let lane = Lane::with((0..50).chain(0..50));
    lane.table.lock().unwrap().away = 3;
    let losing = async {
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(70)).await;
            lane.table.lock().unwrap().away = 1;
        }
    };
    tokio::join!(lane.run_until_settled(), losing);
    assert_eq!(lane.states(State::Sent), Vec::from_iter(0..50));
    assert_eq!(lane.attempted_once(), Vec::from_iter(0..50));
}

#[tokio::test]
async fn one_that_is_refused_for_good_holds_up_no_other() {
    let lane = Lane::with(0..20);
    lane.table.lock().unwrap().refused = BTreeSet::from([3, 11]);
    lane.run_until_settled().await;
    assert_eq!(lane.states(State::Waiting), [3, 11]);
    assert_eq!(lane.states(State::Sent).len(), 18);
    assert_eq!(lane.attempted_once().len(), 18);
}

#[tokio::test]
async fn a_stop_hands_back_what_is_not_claimed_and_finishes_what_is() {
    let lane = Lane::with(0..60);
    let stop = CancellationToken::new();
    let stopping = async {
        tokio::time::sleep(Duration::from_millis(25)).await;
        lane.table.lock().unwrap().away = 1;
        stop.cancel();
    };
    tokio::join!(lane.run(&stop), stopping);
    let (sent, waiting) = (lane.states(State::Sent), lane.states(State::Waiting));
    assert!(!sent.is_empty() && !waiting.is_empty(), "{sent:?} {waiting:?}");
    assert_eq!(sent.len() + waiting.len(), 60);
    assert_eq!(lane.attempted_once(), sent);
    let queue = lane.queue.lock().unwrap();
    assert!(queue.unsettled.is_empty());
    assert_eq!(BTreeSet::from_iter(&queue.waiting), BTreeSet::from_iter(&waiting));
}

#[tokio::test]
async fn a_pause_hands_everything_back() {
    let lane = Lane::with(0..20);
    lane.table.lock().unwrap().paused = true;
    lane.run(&CancellationToken::new()).await;
    assert_eq!(lane.states(State::Waiting).len(), 20);
    assert_eq!(lane.queue.lock().unwrap().waiting.len(), 20);
    assert_eq!(lane.attempted_once(), Vec::<u64>::new());
}

#[tokio::test]
async fn outcomes_are_gathered_until_a_batch_is_full_or_none_can_come() {
    let (outbox, mut outcomes) = mpsc::channel(BATCH);
    let mut batch = vec![0];
    for outcome in 1..5 {
        outbox.send(outcome).await.unwrap();
    }
    let late = Instant::now() + Duration::from_secs(86_400);
    gather(&mut outcomes, &mut batch, 3, late).await;
    assert_eq!(batch, [0, 1, 2]);
    gather(&mut outcomes, &mut batch, 5, late).await;
    assert_eq!(batch, [0, 1, 2, 3, 4]);
    // The time is over.
    gather(&mut outcomes, &mut batch, BATCH, Instant::now()).await;
    // At a shutdown there is no sender.
    drop(outbox);
    gather(&mut outcomes, &mut batch, BATCH, late).await;
    assert_eq!(batch, [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn an_outcome_that_comes_while_others_are_gathered_wakes_nothing_and_is_taken_when_the_time_is_over() {
    #[derive(Default)]
    struct Wakes(AtomicUsize);
    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (outbox, mut outcomes) = mpsc::channel(BATCH);
    let mut batch = vec![0];
    let wakes = Arc::new(Wakes::default());
    {
        let late = Instant::now() + Duration::from_secs(86_400);
        let mut gathering = pin!(gather(&mut outcomes, &mut batch, BATCH, late));
        let waker = Waker::from(wakes.clone());
        let polled = gathering.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        outbox.send(1).await.unwrap();
    }
    assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
    gather(&mut outcomes, &mut batch, BATCH, Instant::now()).await;
    assert_eq!(batch, [0, 1]);
}
