//! What holds a class of failures and what lets it go, without a database and on a clock of its own.

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

    fn tries(&mut self, number: usize, was_well: bool, observation: Option<Observation>) -> OutageDecision {
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
