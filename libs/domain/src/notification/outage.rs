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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CONNECT: Option<Observation> = Some(Observation::Failed(OutageClass::Connect));
    const ANSWERED: Option<Observation> = Some(Observation::Answered);
    const SPARED: OutageDecision = OutageDecision::Spared(OutageClass::Connect);

    /// A watch, and the time of its next attempt.
    struct Scene {
        watch: OutageWatch,
        now: Instant,
    }

    impl Scene {
        fn new() -> Self {
            Self {
                watch: OutageWatch::default(),
                now: Instant::now(),
            }
        }

        fn tries(
            &mut self,
            number: usize,
            was_well: bool,
            observation: Option<Observation>,
        ) -> OutageDecision {
            self.now += Duration::from_millis(10);
            let (reseller, site) = (format!("reseller-{number}"), format!("{number}.test"));
            let tried = Tried {
                subscription: id(number),
                reseller: &reseller,
                site: &site,
                was_well,
                began: self.now,
            };
            self.watch.observe(tried, observation)
        }

        /// So many that were well fail.
        fn outage(&mut self, count: usize) {
            for number in 0..count {
                self.tries(number, true, CONNECT);
            }
        }

        fn is_held(&self) -> bool {
            self.watch.is_held(OutageClass::Connect)
        }
    }

    fn id(number: usize) -> Uuid {
        Uuid::from_u128(number as u128)
    }

    #[test]
    fn many_that_fail_in_one_way_at_once_are_spared_from_the_one_on_that_decides() {
        let mut scene = Scene::new();
        for number in 100..110 {
            scene.tries(number, true, ANSWERED);
        }
        for number in 0..FAILING - 1 {
            assert_eq!(scene.tries(number, true, CONNECT), OutageDecision::Counts);
        }
        assert_eq!(scene.tries(FAILING - 1, true, CONNECT), SPARED);
        let withheld: BTreeSet<Uuid> = scene.watch.withheld().into_iter().map(|(id, _)| id).collect();
        assert_eq!(withheld, (0..FAILING).map(id).collect());
        assert_eq!(
            scene.tries(50, false, CONNECT),
            SPARED,
            "whichever endpoint it hits"
        );
        let other = Some(Observation::Failed(OutageClass::Tls));
        assert_eq!(scene.tries(60, true, other), OutageDecision::Counts);
        assert_eq!(scene.watch.convinced(), [OutageClass::Connect]);
    }

    #[test]
    fn no_class_is_held_while_a_good_part_answers() {
        let mut scene = Scene::new();
        for number in 0..40 {
            scene.tries(number, true, if number % 3 == 0 { ANSWERED } else { CONNECT });
        }
        assert!(!scene.is_held());
        for number in 0..40 {
            scene.tries(number, true, if number % 10 == 0 { ANSWERED } else { CONNECT });
        }
        assert!(scene.is_held());
    }

    #[test]
    fn one_host_or_one_reseller_holds_nothing_however_many_subscriptions_it_has() {
        for (sites, resellers) in [(100, RESELLERS - 1), (SITES - 1, 100)] {
            let mut scene = Scene::new();
            for number in 0..100_usize {
                let (reseller, site) = ((number % resellers).to_string(), (number % sites).to_string());
                let tried = Tried {
                    subscription: id(number),
                    reseller: &reseller,
                    site: &site,
                    was_well: true,
                    began: scene.now,
                };
                assert_eq!(scene.watch.observe(tried, CONNECT), OutageDecision::Counts);
            }
        }
    }

    #[test]
    fn endpoints_that_have_been_failing_before_are_no_evidence() {
        let mut scene = Scene::new();
        for number in 0..100 {
            assert_eq!(scene.tries(number % 20, false, CONNECT), OutageDecision::Counts);
        }
    }

    #[test]
    fn endpoints_that_hang_are_no_outage_when_others_that_began_with_them_have_answered() {
        let mut scene = Scene::new();
        let start = scene.now;
        for number in 0..100_usize {
            scene.now = start + Duration::from_millis(number as u64);
            if number % 2 == 0 {
                scene.tries(number, true, ANSWERED);
            }
        }
        for number in (1..100_usize).step_by(2) {
            scene.now = start + Duration::from_millis(number as u64);
            let late = scene.tries(number, true, Some(Observation::Failed(OutageClass::Timeout)));
            assert_eq!(late, OutageDecision::Counts);
        }
    }

    #[test]
    fn what_failed_long_ago_is_not_counted() {
        let mut scene = Scene::new();
        scene.outage(FAILING - 1);
        scene.now += OUTAGE_WINDOW;
        scene.tries(FAILING, true, CONNECT);
        assert!(!scene.is_held());
    }

    #[test]
    fn probes_go_to_each_in_its_turn_and_one_that_answers_goes_on() {
        let mut scene = Scene::new();
        scene.outage(FAILING);
        let turns: Vec<Option<Uuid>> = (0..2 * FAILING).map(|_| scene.watch.next_probe()).collect();
        assert_eq!(turns[..FAILING], turns[FAILING..]);
        let each: BTreeSet<_> = turns.iter().flatten().copied().collect();
        assert_eq!(each.len(), FAILING);
        scene.watch.take_changes();
        assert_eq!(scene.tries(3, false, ANSWERED), OutageDecision::Counts);
        assert_eq!(scene.watch.take_changes(), [OutageChange::Released(id(3))]);
        assert!(scene.is_held());
        assert_eq!(scene.tries(4, false, CONNECT), SPARED);
    }

    #[test]
    fn several_answers_in_a_row_let_the_class_go_and_then_each_is_judged_alone() {
        let mut scene = Scene::new();
        scene.outage(FAILING);
        for number in 0..ANSWERS - 1 {
            scene.tries(number, false, ANSWERED);
        }
        scene.tries(9, false, CONNECT);
        for number in 3..3 + ANSWERS {
            assert!(scene.is_held());
            scene.tries(number, false, ANSWERED);
        }
        assert!(!scene.is_held() && scene.watch.withheld().is_empty());
        assert_eq!(scene.tries(9, false, CONNECT), OutageDecision::Counts);
    }

    #[test]
    fn one_that_stays_broken_keeps_no_class_held_when_those_that_failed_with_it_are_well() {
        let mut scene = Scene::new();
        scene.outage(FAILING);
        for number in 1..FAILING {
            scene.watch.nothing_waits(id(number));
        }
        for number in 1..=ANSWERS {
            assert!(scene.is_held());
            assert_eq!(scene.tries(0, false, CONNECT), SPARED, "its probe");
            assert_eq!(
                scene.tries(number, true, ANSWERED),
                OutageDecision::Counts,
                "as always"
            );
        }
        assert!(!scene.is_held());
        assert_eq!(scene.tries(0, false, CONNECT), OutageDecision::Counts);
    }

    #[test]
    fn endpoints_that_fail_anyway_keep_no_class_held() {
        let mut scene = Scene::new();
        scene.outage(FAILING);
        let broken = 100..100 + 5 * FAILING;
        for number in broken.clone() {
            assert_eq!(scene.tries(number, false, CONNECT), SPARED);
        }
        for number in 0..FAILING - 1 {
            scene.watch.nothing_waits(id(number));
            broken.clone().for_each(|other| {
                scene.tries(other, false, CONNECT);
            });
        }
        assert!(scene.is_held());
        assert_eq!(scene.tries(FAILING - 1, true, ANSWERED), OutageDecision::Counts);
        assert!(!scene.is_held(), "none is left that was well");
        assert_eq!(scene.tries(100, false, CONNECT), OutageDecision::Counts);
    }

    #[test]
    fn one_reseller_keeps_no_class_held_however_many_subscriptions_it_has() {
        let mut scene = Scene::new();
        scene.outage(FAILING);
        let of_one = |scene: &mut Scene, number: usize| {
            scene.now += Duration::from_millis(10);
            let tried = Tried {
                subscription: id(number),
                reseller: "reseller-0",
                site: "0.test",
                was_well: true,
                began: scene.now,
            };
            scene.watch.observe(tried, CONNECT);
        };
        for number in 1..=ANSWERS {
            for hanging in 100..120 {
                of_one(&mut scene, hanging);
            }
            assert!(scene.is_held());
            scene.tries(number, true, ANSWERED);
        }
        for number in ANSWERS + 1..FAILING {
            scene.tries(number, true, ANSWERED);
            of_one(&mut scene, 100);
        }
        assert!(!scene.is_held());
    }

    #[test]
    fn a_few_that_answer_again_and_again_end_no_outage_of_many() {
        let mut scene = Scene::new();
        scene.outage(4 * FAILING);
        for _ in 0..50 {
            for number in 0..2 * ANSWERS {
                scene.tries(number, true, ANSWERED);
                scene.tries(FAILING, true, CONNECT);
            }
            scene.tries(100, true, ANSWERED);
            scene.tries(101, true, ANSWERED);
            scene.tries(102, true, ANSWERED);
        }
        assert!(scene.is_held());
    }

    #[test]
    fn a_hold_ends_when_nothing_is_left_to_be_probed() {
        let mut scene = Scene::new();
        scene.outage(FAILING);
        for number in 0..FAILING {
            assert!(scene.is_held());
            scene.watch.nothing_waits(id(number));
        }
        assert!(!scene.is_held());
        assert_eq!(scene.watch.next_probe(), None);
    }

    #[test]
    fn what_another_engine_holds_is_held_here_until_it_lets_go() {
        let mut scene = Scene::new();
        scene.watch.follow(&[OutageClass::Connect]);
        assert_eq!(scene.tries(1, false, CONNECT), SPARED);
        assert_eq!(scene.watch.convinced(), [], "it is the other's to tell of");
        scene.watch.follow(&[OutageClass::Connect, OutageClass::Dns]);
        assert_eq!(scene.watch.withheld(), [(id(1), OutageClass::Connect)]);
        scene.watch.follow(&[]);
        let changes = [OutageChange::Withheld(id(1)), OutageChange::Released(id(1))];
        assert_eq!(scene.watch.take_changes(), changes);
        assert_eq!(scene.tries(1, false, CONNECT), OutageDecision::Counts);
    }

    #[test]
    fn our_own_faults_and_forbidden_addresses_say_nothing_about_the_way() {
        let of = |kind| {
            let message = String::new();
            Observation::of(&DeliveryOutcome::Failed { kind, message })
        };
        let silent: Vec<FailureKind> = FailureKind::ALL
            .into_iter()
            .filter(|kind| of(*kind).is_none())
            .collect();
        assert_eq!(
            silent,
            [FailureKind::Egress, FailureKind::Other, FailureKind::Local]
        );
        for class in OutageClass::ALL {
            assert_eq!(OutageClass::named(class.as_str()), Some(class));
            let kind = FailureKind::ALL
                .into_iter()
                .find(|kind| kind.as_str() == class.as_str());
            assert_eq!(of(kind.unwrap()), Some(Observation::Failed(class)));
        }
    }

    proptest! {
        /// However outcomes come: what is spared is withheld, only what is held withholds, changes tell all of it, and what is
        /// remembered is bounded.
        #[test]
        fn every_withheld_subscription_is_known(outcomes in proptest::collection::vec((0_usize..40, 0_usize..8, any::<bool>()), 1..600)) {
            let mut scene = Scene::new();
            let mut withheld = BTreeSet::new();
            for (number, what, was_well) in outcomes {
                let decision = match what {
                    0 => Some(scene.tries(number, was_well, ANSWERED)),
                    1 => { scene.watch.follow(if was_well { &[OutageClass::Connect] } else { &[] }); None }
                    2 => { scene.watch.nothing_waits(id(number)); None }
                    3 => Some(scene.tries(number, was_well, Some(Observation::Failed(OutageClass::Tls)))),
                    _ => Some(scene.tries(number, was_well, CONNECT)),
                };
                for change in scene.watch.take_changes() {
                    match change {
                        OutageChange::Withheld(id) => prop_assert!(withheld.insert(id)),
                        OutageChange::Released(id) => prop_assert!(withheld.remove(&id)),
                    }
                }
                let known: BTreeSet<Uuid> = scene.watch.withheld().into_iter().map(|(id, _)| id).collect();
                prop_assert_eq!(&known, &withheld);
                prop_assert!(scene.watch.withheld().iter().all(|(_, class)| scene.watch.is_held(*class)));
                let spared = matches!(decision, Some(OutageDecision::Spared(_)));
                prop_assert!(!spared || withheld.contains(&id(number)));
                prop_assert!(scene.watch.recent.len() <= RECENT && scene.watch.recent.len() == scene.watch.began.len());
                prop_assert!(scene.watch.next_probe().is_some() != withheld.is_empty());
            }
        }
    }
}
