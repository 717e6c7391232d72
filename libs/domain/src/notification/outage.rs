//! When failures of endpoints count as ours: because so many of them fail in one way at once that the network, the resolver or the
//! trust store between us and them is the likelier cause. Pure; it works by a monotonic clock, so no jump of a wall clock matters.
//!
//! While a class of failures is held, what fails in it is not counted, and subscriptions that did are sent nothing but probes. A
//! subscription that answers goes on at once; the class is let go when several different ones in a row did.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::{DeliveryOutcome, FailureKind};
use crate::named;

#[cfg(test)]
mod tests;

/// Subscriptions that must fail in one class before it is held.
const FAILING: usize = 10;
/// Sites that they must be spread over: many subscriptions of one dead host are one failure.
const SITES: usize = 5;
/// Resellers that they must belong to: none alone is to cause a hold.
const RESELLERS: usize = 5;
/// Of the subscriptions that were tried meanwhile, these parts in a hundred must fail in that class.
const SHARE: usize = 80;
/// How old an attempt may be that is counted. A calm installation takes so long to try that many subscriptions.
pub const OUTAGE_WINDOW: Duration = Duration::from_secs(5 * 60);
/// Subscriptions that are looked at, those first that were tried last: when something of ours breaks, the latest fail.
const RECENT: usize = 128;
/// Different subscriptions that must answer in a row to let a class go.
const ANSWERS: usize = 3;

/// A class of failures that something of ours can cause for every endpoint at once.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "UPPERCASE")]
pub enum OutageClass {
    /// No connection.
    Connect,
    /// The name could not be resolved.
    Dns,
    /// Not in time.
    Timeout,
    /// No secure connection.
    Tls,
}

named!(OutageClass, "class of failures");

impl OutageClass {
    /// The class with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == name)
    }
}

/// What an outcome says about the way to the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation {
    /// Something answered there, whatever it was.
    Answered,
    /// Nothing did, in this way.
    Failed(OutageClass),
}

impl Observation {
    /// What `outcome` says; `None` when nothing was to be seen.
    pub fn of(outcome: &DeliveryOutcome) -> Option<Self> {
        let DeliveryOutcome::Failed { kind, .. } = outcome else {
            return Some(Self::Answered);
        };
        match kind {
            FailureKind::Connect => Some(Self::Failed(OutageClass::Connect)),
            FailureKind::Dns => Some(Self::Failed(OutageClass::Dns)),
            FailureKind::Timeout => Some(Self::Failed(OutageClass::Timeout)),
            FailureKind::Tls => Some(Self::Failed(OutageClass::Tls)),
            FailureKind::Protocol => Some(Self::Answered),
            FailureKind::Egress | FailureKind::Other | FailureKind::Local => None,
        }
    }
}

/// An attempt that is over.
#[derive(Debug, Clone, Copy)]
pub struct Tried<'a> {
    /// To whom it went.
    pub subscription: Uuid,
    /// Whose subscription that is.
    pub reseller: &'a str,
    /// The domain that was registered, or the address, that the endpoint belongs to.
    pub site: &'a str,
    /// Whether the subscription was well when the attempt was claimed. What has failed before tells nothing new by failing.
    pub was_well: bool,
    /// When it began. Slow failures come long after the quick answers of the same moment; in the order in which they end, endpoints
    /// that hang would look like an outage.
    pub began: Instant,
}

/// Whether an attempt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageDecision {
    /// It does.
    Counts,
    /// Its class is held: it is handed back as if nothing had been tried.
    Spared(OutageClass),
}

/// What has changed for a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageChange {
    /// It is sent nothing but probes from now on.
    Withheld(Uuid),
    /// It is sent to as always.
    Released(Uuid),
}

#[derive(Debug)]
struct Seen {
    observation: Observation,
    reseller: String,
    site: String,
}

#[derive(Debug, Default)]
struct Hold {
    /// This watch is convinced.
    convinced: bool,
    /// Others are.
    elsewhere: bool,
    /// Who was withheld and answered, since the last failure.
    answered: BTreeSet<Uuid>,
    /// Those that were well and have failed since it began, with whose they are. Others fail anyway, and must not keep it going.
    accused: BTreeMap<Uuid, String>,
    /// Of them those whose latest attempt did not.
    cleared: BTreeSet<Uuid>,
}

impl Hold {
    /// How many of these were accused, of each reseller as many as decide at most: none alone is to keep a class held.
    fn weight<'a>(&self, subscriptions: impl Iterator<Item = &'a Uuid>) -> usize {
        let mut of_reseller: BTreeMap<&str, usize> = BTreeMap::new();
        for reseller in subscriptions.filter_map(|subscription| self.accused.get(subscription)) {
            *of_reseller.entry(reseller).or_default() += 1;
        }
        of_reseller
            .values()
            .map(|count| (*count).min(FAILING / RESELLERS))
            .sum()
    }
}

/// Watches the outcomes of one engine.
#[derive(Debug, Default)]
pub struct OutageWatch {
    /// The latest attempt of each of those that were tried last.
    recent: BTreeMap<(Instant, Uuid), Seen>,
    began: HashMap<Uuid, Instant>,
    holds: BTreeMap<OutageClass, Hold>,
    withheld: HashMap<Uuid, OutageClass>,
    /// Whose probe is next. Those that are not withheld any more are passed over.
    probes: VecDeque<Uuid>,
    /// Who is among them.
    queued: HashSet<Uuid>,
    changes: Vec<OutageChange>,
}

impl OutageWatch {
    /// Takes an outcome in, and says whether it counts. The one that decides does not.
    pub fn observe(&mut self, tried: Tried<'_>, observation: Option<Observation>) -> OutageDecision {
        let subscription = tried.subscription;
        let class = match observation {
            Some(Observation::Failed(class)) => class,
            _ => {
                if observation.is_some() {
                    self.note(tried, Observation::Answered);
                    self.clear(subscription, None);
                }
                self.answered(subscription, observation);
                return OutageDecision::Counts;
            }
        };
        if self
            .withheld
            .get(&subscription)
            .is_some_and(|other| *other != class)
        {
            self.answered(subscription, observation);
        }
        self.clear(subscription, Some(class));
        let is_evidence = tried.was_well || self.began.contains_key(&subscription);
        if is_evidence {
            self.note(tried, Observation::Failed(class));
        }
        let convinces = self.convinces(class, tried.began);
        let hold = self.holds.entry(class).or_default();
        if is_evidence {
            hold.answered.clear();
        }
        if convinces && !hold.convinced {
            hold.convinced = true;
            for (accused, reseller) in self.accused(class) {
                self.withhold(accused, class, Some(reseller));
            }
        }
        if !self.is_held(class) {
            return OutageDecision::Counts;
        }
        self.withhold(
            subscription,
            class,
            is_evidence.then(|| tried.reseller.to_owned()),
        );
        if let Some(hold) = self.holds.get_mut(&class) {
            hold.cleared.remove(&subscription);
        }
        OutageDecision::Spared(class)
    }

    /// Takes in which classes are held by any engine. What was withheld for another one's sake alone is released when it lets go.
    pub fn follow(&mut self, elsewhere: &[OutageClass]) {
        for class in OutageClass::ALL {
            self.holds.entry(class).or_default().elsewhere = elsewhere.contains(&class);
            if !self.is_held(class) {
                self.release_all(class);
                self.holds.remove(&class);
            }
        }
    }

    /// Nothing waits for this subscription that could be probed with.
    pub fn nothing_waits(&mut self, subscription: Uuid) {
        self.release(subscription);
    }

    /// Whose oldest notification is to be sent as a probe; each in its turn.
    pub fn next_probe(&mut self) -> Option<Uuid> {
        while let Some(subscription) = self.probes.pop_front() {
            if self.withheld.contains_key(&subscription) {
                self.probes.push_back(subscription);
                return Some(subscription);
            }
            self.queued.remove(&subscription);
        }
        None
    }

    /// The classes that this watch holds by its own judgement.
    pub fn convinced(&self) -> Vec<OutageClass> {
        let convinced = self.holds.iter().filter(|(_, hold)| hold.convinced);
        convinced.map(|(class, _)| *class).collect()
    }

    /// The subscriptions that are sent nothing but probes, and why.
    pub fn withheld(&self) -> Vec<(Uuid, OutageClass)> {
        let withheld = self.withheld.iter();
        withheld
            .map(|(subscription, class)| (*subscription, *class))
            .collect()
    }

    /// The class for whose sake a subscription is sent nothing but probes.
    pub fn withheld_for(&self, subscription: Uuid) -> Option<OutageClass> {
        self.withheld.get(&subscription).copied()
    }

    /// What has changed since this was asked last, in its order.
    pub fn take_changes(&mut self) -> Vec<OutageChange> {
        std::mem::take(&mut self.changes)
    }

    fn is_held(&self, class: OutageClass) -> bool {
        let hold = self.holds.get(&class);
        hold.is_some_and(|hold| hold.convinced || hold.elsewhere)
    }

    /// Its endpoint, or its failure in another way, shows that it does not fail in the class that it is withheld for.
    fn answered(&mut self, subscription: Uuid, observation: Option<Observation>) {
        let Some(class) = self.withheld.get(&subscription).copied() else {
            return;
        };
        let hold = self.holds.entry(class).or_default();
        if observation.is_some() {
            hold.answered.insert(subscription);
        }
        if hold.answered.len() >= ANSWERS {
            self.resume(class);
        } else {
            self.release(subscription);
        }
    }

    /// Notes that a subscription did not fail in any class but `failed`. Endpoints that stay broken afterwards, perhaps the only ones that
    /// something waits for, must not keep a class held when as many that failed with them are well.
    fn clear(&mut self, subscription: Uuid, failed: Option<OutageClass>) {
        for class in OutageClass::ALL {
            let Some(hold) = self.holds.get_mut(&class) else {
                continue;
            };
            if failed == Some(class) || !hold.accused.contains_key(&subscription) {
                continue;
            }
            hold.cleared.insert(subscription);
            let others = self.withheld.iter();
            let failing = others.filter(|(other, of)| **of == class && **other != subscription);
            let failing = hold.weight(failing.map(|(other, _)| other));
            if hold.weight(hold.cleared.iter()) >= ANSWERS.max(failing) {
                self.resume(class);
            }
        }
    }

    /// `accused` is whose subscription it is, if its failing tells anything.
    fn withhold(&mut self, subscription: Uuid, class: OutageClass, accused: Option<String>) {
        if let Some(reseller) = accused {
            let hold = self.holds.entry(class).or_default();
            hold.accused.insert(subscription, reseller);
        }
        if let Entry::Vacant(free) = self.withheld.entry(subscription) {
            free.insert(class);
            if self.queued.insert(subscription) {
                self.probes.push_back(subscription);
            }
            self.changes.push(OutageChange::Withheld(subscription));
        }
    }

    fn release(&mut self, subscription: Uuid) {
        let Some(class) = self.withheld.remove(&subscription) else {
            return;
        };
        self.changes.push(OutageChange::Released(subscription));
        // None is left whose probe could tell that it is over.
        let hold = self.holds.entry(class).or_default();
        let tells = |other: &Uuid| !hold.convinced || hold.accused.contains_key(other);
        if !self
            .withheld
            .iter()
            .any(|(other, of)| *of == class && tells(other))
        {
            self.resume(class);
        }
    }

    fn release_all(&mut self, class: OutageClass) {
        let changes = &mut self.changes;
        self.withheld.retain(|subscription, other| {
            if *other == class {
                changes.push(OutageChange::Released(*subscription));
            }
            *other != class
        });
    }

    /// The class is in order again; what failed before says nothing any more.
    fn resume(&mut self, class: OutageClass) {
        let hold = self.holds.entry(class).or_default();
        *hold = Hold {
            elsewhere: hold.elsewhere,
            ..Hold::default()
        };
        self.release_all(class);
        let began = &mut self.began;
        self.recent.retain(|(_, subscription), seen| {
            let stays = seen.observation != Observation::Failed(class);
            if !stays {
                began.remove(subscription);
            }
            stays
        });
    }

    fn note(&mut self, tried: Tried<'_>, observation: Observation) {
        match self.began.get(&tried.subscription) {
            Some(began) if *began > tried.began => return,
            Some(began) => {
                self.recent.remove(&(*began, tried.subscription));
            }
            None => {}
        }
        self.began.insert(tried.subscription, tried.began);
        let seen = Seen {
            observation,
            reseller: tried.reseller.to_owned(),
            site: tried.site.to_owned(),
        };
        self.recent.insert((tried.began, tried.subscription), seen);
        while self.recent.len() > RECENT {
            if let Some(((_, forgotten), _)) = self.recent.pop_first() {
                self.began.remove(&forgotten);
            }
        }
    }

    /// Whether there is a moment since which enough of the subscriptions that were tried failed in this class. It lies so far back
    /// that it is no matter of chance.
    fn convinces(&self, class: OutageClass, now: Instant) -> bool {
        let (mut failing, mut tried) = (0, 0);
        let (mut sites, mut resellers) = (BTreeSet::new(), BTreeSet::new());
        let lately = |began: Instant| now.saturating_duration_since(began) <= OUTAGE_WINDOW;
        let known = self.recent.keys().filter(|(began, _)| lately(*began)).count();
        for seen in self.recent.values().rev().take(known) {
            tried += 1;
            if seen.observation == Observation::Failed(class) {
                failing += 1;
                sites.insert(&seen.site);
                resellers.insert(&seen.reseller);
            }
            let spread = sites.len() >= SITES && resellers.len() >= RESELLERS;
            if failing >= FAILING && spread && 2 * tried >= known && 100 * failing >= SHARE * tried {
                return true;
            }
        }
        false
    }

    /// Those whose latest attempt failed in this class, with whose they are.
    fn accused(&self, class: OutageClass) -> Vec<(Uuid, String)> {
        let failed = self
            .recent
            .iter()
            .filter(|(_, seen)| seen.observation == Observation::Failed(class));
        failed
            .map(|((_, subscription), seen)| (*subscription, seen.reseller.clone()))
            .collect()
    }
}
