//! Subscriptions, and the receiver that all of them lead to, each on a path of its own.

use domain::subscription::SubscriptionState;
use encryption::{Sealer, SealingKey};
use signing::Secret;
use simulators::receiver::{Options, Receiver, Rule, Running, SecretFor};
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};
use tokio::net::TcpListener;
use uuid::Uuid;

use super::events::{Event, RESELLERS};

/// A subscription of a test.
#[derive(Debug, Clone)]
pub(crate) struct Subscriber {
    pub(crate) id: Uuid,
    /// Its path at the receiver is named so.
    pub(crate) name: &'static str,
    pub(crate) reseller: &'static str,
    filter: &'static [&'static str],
    pub(crate) state: SubscriptionState,
    quota: Option<i32>,
}

/// The subscriptions of a test.
pub(crate) struct Subscribers {
    pub(crate) receiver: Running,
    pub(crate) all: Vec<Subscriber>,
}

impl Subscriber {
    pub(crate) fn new(name: &'static str, reseller: &'static str, filter: &'static [&'static str]) -> Self {
        Self {
            id: Uuid::nil(),
            name,
            reseller,
            filter,
            state: SubscriptionState::Active,
            quota: None,
        }
    }

    /// Which gets nothing.
    pub(crate) fn deactivated(mut self) -> Self {
        self.state = SubscriptionState::Deactivated;
        self
    }

    /// Which gets so many a day.
    pub(crate) fn daily_quota(mut self, quota: i32) -> Self {
        self.quota = Some(quota);
        self
    }

    pub(crate) fn path(&self) -> String {
        format!("/{}", self.name)
    }

    /// Whether its filter lets the event through, found out in another way than the product's.
    pub(crate) fn matches(&self, event: &Event) -> bool {
        let lets_through = |entry: &&str| match entry.strip_suffix('*') {
            Some(beginning) => event.event_type.starts_with(beginning),
            None => event.event_type == *entry,
        };
        self.reseller == event.reseller && self.filter.iter().any(lets_through)
    }

    async fn make(&mut self, it: &Installation, receiver: &Running, sealer: &Sealer) -> SecretFor {
        let secret = Secret::generate();
        let row = SubscriptionRow::in_state(self.state);
        self.id = row.id();
        let sealed = sealer.seal(self.id, secret.expose_bytes()).expect("it seals");
        let mut row = row
            .reseller(self.reseller)
            .url(&receiver.url(&self.path()))
            .event_types(self.filter)
            .sealed_secret(sealed);
        if let Some(quota) = self.quota {
            row = row.daily_quota(quota);
        }
        row.make(&it.pool).await;
        SecretFor::path(&self.path(), &secret.reveal()).expect("a secret")
    }
}

impl Subscribers {
    /// Some that overlap, of two resellers; every event has one at least.
    pub(crate) async fn usual(it: &Installation) -> Self {
        let [acme, globex] = RESELLERS;
        let all = vec![
            Subscriber::new("everything", acme, &["*"]),
            Subscriber::new("domains", acme, &["domain.*"]),
            Subscriber::new("some", acme, &["contact.deleted", "host.*", "host.deleted"]),
            Subscriber::new("elsewhere", globex, &["*"]),
        ];
        Self::of(it, all).await
    }

    pub(crate) async fn of(it: &Installation, mut all: Vec<Subscriber>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let options = Options {
            worker_threads: 1,
            ..Options::default()
        };
        let receiver = Receiver::start(listener, options).expect("the receiver starts");
        let key = it.config.reseller.secrets.key.as_ref().expect("tests have a key");
        let sealer = Sealer::new(&SealingKey::parse(key.expose()).expect("a key"), &[]);
        let mut secrets = Vec::new();
        for subscriber in &mut all {
            secrets.push(subscriber.make(it, &receiver, &sealer).await);
        }
        receiver.secrets(secrets);
        Self { receiver, all }
    }

    /// How many notifications these events make when all subscriptions are active.
    pub(crate) fn notifications_of(&self, events: &[Event]) -> usize {
        let matching = |event| self.all.iter().filter(|one| one.matches(event)).count();
        events.iter().map(matching).sum()
    }

    pub(crate) fn script(&self, rules: Vec<Rule>) {
        self.receiver.script(rules).expect("a script");
    }

    /// Every notification takes the receiver this long.
    pub(crate) fn answer_after(&self, millis: u64) {
        self.script(vec![Rule {
            delay_millis: Some(millis),
            ..Rule::default()
        }]);
    }

    /// Waits until the receiver has this many requests that it has not answered yet.
    pub(crate) async fn in_mid_flight(&self, requests: u64) {
        eventually("enough requests to be in flight", async || {
            (self.receiver.report().in_flight >= requests).then_some(())
        })
        .await;
    }
}
