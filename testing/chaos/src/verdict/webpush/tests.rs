//! Histories with one fault each.

use super::*;

struct Made {
    history: WebpushHistory,
    start: Instant,
}

impl Made {
    fn new() -> Self {
        Self {
            history: WebpushHistory::default(),
            start: Instant::now(),
        }
    }

    fn at(&self, seconds: u64) -> Instant {
        self.start + Duration::from_secs(seconds)
    }

    fn sent(mut self, name: &str, topic: Option<u8>, asked: u64, answered: Option<u64>) -> Self {
        let message = SentMessage {
            channel: "agent-1/0".to_owned(),
            topic,
            is_kept: true,
            asked: self.at(asked),
            answered: answered.map(|answered| (self.at(answered), format!("id of {name}"))),
        };
        self.history.sent.insert(name.to_owned(), message);
        self
    }

    /// Shown, acknowledged at once, and dealt with a second later.
    fn shown(mut self, name: &str, at: u64) -> Self {
        self.history.shown.push(Shown {
            name: name.to_owned(),
            version: format!("id of {name}"),
            at: self.at(at),
            acked: Some(self.at(at)),
            confirmed: Some(self.at(at + 1)),
        });
        self
    }

    fn changed(mut self, change: impl FnOnce(&mut WebpushHistory)) -> Self {
        change(&mut self.history);
        self
    }

    fn judge(&self) -> Vec<&'static str> {
        self.judge_while(&[])
    }

    /// With storage away from one second to another.
    fn judge_while(&self, away: &[(u64, u64)]) -> Vec<&'static str> {
        let rules = Rules {
            push_attempts: 1,
            notification_attempts: 1,
            gap: Duration::ZERO,
            freezes: 0,
            interruptions: 0,
            in_flight: 0,
            limits: HashMap::new(),
            storage_away: away
                .iter()
                .map(|(from, to)| (self.at(*from), self.at(*to)))
                .collect(),
            longest_silence: Duration::ZERO,
        };
        let mut violations = Vec::new();
        judge(&self.history, &rules, &mut violations);
        violations.iter().map(|found| found.check).collect()
    }
}

#[test]
fn what_was_answered_comes_and_what_was_not_may() {
    let made = || Made::new().sent("a", None, 1, Some(2)).sent("b", None, 3, None);
    assert_eq!(made().judge(), ["lost"]);
    assert_eq!(made().shown("a", 2).judge(), [""; 0]);
    assert_eq!(made().shown("a", 2).shown("b", 3).judge(), [""; 0]);
    let unkept = made().changed(|history| history.sent.get_mut("a").unwrap().is_kept = false);
    assert_eq!(unkept.judge(), [""; 0]);
    assert_eq!(made().shown("a", 2).shown("c", 3).judge(), ["strangers"]);
}

#[test]
fn a_message_comes_under_the_identifier_of_its_answer() {
    let made = Made::new().sent("a", None, 1, Some(2)).shown("a", 3);
    let renamed = made.changed(|history| history.shown[0].version = "another".to_owned());
    assert_eq!(renamed.judge(), ["arrivals"]);
}

#[test]
fn what_is_gone_does_not_come_again() {
    let made = || {
        Made::new()
            .sent("a", None, 1, Some(2))
            .shown("a", 3)
            .shown("a", 6)
    };
    assert_eq!(made().judge(), ["again"]);
    assert_eq!(
        made().judge_while(&[(4, 5)]),
        [""; 0],
        "it may not have been deleted"
    );
    assert_eq!(made().judge_while(&[(5, 6)]), ["again"]);
    let unconfirmed = made().changed(|history| history.shown[0].confirmed = None);
    assert_eq!(unconfirmed.judge(), [""; 0]);
    let direct = Made::new()
        .sent("a", None, 1, Some(4))
        .shown("a", 3)
        .shown("a", 6);
    assert_eq!(
        direct.judge(),
        [""; 0],
        "its endpoint node may not have learnt of the acknowledgement"
    );
    let unkept = direct.changed(|history| history.sent.get_mut("a").unwrap().is_kept = false);
    assert_eq!(unkept.judge(), ["again"]);
}

#[test]
fn a_topic_shows_its_newest() {
    let made = || {
        Made::new()
            .sent("a", Some(1), 1, Some(2))
            .sent("b", Some(1), 5, Some(6))
    };
    assert_eq!(made().judge(), ["lost", "lost"], "neither has come");
    assert_eq!(made().shown("a", 2).judge(), ["lost"]);
    assert_eq!(made().shown("b", 6).judge(), [""; 0]);
    assert_eq!(
        made().shown("b", 6).shown("a", 7).judge(),
        [""; 0],
        "on its way already"
    );
    assert_eq!(made().shown("b", 6).shown("a", 8).judge(), ["topics"]);
    assert_eq!(made().shown("b", 6).shown("a", 8).judge_while(&[(7, 7)]), [""; 0]);
    let soon = Made::new()
        .sent("a", Some(1), 4, Some(4))
        .sent("b", Some(1), 5, Some(6));
    assert_eq!(
        soon.shown("b", 6).shown("a", 8).judge(),
        [""; 0],
        "clocks may differ"
    );
    let other = made().changed(|history| history.sent.get_mut("b").unwrap().topic = Some(2));
    assert_eq!(other.shown("b", 6).shown("a", 8).judge(), [""; 0]);
}
