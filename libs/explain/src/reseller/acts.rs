//! What people did to a notification, as its reseller is told: its own by their names, those of the house without. Pure.

use chrono::{DateTime, Utc};
use store::{AuditView, DeadLetterState};

use super::Sentence;
use super::notification::{Step, Told, step};

/// By whom what a recovery has sent again is resolved: of all that is not done by a person, only that sends notifications again.
const RECOVERY: &str = "postrider";

impl Told<'_> {
    /// Whether the reseller has done it. Those of visits that are long over are not among the names.
    fn is_own(&self, actor: &str) -> bool {
        let visited = format!("@{}>", self.it.reseller);
        actor.ends_with(&visited) || self.teller.own_names.iter().any(|name| name == actor)
    }

    /// What the reseller `did`, with who of it that was: a person in the dashboard or an API key, as its activity has them.
    fn own(&self, code: &'static str, did: &str, actor: &str) -> Sentence {
        if !self.is_own(actor) {
            return Sentence::new(code, format!("{did}."));
        }
        let person = actor.strip_suffix('>').and_then(|name| name.rsplit_once(" <"));
        let key = actor.strip_suffix(')').and_then(|name| name.rsplit_once(" ("));
        let by = match (person, key) {
            (Some((name, _)), _) => format!("{name}, in the dashboard"),
            (None, Some((name, _))) => format!("with the API key {name}"),
            (None, None) => actor.to_owned(),
        };
        Sentence::new(code, format!("{did} ({by}).")).with("by", actor)
    }

    /// Each time that the reseller had this one sent again.
    pub(super) fn resent(&self) -> impl Iterator<Item = Step> {
        let acts = self.it.acts.iter();
        let resent = acts.filter(|act| act.action == "notification.resend");
        resent.map(move |act| step(act.at, self.own("resent", "You had it sent again", &act.actor)))
    }

    /// When and by whom it was cancelled, by the dead letter of that: many that are cancelled at once have no act of their own.
    fn cancellation(&self) -> Option<(DateTime<Utc>, &str)> {
        let letters = self.it.dead_letters.iter();
        let letter = letters
            .rev()
            .find(|letter| letter.fingerprint == "delivery/cancelled")?;
        Some((letter.resolved_at?, letter.resolved_by.as_deref()?))
    }

    /// Whether the reseller has cancelled it.
    pub(super) fn is_cancelled_by_own(&self) -> bool {
        self.cancellation().is_some_and(|(_, by)| self.is_own(by))
    }

    pub(super) fn cancelled(&self) -> Option<Step> {
        let (at, by) = self.cancellation()?;
        let sentence = if self.is_own(by) {
            self.own("cancelled-by-you", "You cancelled it", by)
        } else {
            Sentence::new(
                "cancelled-by-operators",
                "The operators of the platform cancelled it.",
            )
        };
        Some(step(at, sentence))
    }

    /// When it was no more to be sent again, and who cancelled that, of one that stays delivered.
    pub(super) fn resend_ended(&self) -> Option<Step> {
        let at = self.it.resend_ended_at()?;
        let sentence = match self.it.resend_cancellation() {
            Some(act) if self.is_own(&act.actor) => self.own(
                "resend-cancelled-by-you",
                "You cancelled sending it again, and it stays delivered",
                &act.actor,
            ),
            Some(_) => Sentence::new(
                "resend-cancelled-by-operators",
                "The operators of the platform cancelled sending it again; it stays delivered.",
            ),
            None => Sentence::new(
                "resend-cancelled",
                "It was not sent again after all: it had waited for too long, or the subscription got nothing any more. It stays delivered.",
            ),
        };
        Some(step(at, sentence))
    }

    /// Each time that it was made due again other than by a resend of this one, which is told of itself: the last time, and those that its dead
    /// letters tell of.
    pub(super) fn sent_again(&self) -> Vec<Step> {
        let letters = self.it.dead_letters.iter();
        let replayed = letters
            .filter(|letter| letter.state == DeadLetterState::Replayed)
            .filter_map(|letter| letter.resolved_at);
        let mut times: Vec<_> = replayed.chain(self.it.resent_at).collect();
        times.sort_unstable();
        times.dedup();
        times
            .into_iter()
            .filter_map(|at| self.sent_again_at(at))
            .collect()
    }

    /// What made it due again then.
    fn sent_again_at(&self, at: DateTime<Utc>) -> Option<Step> {
        if self.act_at(at, &["notification.resend"]).is_some() {
            return None;
        }
        if let Some(act) = self.act_at(at, &["subscription.resend"]) {
            let did = "A resend of several had it sent again";
            return Some(step(at, self.own("replayed", did, &act.actor)));
        }
        let mut letters = self.it.dead_letters.iter().rev();
        let letter = letters
            .find(|letter| letter.state == DeadLetterState::Replayed && letter.resolved_at == Some(at));
        let by = letter.and_then(|letter| letter.resolved_by.as_deref());
        let of_replay = format!("reseller {}", self.it.reseller);
        let sentence = match by {
            Some(by) if by == of_replay => {
                Sentence::new("replayed", "A replay or resend of yours had it sent again.")
            }
            Some(by) if self.is_own(by) => self.own("resent", "You had it sent again", by),
            Some(RECOVERY) => Sentence::new(
                "sent-again-after-outage",
                "It was sent again by itself after the outage.",
            ),
            Some(_) => Sentence::new(
                "sent-again-by-operators",
                "The operators of the platform had it sent again; its attempts count from the beginning.",
            ),
            None => Sentence::new(
                "sent-again",
                "It was made due again; its attempts count from the beginning.",
            ),
        };
        Some(step(at, sentence))
    }

    /// What was done to it at this moment, of these actions.
    fn act_at(&self, at: DateTime<Utc>, actions: &[&str]) -> Option<&AuditView> {
        let mut acts = self.it.acts.iter();
        acts.find(|act| act.at == at && actions.contains(&act.action.as_str()))
    }
}
