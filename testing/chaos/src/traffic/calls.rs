//! Callers as they should be: what they hand in has a key of its own, and what was not answered is asked again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::{Client, StatusCode, header};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::orders::{EventOrder, PushOrder};
use super::senders::Post;
use super::user_agents::Channel;
use crate::ledger::{HandedIn, Ledger};

/// Pause of a caller that was not answered.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// Requests of each kind that are under way at once; further ones wait for one of them.
const CALLERS: usize = 64;

/// The way in.
#[derive(Debug, Clone)]
pub struct Door {
    /// Carries requests.
    pub http: Client,
    /// The key of callers.
    pub key: String,
    /// All instances of ingest-api.
    pub addresses: Vec<SocketAddr>,
    /// Where answers are written down.
    pub ledger: Arc<Ledger>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Push,
    Event,
}

struct Order {
    kind: Kind,
    key: String,
    body: String,
}

/// Callers at work.
#[derive(Debug)]
pub struct Traffic {
    stop: CancellationToken,
    give_up: CancellationToken,
    tasks: JoinSet<()>,
    underway: Arc<AtomicU64>,
}

impl Traffic {
    /// So many pushes in a second, and a third as many events and messages of Web Push, until it is told to end.
    pub fn start(door: &Door, (post, channels): (&Post, &[Channel]), rate: u32) -> Self {
        let mut it = Self {
            stop: CancellationToken::new(),
            give_up: CancellationToken::new(),
            tasks: JoinSet::new(),
            underway: Arc::new(AtomicU64::new(0)),
        };
        for (kind, rate) in [(Kind::Push, rate), (Kind::Event, (rate / 3).max(1))] {
            let turns = Turns {
                door: door.clone(),
                stop: it.stop.clone(),
                give_up: it.give_up.clone(),
                underway: Arc::clone(&it.underway),
            };
            it.tasks.spawn(turns.hand_in(kind, rate));
        }
        let ends = (&it.stop, &it.give_up);
        post.send(channels, (rate / 3).max(1), ends, &it.underway, &mut it.tasks);
        it
    }

    /// Hands in nothing new.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// How many wait for an answer.
    pub fn underway(&self) -> u64 {
        self.underway.load(Ordering::Relaxed)
    }

    /// Ends what still waits, and waits for the end.
    pub async fn end(mut self) {
        self.stop();
        self.give_up.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

struct Turns {
    door: Door,
    stop: CancellationToken,
    give_up: CancellationToken,
    underway: Arc<AtomicU64>,
}

impl Turns {
    async fn hand_in(self, kind: Kind, rate: u32) {
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let callers = Arc::new(Semaphore::new(CALLERS));
        let mut tasks = JoinSet::new();
        for number in 0_u64.. {
            let permit = tokio::select! {
                () = self.stop.cancelled() => break,
                permit = async {
                    ticks.tick().await;
                    Arc::clone(&callers).acquire_owned().await
                } => permit,
            };
            while tasks.try_join_next().is_some() {}
            let (door, give_up, underway) = (
                self.door.clone(),
                self.give_up.clone(),
                Arc::clone(&self.underway),
            );
            let order = Order::number(kind, number);
            door.handed_in(kind).tried += 1;
            underway.fetch_add(1, Ordering::Relaxed);
            tasks.spawn(async move {
                give_up.run_until_cancelled(door.insist(&order, number)).await;
                underway.fetch_sub(1, Ordering::Relaxed);
                drop(permit);
            });
        }
        while tasks.join_next().await.is_some() {}
    }
}

impl Order {
    fn number(kind: Kind, number: u64) -> Self {
        match kind {
            Kind::Push => {
                let push = PushOrder::number(number);
                Self {
                    kind,
                    body: push.body(),
                    key: push.user,
                }
            }
            Kind::Event => {
                let event = EventOrder::number(number);
                Self {
                    kind,
                    body: event.body(),
                    key: event.id,
                }
            }
        }
    }
}

impl Door {
    fn handed_in(&self, kind: Kind) -> std::sync::MutexGuard<'_, HandedIn> {
        match kind {
            Kind::Push => self.ledger.pushes(),
            Kind::Event => self.ledger.events(),
        }
    }

    /// Hands something in until it is accepted, one instance after the other.
    async fn insist(&self, order: &Order, number: u64) {
        for turn in number.. {
            let asked = Instant::now();
            self.handed_in(order.kind).requests += 1;
            let index = usize::try_from(turn % self.addresses.len() as u64).unwrap_or(0);
            if let Some(id) = self.ask(order, self.addresses[index]).await {
                self.handed_in(order.kind).accepted.insert(order.key.clone(), id);
                return;
            }
            tokio::time::sleep_until(asked + ASK_AGAIN).await;
        }
    }

    async fn ask(&self, order: &Order, address: SocketAddr) -> Option<Uuid> {
        let path = match order.kind {
            Kind::Push => "push",
            Kind::Event => "events",
        };
        let mut request = self
            .http
            .post(format!("http://{address}/{path}"))
            .bearer_auth(&self.key)
            .header(header::CONTENT_TYPE, "application/json")
            .body(order.body.clone());
        if order.kind == Kind::Push {
            request = request.header("Idempotency-Key", &order.key);
        }
        let response = request.send().await.ok()?;
        match response.status() {
            StatusCode::ACCEPTED => {}
            // Not now: the database is away, or the body was late.
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::REQUEST_TIMEOUT => return None,
            status => {
                let text = response.text().await.unwrap_or_default();
                self.ledger
                    .complain(format!("{} was answered {status}: {text}", order.key));
                return None;
            }
        }
        let location = response
            .headers()
            .get(header::LOCATION)
            .and_then(|it| it.to_str().ok());
        let id = location.and_then(|location| location.rsplit('/').next()?.parse().ok());
        if id.is_none() {
            self.ledger
                .complain(format!("{} was accepted without a Location", order.key));
        }
        id
    }
}
