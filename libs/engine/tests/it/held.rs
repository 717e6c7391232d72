//! Most endpoints fail in one way at once: nothing is given up, and everything is sent by itself afterwards.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use broker::Queue;
use chrono::TimeDelta;
use domain::clock::{Clock, ManualClock, SystemClock};
use domain::notification::NotificationStatus;
use engine::webhook::Lane;
use simulators::receiver::{Options, Receiver, Running, SecretFor};
use store::push::HoldView;
use store::webhook::{FannedOut, NewEvent};
use testkit::{Installation, eventually};
use tokio::net::TcpSocket;
use uuid::Uuid;

use crate::rig::{Engine, Rig, event, frozen, row};

/// Subscriptions that nothing gets to, each of another reseller and at another address.
const SUBSCRIPTIONS: usize = 12;

/// Addresses of this machine that refuse connections until they are opened.
struct Closed {
    socket: TcpSocket,
    address: SocketAddr,
}

impl Closed {
    fn new() -> Self {
        // Bound, so that no other process gets the port, but not listening.
        let socket = TcpSocket::new_v4().expect("a socket");
        socket
            .bind((Ipv4Addr::UNSPECIFIED, 0).into())
            .expect("a free port");
        let address = socket.local_addr().expect("it is bound");
        Self { socket, address }
    }

    fn url(&self, number: usize) -> String {
        format!("http://127.0.1.{}:{}/{number}", number + 1, self.address.port())
    }

    fn open(self, rig: &Rig) -> Running {
        let options = Options {
            secrets: vec![SecretFor::everywhere(&rig.secret.reveal()).expect("a secret")],
            tolerance: Duration::from_secs(2 * 86_400),
            ..Options::default()
        };
        let listener = self.socket.listen(1_024).expect("it listens");
        Receiver::start(listener, options).expect("the receiver starts")
    }
}

fn reseller(number: usize) -> String {
    format!("reseller-{number}")
}

async fn subscribe(rig: &Rig, closed: &Closed) -> Vec<Uuid> {
    let mut subscriptions = Vec::new();
    for number in 0..SUBSCRIPTIONS {
        let row = rig
            .subscription()
            .reseller(&reseller(number))
            .url(&closed.url(number));
        subscriptions.push(row.make(&rig.it.pool).await);
    }
    subscriptions
}

/// One event for each of these resellers.
async fn accept(rig: &Rig, resellers: impl Iterator<Item = String>) -> Vec<FannedOut> {
    let of = |reseller_id| NewEvent {
        reseller_id,
        ..event(SystemClock.now())
    };
    let accepted = rig.accept_all(resellers.map(of).collect()).await;
    rig.publish(Queue::ResellerReady, &accepted).await;
    accepted
}

async fn hold(rig: &Rig) -> Option<HoldView> {
    rig.it.store.list_holds().await.ok()?.pop()
}

/// Waits until the class is held and was probed so often.
async fn probed(rig: &Rig, probes: i64) -> HoldView {
    eventually(&format!("{probes} probes"), async || {
        hold(rig).await.filter(|hold| hold.probes >= probes)
    })
    .await
}

/// Both engines, and an outage that is held.
async fn outage(rig: &Rig, clock: &std::sync::Arc<ManualClock>) -> (Engine, Engine, Vec<FannedOut>) {
    let first = rig.start_at(Lane::First, clock.clone()).await;
    let retry = rig.start_at(Lane::Retry, clock.clone()).await;
    let mut sent = Vec::new();
    for _ in 0..2 {
        sent.extend(accept(rig, (0..SUBSCRIPTIONS).map(reseller)).await);
    }
    probed(rig, 2).await;
    eventually("what failed at first to be forgiven", async || {
        let failing =
            "SELECT count(*) FROM subscriptions WHERE failing_since IS NOT NULL OR state <> 'ACTIVE'";
        (count(rig, failing).await == 0).then_some(())
    })
    .await;
    (first, retry, sent)
}

async fn count(rig: &Rig, query: &'static str) -> i64 {
    let count = sqlx::query_scalar(query).fetch_one(&rig.it.pool);
    count.await.expect("they can be counted")
}

#[testkit::test]
async fn an_outage_gives_up_nothing_and_ends_by_itself_with_everything_sent_in_order_of_age(
    mut it: Installation,
) {
    // One at a time, so that the order in which they arrive is that in which they were sent.
    it.config.reseller.delivery.max_in_flight_per_subscription = 1;
    let rig = Rig::new(it).await;
    let closed = Closed::new();
    let subscriptions = subscribe(&rig, &closed).await;
    // One that answers goes on.
    rig.subscription().reseller("well").make(&rig.it.pool).await;
    let clock = frozen();
    let (first, retry, mut sent) = outage(&rig, &clock).await;
    let held = probed(&rig, 2).await;
    assert_eq!((&*held.class, held.answered_at), ("CONNECT", None));
    assert!(held.last_answer.contains("refused"), "{held:?}");

    // More rounds than there are attempts, hours apart.
    for _ in 0..5 {
        sent.extend(accept(&rig, (0..SUBSCRIPTIONS).map(reseller)).await);
        let well = accept(&rig, ["well".to_owned()].into_iter()).await;
        rig.settled(well[0].id, NotificationStatus::Sent).await;
        clock.advance(TimeDelta::hours(1));
        rig.promote(clock.now()).await;
        let before = probed(&rig, 0).await.probes;
        let now = probed(&rig, before + 2).await;
        assert_eq!(now.since, held.since, "it is one outage");
    }
    assert_eq!(count(&rig, "SELECT count(*) FROM dead_letters").await, 0);
    let ended = "SELECT count(*) FROM notifications WHERE reseller_id <> 'well' AND finished_at IS NOT NULL";
    assert_eq!(count(&rig, ended).await, 0);
    let untried = "SELECT count(*) FROM notifications WHERE reseller_id <> 'well' AND attempts > 0";
    assert!(count(&rig, untried).await <= i64::try_from(2 * SUBSCRIPTIONS).unwrap());

    let opened = closed.open(&rig);
    for one in &sent {
        eventually("it to be sent", async || {
            rig.promote(clock.now() + TimeDelta::days(1)).await;
            clock.advance(TimeDelta::minutes(1));
            let row = row(&rig.it.pool, one.id).await;
            (row.status == NotificationStatus::Sent.as_str()).then_some(())
        })
        .await;
    }
    eventually("the class to be let go", async || {
        hold(&rig).await.is_none().then_some(())
    })
    .await;
    assert_eq!(count(&rig, "SELECT count(*) FROM emails").await, 0);
    first.stop().await;
    retry.stop().await;
    in_order_of_age(&rig, &opened, &subscriptions).await;
}

/// What had never been tried came in the order of its age; the others had their own times.
async fn in_order_of_age(rig: &Rig, opened: &Running, subscriptions: &[Uuid]) {
    let mut arrived: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in opened.received(0, 10_000).items {
        let ids = arrived.entry(one.path).or_default();
        ids.push(one.id);
    }
    for (number, subscription) in subscriptions.iter().enumerate() {
        let expected: Vec<String> = sqlx::query_scalar(
            "SELECT e.event_id FROM notifications n JOIN events e ON e.id = n.event
             WHERE n.subscription_id = $1 AND n.attempts = 1 AND NOT EXISTS (
                SELECT FROM delivery_attempts a WHERE a.notification_id = n.id AND a.status = 'ERROR')
             ORDER BY n.id",
        )
        .bind(subscription)
        .fetch_all(&rig.it.pool)
        .await
        .expect("they are stored");
        let mut came = arrived.remove(&format!("/{number}")).unwrap_or_default();
        came.retain(|id| expected.contains(id));
        assert_eq!(came, expected);
    }
}

#[testkit::test]
async fn what_a_killed_engine_held_ends_with_its_lease_and_the_next_one_holds_again(it: Installation) {
    let rig = Rig::new(it).await;
    let closed = Closed::new();
    subscribe(&rig, &closed).await;
    let clock = frozen();
    let (first, retry, _) = outage(&rig, &clock).await;
    first.kill();
    retry.kill();
    eventually("the row to end", async || {
        hold(&rig).await.is_none().then_some(())
    })
    .await;
    let _again = rig.start_at(Lane::First, clock.clone()).await;
    accept(&rig, (0..SUBSCRIPTIONS).map(reseller)).await;
    let held = probed(&rig, 1).await;
    assert_eq!(held.class, "CONNECT");
    assert_eq!(count(&rig, "SELECT count(*) FROM dead_letters").await, 0);
}

#[testkit::test]
async fn one_reseller_with_many_subscriptions_on_one_dead_host_holds_nothing(it: Installation) {
    let rig = Rig::new(it).await;
    let closed = Closed::new();
    for _ in 0..3 * SUBSCRIPTIONS {
        rig.subscription().url(&closed.url(0)).make(&rig.it.pool).await;
    }
    let engine = rig.start_at(Lane::First, frozen()).await;
    rig.send(1).await;
    rig.count_becomes(
        NotificationStatus::Retry,
        i64::try_from(3 * SUBSCRIPTIONS).unwrap(),
    )
    .await;
    engine.stop().await;
    let tried = "SELECT count(*) FROM notifications WHERE attempts = 1 AND next_attempt_at > updated_at";
    assert_eq!(
        count(&rig, tried).await,
        i64::try_from(3 * SUBSCRIPTIONS).unwrap()
    );
    assert_eq!(hold(&rig).await, None);
}
