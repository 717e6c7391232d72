//! When Swrve itself counts as out of order, so that a failure says nothing about the push that it hit. Pure.
//!
//! When for some seconds nothing but failures came, of several pushes, the lane is held: nothing more is sent but one probe
//! at a time, and what fails from then on is not counted. The first push that Swrve takes (or refuses for good, which is an
//! answer too) ends it. One push that alone makes Swrve fail never holds the lane by its answers, since others succeed in
//! between.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use super::{PushId, SendOutcome, StatusClass, classify};

/// Different pushes that Swrve must fail, without a success in between, before it counts as out of order.
const FAILING_PUSHES: usize = 5;
/// Sends without any answer that are enough: a push cannot make Swrve unreachable.
const UNANSWERED_SENDS: usize = 3;
/// For how long there must have been nothing but failures: longer than a short plan of retries lasts, so that what is to be given
/// up within seconds is, and shorter than the default delay before the first retry.
const LASTING: TimeDelta = TimeDelta::seconds(30);
/// Failures that are enough just after a hold, and at once: what has just failed is believed to fail.
const FAILURES_WHEN_WARY: usize = 2;
/// Answers after which Swrve is trusted again.
const PROOFS: usize = 20;
/// Most pushes that are remembered as hit by what may be an outage: more than are sent in [`LASTING`].
const ACCUSED_MAX: usize = 10_000;

/// What an outcome says about Swrve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sign {
    /// It does its work: it took the push, or refused it for good.
    Works,
    /// It answered that it cannot now: 429 or one of the 5xx that are retried.
    Fails,
    /// It did not answer.
    Silent,
}

impl Sign {
    /// What `outcome` says; `None` when it says something about us alone.
    pub fn of(outcome: &SendOutcome) -> Option<Self> {
        match outcome {
            SendOutcome::Delivered => Some(Self::Works),
            SendOutcome::Refused { status, .. } if classify(*status) == StatusClass::Retryable => {
                Some(Self::Fails)
            }
            SendOutcome::Refused { .. } => Some(Self::Works),
            SendOutcome::Unreachable { .. } => Some(Self::Silent),
            _ => None,
        }
    }
}

/// Whether an attempt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HoldDecision {
    /// It does.
    Counts,
    /// It failed because Swrve is out of order: the push is handed back as if nothing had been tried.
    Spared,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// Swrve works as far as we know.
    Full,
    /// It was out of order a moment ago, and so many answers are missing.
    Wary { proofs: usize },
    /// It is out of order.
    None,
}

/// Watches the outcomes of one sender, in the order in which they come.
#[derive(Debug, Clone)]
pub struct SwrveWatch {
    trust: Trust,
    /// The pushes that failed since Swrve last did its work.
    failed: BTreeSet<PushId>,
    /// When the first of them did.
    since: Option<DateTime<Utc>>,
    silent: usize,
}

impl SwrveWatch {
    /// For a lane that is open.
    pub fn trusting() -> Self {
        Self::with(Trust::Full)
    }

    /// For a lane that was held a moment ago.
    pub fn wary() -> Self {
        Self::with(Trust::Wary { proofs: PROOFS })
    }

    /// For a lane that is held, and where it is known, since when nothing but failures came.
    pub fn holding(since: Option<DateTime<Utc>>) -> Self {
        Self {
            since,
            ..Self::with(Trust::None)
        }
    }

    fn with(trust: Trust) -> Self {
        Self {
            trust,
            failed: BTreeSet::new(),
            since: None,
            silent: 0,
        }
    }

    /// Whether only probes may be sent.
    pub fn holds(&self) -> bool {
        self.trust == Trust::None
    }

    /// Since when nothing but failures came; `None` when the last sign was that it works, or none came.
    pub fn failing_since(&self) -> Option<DateTime<Utc>> {
        self.since
    }

    /// Takes an outcome of the time `at` in, and says whether it counts. The failure that decides is spared.
    pub fn observe(&mut self, push: PushId, sign: Sign, at: DateTime<Utc>) -> HoldDecision {
        match (sign, self.trust) {
            (Sign::Works, Trust::None) => {
                self.since = None;
                HoldDecision::Counts
            }
            (Sign::Works, trust) => {
                let proofs = match trust {
                    Trust::Wary { proofs } => proofs - 1,
                    Trust::Full | Trust::None => 0,
                };
                let trust = if proofs > 0 {
                    Trust::Wary { proofs }
                } else {
                    Trust::Full
                };
                *self = Self::with(trust);
                HoldDecision::Counts
            }
            (_, Trust::None) => {
                self.fails_at(at);
                HoldDecision::Spared
            }
            (_, trust) => {
                self.accuse(push, sign, at);
                if !self.convinces(trust, at) {
                    return HoldDecision::Counts;
                }
                self.trust = Trust::None;
                HoldDecision::Spared
            }
        }
    }

    fn accuse(&mut self, push: PushId, sign: Sign, at: DateTime<Utc>) {
        self.fails_at(at);
        self.silent += usize::from(sign == Sign::Silent);
        if self.failed.len() < ACCUSED_MAX {
            self.failed.insert(push);
        }
    }

    /// The earlier of the two: a clock that is set back must not put the hold off.
    fn fails_at(&mut self, at: DateTime<Utc>) {
        self.since = Some(self.since.map_or(at, |since| since.min(at)));
    }

    fn convinces(&self, trust: Trust, at: DateTime<Utc>) -> bool {
        let (pushes, sends) = match trust {
            Trust::Full => (FAILING_PUSHES, UNANSWERED_SENDS),
            Trust::Wary { .. } | Trust::None => (FAILURES_WHEN_WARY, FAILURES_WHEN_WARY),
        };
        let lasts = self.since.is_some_and(|since| at - since >= LASTING);
        (lasts || trust != Trust::Full) && (self.failed.len() >= pushes || self.silent >= sends)
    }

    /// The pushes whose failures led to the hold; those of them that were counted may be forgiven.
    pub fn accused(&self) -> Vec<PushId> {
        self.failed.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pushes(count: usize) -> Vec<PushId> {
        (0..count).map(|_| PushId::at(DateTime::UNIX_EPOCH)).collect()
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    #[test]
    fn nothing_but_failures_of_several_pushes_hold_the_lane_when_that_lasts() {
        let mut pushes = pushes(FAILING_PUSHES);
        let mut watch = SwrveWatch::trusting();
        for push in &pushes {
            assert_eq!(watch.observe(*push, Sign::Fails, at(0)), HoldDecision::Counts);
        }
        assert_eq!(
            watch.observe(pushes[0], Sign::Fails, at(29)),
            HoldDecision::Counts
        );
        assert_eq!(
            watch.observe(pushes[1], Sign::Fails, at(30)),
            HoldDecision::Spared
        );
        assert!(watch.holds());
        pushes.sort_unstable();
        assert_eq!(watch.accused(), pushes);
        assert_eq!(
            watch.observe(pushes[0], Sign::Fails, at(40)),
            HoldDecision::Spared
        );
    }

    #[test]
    fn one_success_and_it_begins_again() {
        let pushes = pushes(FAILING_PUSHES);
        let mut watch = SwrveWatch::trusting();
        for push in &pushes {
            watch.observe(*push, Sign::Fails, at(0));
        }
        assert_eq!(watch.failing_since(), Some(at(0)));
        watch.observe(pushes[0], Sign::Works, at(4));
        assert_eq!(watch.failing_since(), None);
        assert_eq!(
            watch.observe(pushes[0], Sign::Fails, at(60)),
            HoldDecision::Counts
        );
        assert_eq!(watch.failing_since(), Some(at(60)));
        assert_eq!(watch.accused(), pushes[..1]);
    }

    #[test]
    fn one_push_that_swrve_cannot_take_uses_up_its_attempts() {
        let pushes = pushes(2);
        let mut watch = SwrveWatch::trusting();
        for minute in 0..100 {
            assert_eq!(
                watch.observe(pushes[0], Sign::Fails, at(60 * minute)),
                HoldDecision::Counts
            );
        }
        let mut wary = SwrveWatch::wary();
        assert_eq!(wary.observe(pushes[0], Sign::Fails, at(0)), HoldDecision::Counts);
        wary.observe(pushes[1], Sign::Works, at(1));
        assert_eq!(
            wary.observe(pushes[0], Sign::Silent, at(60)),
            HoldDecision::Counts
        );
        assert!(!watch.holds() && !wary.holds());
    }

    #[test]
    fn silence_that_lasts_holds_the_lane_whichever_pushes_it_hits() {
        let push = pushes(1)[0];
        let mut watch = SwrveWatch::trusting();
        for minute in 0..2 {
            assert_eq!(
                watch.observe(push, Sign::Silent, at(60 * minute)),
                HoldDecision::Counts
            );
        }
        assert_eq!(watch.observe(push, Sign::Silent, at(120)), HoldDecision::Spared);
        assert!(watch.holds());
    }

    #[test]
    fn after_a_hold_less_is_enough_until_swrve_has_proved_itself() {
        let pushes = pushes(2);
        let mut watch = SwrveWatch::wary();
        for _ in 1..PROOFS {
            watch.observe(pushes[0], Sign::Works, at(0));
        }
        let mut proved = watch.clone();
        watch.observe(pushes[0], Sign::Fails, at(0));
        assert_eq!(watch.observe(pushes[1], Sign::Fails, at(0)), HoldDecision::Spared);
        proved.observe(pushes[0], Sign::Works, at(0));
        proved.observe(pushes[0], Sign::Fails, at(0));
        assert_eq!(
            proved.observe(pushes[1], Sign::Fails, at(0)),
            HoldDecision::Counts
        );
    }

    #[test]
    fn a_refusal_for_good_is_a_sign_of_life_and_our_own_failure_is_none() {
        let refused = |status| SendOutcome::Refused {
            status,
            code: None,
            message: String::new(),
        };
        for status in 100..600 {
            let fails = matches!(status, 429 | 500 | 502 | 503 | 504);
            let expected = if fails { Sign::Fails } else { Sign::Works };
            assert_eq!(Sign::of(&refused(status)), Some(expected), "{status}");
        }
        let chain = String::new();
        assert_eq!(Sign::of(&SendOutcome::Internal { chain }), None);
    }

    proptest! {
        /// However failures come: none counts once the lane is held, those before fall into a few seconds or are few, and each
        /// push that one of them hit is known.
        #[test]
        fn what_an_outage_counts_is_bounded_and_known(failures in proptest::collection::vec((0_usize..50, any::<bool>(), 0_i64..3), 1..300)) {
            let pushes = pushes(50);
            let mut watch = SwrveWatch::trusting();
            let (mut now, mut counted) = (0, Vec::new());
            for (push, silent, pause) in failures {
                now += pause;
                let sign = if silent { Sign::Silent } else { Sign::Fails };
                let held = watch.holds();
                let ruling = watch.observe(pushes[push], sign, at(now));
                prop_assert_eq!(ruling == HoldDecision::Spared, watch.holds());
                prop_assert!(!held || watch.holds());
                prop_assert!(watch.accused().contains(&pushes[push]) || held);
                if ruling == HoldDecision::Counts {
                    counted.push((now, push));
                }
            }
            let late: BTreeSet<usize> = counted.iter().filter(|(then, _)| *then >= LASTING.num_seconds() + counted[0].0).map(|(_, push)| *push).collect();
            prop_assert!(late.len() < FAILING_PUSHES, "{late:?}");
        }

        /// A clock that jumps back holds nothing.
        #[test]
        fn a_clock_that_jumps_back_is_no_outage(jump in 0_i64..1_000_000) {
            let mut watch = SwrveWatch::trusting();
            for push in pushes(FAILING_PUSHES) {
                prop_assert_eq!(watch.observe(push, Sign::Fails, at(0)), HoldDecision::Counts);
            }
            prop_assert_eq!(watch.observe(pushes(1)[0], Sign::Fails, at(-jump)), HoldDecision::Counts);
        }
    }
}
