//! The reckoning after a fault in the reseller lane: what was accepted, what the database says it became, and what arrived
//! at the endpoints, to the byte.

use std::collections::{BTreeMap, HashMap};

use domain::notification::NotificationStatus;
use simulators::receiver::{Outcome, Received, Verdict};
use testkit::{Installation, eventually};
use uuid::Uuid;

use super::audit::count;
use super::callers::Answers;
use super::events::Event;
use super::subscribers::{Subscriber, Subscribers};

/// How a notification may end; in no way when there must be none.
pub(crate) type Ends = &'static [NotificationStatus];

pub(crate) const SENT: Ends = &[NotificationStatus::Sent];

/// A notification as it ended.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
struct Row {
    event: Uuid,
    subscription_id: Uuid,
    status: String,
    reason: Option<String>,
    attempts: i64,
    /// Rows of attempts.
    recorded: i64,
    /// Attempts without an outcome.
    running: i64,
    /// Attempts whose claim ran out before an outcome was recorded.
    lost: i64,
    /// Attempts of which it is unknown what the endpoint made of them, the lost ones included.
    unknown: i64,
    dead_letters: i64,
}

const ROWS: &str = "
    SELECT n.event, n.subscription_id, n.status, n.reason, n.attempts::bigint AS attempts,
           count(a.number) AS recorded,
           count(a.number) FILTER (WHERE a.status = 'IN_PROCESS') AS running,
           count(a.number) FILTER (WHERE a.fingerprint = 'delivery/lease-lost') AS lost,
           count(a.number) FILTER (WHERE a.status = 'ERROR' AND a.response_status IS NULL) AS unknown,
           (SELECT count(*) FROM dead_letters d WHERE d.notification_id = n.id AND d.state <> 'DISCARDED') AS dead_letters
    FROM notifications n LEFT JOIN delivery_attempts a ON a.notification_id = n.id
    GROUP BY n.id, n.event, n.subscription_id, n.status, n.reason, n.attempts
    ORDER BY n.event, n.subscription_id";

/// Everything about notifications that have ended.
pub(crate) struct Delivered {
    rows: Vec<Row>,
    /// By path and identifier.
    arrivals: BTreeMap<(String, String), Vec<Received>>,
}

impl Delivered {
    /// Waits until all notifications have ended or wait for another day, and checks what must hold whatever has happened:
    /// what was answered 202 is there once, with one notification for each subscription that it is for; each has ended
    /// as `ends` says, and has an explanation; and whatever arrived, however often, was the same to the byte.
    pub(crate) async fn of(
        it: &Installation,
        subscribers: &Subscribers,
        (events, answers): (&[Event], &Answers),
        ends: impl Fn(&Subscriber, &Event) -> Ends,
    ) -> Self {
        eventually("every notification to end", async || {
            let unfinished = "SELECT count(*) FROM notifications
                              WHERE finished_at IS NULL AND reason IS DISTINCT FROM 'QUOTA'";
            let underway = subscribers.receiver.report().in_flight;
            (count(&it.pool, unfinished).await == 0 && underway == 0).then_some(())
        })
        .await;
        assert_stored(it, events, answers).await;
        let delivered = Self {
            rows: sqlx::query_as(ROWS)
                .fetch_all(&it.pool)
                .await
                .expect("the rows can be read"),
            arrivals: arrivals(subscribers),
        };
        delivered.assert_fanned_out(subscribers, (events, answers), ends);
        delivered
    }

    fn assert_fanned_out(
        &self,
        subscribers: &Subscribers,
        (events, answers): (&[Event], &Answers),
        ends: impl Fn(&Subscriber, &Event) -> Ends,
    ) {
        let mut expected: BTreeMap<(Uuid, Uuid), (&Subscriber, &Event)> = BTreeMap::new();
        for event in events {
            for subscriber in subscribers.all.iter().filter(|one| one.matches(event)) {
                if !ends(subscriber, event).is_empty() {
                    expected.insert((answers[&event.id], subscriber.id), (subscriber, event));
                }
            }
        }
        let stored: Vec<(Uuid, Uuid)> = self
            .rows
            .iter()
            .map(|row| (row.event, row.subscription_id))
            .collect();
        let fanned_out: Vec<(Uuid, Uuid)> = expected.keys().copied().collect();
        assert_eq!(stored, fanned_out, "each event is fanned out, once");
        let mut known: HashMap<(String, String), &Event> = HashMap::new();
        for (row, (subscriber, event)) in self.rows.iter().zip(expected.values()) {
            let place = (subscriber.path(), event.id.clone());
            self.assert_explained(row, &place, ends(subscriber, event));
            known.insert(place, event);
        }
        for (place, arrivals) in &self.arrivals {
            let event = known
                .get(place)
                .unwrap_or_else(|| panic!("no event belongs to {place:?}"));
            arrivals
                .iter()
                .for_each(|arrival| assert_unchanged(arrival, event));
        }
    }

    fn assert_explained(&self, row: &Row, place: &(String, String), ends: Ends) {
        let ended = ends.iter().find(|status| status.as_str() == row.status);
        assert!(ended.is_some(), "{row:?} of {place:?} is not {ends:?}");
        assert_eq!((row.recorded, row.running), (row.attempts, 0), "{row:?}");
        // When a subscription has ended, there is nothing to mend: the dead letter of what had not been tried is discarded from the beginning.
        let is_unwanted = |reason: &String| reason.starts_with("SUBSCRIPTION_");
        let failed = matches!(row.status.as_str(), "FAILED" | "GIVEN_UP");
        let dead = failed && !row.reason.as_ref().is_some_and(is_unwanted);
        assert_eq!(row.dead_letters, i64::from(dead), "{row:?}");
        let arrived = self.arrivals.get(place).map_or(0, Vec::len);
        assert!(
            arrived as i64 <= row.attempts,
            "{place:?} arrived {arrived} times: {row:?}"
        );
        let accepted = self.ended(place, is_accepted) > 0;
        assert_eq!(accepted, row.status == "SENT", "{row:?} of {place:?}");
    }

    /// How many arrivals at a place ended so.
    fn ended(&self, place: &(String, String), how: impl Fn(&Received) -> bool) -> usize {
        let arrivals = self.arrivals.get(place).map_or(&[][..], Vec::as_slice);
        arrivals.iter().filter(|arrival| how(arrival)).count()
    }

    /// How often something came again that the endpoint had accepted, or may have accepted although no service waited for
    /// its answer any more.
    pub(crate) fn duplicates(&self) -> usize {
        let may_be_taken = |arrival: &Received| is_accepted(arrival) || arrival.outcome == Outcome::Abandoned;
        let places = self.arrivals.keys();
        places
            .map(|place| self.ended(place, may_be_taken).saturating_sub(1))
            .sum()
    }

    fn sum(&self, column: impl Fn(&Row) -> i64) -> i64 {
        self.rows.iter().map(column).sum()
    }

    /// Nothing was sent twice but what a fault had left without a recorded outcome: at most `claims` notifications.
    pub(crate) fn assert_duplicates_within(&self, claims: u64) {
        let lost = self.sum(|row| row.lost);
        assert!(
            lost as u64 <= claims,
            "{lost} claims were lost, not {claims} at most"
        );
        let (duplicates, unknown) = (self.duplicates(), self.sum(|row| row.unknown));
        assert!(
            duplicates as i64 <= unknown,
            "{duplicates} duplicates, and only {unknown} unknown outcomes"
        );
    }

    /// Each notification arrived exactly as often as it was attempted, and never again once it was accepted. An outcome
    /// that stayed unknown because the machine was too slow for it, of the database or of the endpoint, excuses one deviation.
    pub(crate) fn assert_no_duplicates(&self) {
        let unknown = self.sum(|row| row.unknown);
        let arrived: usize = self.arrivals.values().map(Vec::len).sum();
        let missing = self.sum(|row| row.attempts) - arrived as i64;
        let duplicates = self.duplicates() as i64;
        assert!(
            (0..=unknown).contains(&missing) && duplicates <= unknown,
            "{missing} attempts that never arrived, {duplicates} duplicates, {unknown} unknown outcomes"
        );
        assert!(
            2 * unknown <= self.rows.len() as i64,
            "{unknown} unknown outcomes"
        );
    }

    /// How many notifications of a subscription have ended so.
    pub(crate) fn count(&self, subscriber: &Subscriber, status: NotificationStatus) -> usize {
        let is_meant = |row: &&Row| row.subscription_id == subscriber.id && row.status == status.as_str();
        self.rows.iter().filter(is_meant).count()
    }

    /// How often each notification of a subscription was attempted.
    pub(crate) fn attempts(&self, subscriber: &Subscriber) -> Vec<i64> {
        let own = self
            .rows
            .iter()
            .filter(|row| row.subscription_id == subscriber.id);
        own.map(|row| row.attempts).collect()
    }
}

/// Each event that was answered 202 is stored, once, and keeps the bytes that were handed in.
async fn assert_stored(it: &Installation, events: &[Event], answers: &Answers) {
    let stored: Vec<(String, String, Uuid, String)> =
        sqlx::query_as("SELECT event_id, reseller_id, id, body FROM events ORDER BY event_id COLLATE \"C\"")
            .fetch_all(&it.pool)
            .await
            .expect("the rows can be read");
    let mut answered: Vec<_> = events
        .iter()
        .map(|event| {
            let reseller = event.reseller.to_owned();
            (event.id.clone(), reseller, answers[&event.id], event.body())
        })
        .collect();
    answered.sort();
    assert_eq!(
        stored, answered,
        "each event that was answered 202 is stored, once"
    );
    let keys = count(&it.pool, "SELECT count(*) FROM event_keys").await;
    assert_eq!(keys, answers.len() as i64);
}

/// What arrived is what was handed in, whichever attempt it was: the bytes, what it is known by, and a valid signature.
fn assert_unchanged(arrival: &Received, event: &Event) {
    let expected = event.body();
    assert_eq!((&*arrival.method, &arrival.body), ("POST", &expected));
    let idempotency_key = signing::idempotency_key(expected.as_bytes());
    for (header, value) in [
        ("webhook-id", &event.id),
        ("event-id", &event.id),
        ("idempotency-key", &idempotency_key),
    ] {
        assert_eq!(arrival.headers.get(header), Some(value), "{header} of {event:?}");
    }
    assert_eq!(arrival.verdict, Verdict::Verified, "{event:?}");
}

fn is_accepted(arrival: &Received) -> bool {
    arrival.outcome == Outcome::Answered && arrival.status.is_some_and(|status| status < 300)
}

fn arrivals(subscribers: &Subscribers) -> BTreeMap<(String, String), Vec<Received>> {
    let page = subscribers.receiver.received(0, usize::MAX);
    assert_eq!(page.oldest, 1, "the receiver has forgotten something");
    let mut arrivals: BTreeMap<(String, String), Vec<Received>> = BTreeMap::new();
    for arrival in page.items {
        let place = (arrival.path.clone(), arrival.id.clone());
        arrivals.entry(place).or_default().push(arrival);
    }
    arrivals
}
