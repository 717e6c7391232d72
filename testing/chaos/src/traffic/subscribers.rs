//! Who gets notifications, under which limits, and how their endpoints behave.

use std::collections::HashMap;
use std::net::SocketAddr;

use domain::subscription::SubscriptionState;
use encryption::{Sealer, SealingKey};
use signing::Secret;
use simulators::receiver::{Match, Pattern, Rule, SecretFor};
use sqlx::PgPool;
use testkit::subscription_factory::SubscriptionRow;
use uuid::Uuid;

use super::orders::{EventOrder, RESELLERS};
use crate::verdict::Limits;

/// How an endpoint behaves, whatever the behaviour of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Character {
    /// It takes everything.
    Good,
    /// It takes everything, after so many milliseconds.
    Slow(u64),
    /// It answers 500 to everything.
    Failing,
    /// It answers 422 to everything.
    Refusing,
    /// It answers nothing.
    Hanging,
}

/// A subscription.
#[derive(Debug, Clone)]
pub struct Subscriber {
    /// Its endpoint has this path.
    pub path: &'static str,
    /// Whose it is.
    pub reseller: &'static str,
    filter: &'static [&'static str],
    /// What it may get.
    pub limits: Limits,
    /// How its endpoint behaves.
    pub character: Character,
    /// Its identifier.
    pub id: Uuid,
}

/// All of a run.
#[derive(Debug)]
pub struct Subscribers {
    /// Those that there are.
    pub all: Vec<Subscriber>,
    /// What requests to them are signed with.
    pub secrets: Vec<SecretFor>,
}

impl Subscriber {
    fn new(
        (path, reseller): (&'static str, &'static str),
        filter: &'static [&'static str],
        character: Character,
    ) -> Self {
        Self {
            path,
            reseller,
            filter,
            limits: Limits::default(),
            character,
            id: Uuid::nil(),
        }
    }

    /// Whether its filter lets the event through, found out in another way than the product's.
    pub fn matches(&self, event: &EventOrder) -> bool {
        let lets_through = |entry: &&str| match entry.strip_suffix('*') {
            Some(beginning) => event.event_type.starts_with(beginning),
            None => event.event_type == *entry,
        };
        self.reseller == event.reseller && self.filter.iter().any(lets_through)
    }

    /// The rule of its endpoint.
    pub fn rule(&self) -> Option<Rule> {
        let rule = match self.character {
            Character::Good => return None,
            Character::Slow(millis) => Rule {
                delay_millis: Some(millis),
                ..Rule::default()
            },
            Character::Failing => Rule::answering(500),
            Character::Refusing => Rule::answering(422),
            Character::Hanging => Rule {
                hang: true,
                ..Rule::default()
            },
        };
        let matching = Match {
            path: Some(Pattern::Exact(self.path.to_owned())),
            ..Match::default()
        };
        Some(Rule { matching, ..rule })
    }
}

/// Some that overlap: with every filter, limit and character. `events` is how many are to be expected in the whole run.
fn usual(events: u64) -> Vec<Subscriber> {
    let [acme, globex] = RESELLERS;
    let mut limited = Subscriber::new(("/limited", acme), &["*"], Character::Good);
    // Half of the events are its reseller's; it gets a quarter of those.
    limited.limits.quota = Some(usize::try_from(events / 8).unwrap_or(1).max(1));
    let mut paced = Subscriber::new(("/paced", globex), &["*"], Character::Good);
    paced.limits.rate = Some(10);
    vec![
        Subscriber::new(("/everything", acme), &["*"], Character::Good),
        Subscriber::new(
            ("/some", acme),
            &["contact.deleted", "host.*", "host.deleted"],
            Character::Slow(150),
        ),
        limited,
        paced,
        Subscriber::new(("/failing", acme), &["domain.*"], Character::Failing),
        Subscriber::new(("/refusing", globex), &["contact.*"], Character::Refusing),
        Subscriber::new(("/hanging", globex), &["host.deleted"], Character::Hanging),
    ]
}

impl Subscribers {
    /// Makes them.
    ///
    /// # Panics
    ///
    /// When the database does not take them.
    pub async fn make(pool: &PgPool, endpoint: SocketAddr, key: &SealingKey, events: u64) -> Self {
        let sealer = Sealer::new(key, &[]);
        let mut it = Self {
            all: usual(events),
            secrets: Vec::new(),
        };
        for one in &mut it.all {
            let secret = Secret::generate();
            let mut row = SubscriptionRow::in_state(SubscriptionState::Active)
                .reseller(one.reseller)
                .url(&format!("http://{endpoint}{}", one.path))
                .event_types(one.filter);
            one.id = row.id();
            let sealed = sealer.seal(one.id, secret.expose_bytes());
            row = row.sealed_secret(sealed.expect("invariant: a secret is short enough to be sealed"));
            if let Some(quota) = one.limits.quota {
                row = row.daily_quota(i32::try_from(quota).unwrap_or(i32::MAX));
            }
            if let Some(rate) = one.limits.rate {
                row = row.requests_per_second(i32::try_from(rate).unwrap_or(i32::MAX));
            }
            row.make(pool).await;
            let secret = SecretFor::path(one.path, &secret.reveal());
            it.secrets
                .push(secret.expect("invariant: what was generated is a secret"));
        }
        it
    }

    /// The paths by subscription.
    pub fn paths(&self) -> HashMap<Uuid, String> {
        self.all.iter().map(|one| (one.id, one.path.to_owned())).collect()
    }

    /// The limits of those that have any, by path.
    pub fn limits(&self) -> HashMap<String, Limits> {
        let limited = self.all.iter().filter(|one| one.limits != Limits::default());
        limited.map(|one| (one.path.to_owned(), one.limits)).collect()
    }

    /// The rules of their endpoints.
    pub fn rules(&self) -> Vec<Rule> {
        self.all.iter().filter_map(Subscriber::rule).collect()
    }
}

impl Subscriber {
    /// Whether its endpoint ever takes anything.
    pub const fn takes(&self) -> bool {
        matches!(self.character, Character::Good | Character::Slow(_))
    }

    /// Whether its endpoint refuses for good.
    pub const fn refuses(&self) -> bool {
        matches!(self.character, Character::Refusing)
    }
}
