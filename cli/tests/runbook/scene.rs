//! A Postrider of separate processes with everything that on-call engineers have at hand.

use std::collections::BTreeSet;

use domain::key::Role;
use testkit::{Installation, eventually, key_of_the_house};

use crate::page::Page;
use crate::rig::{Answers, Fleet, Process, Service, Subscribers};

/// The services, and the page that is followed while something is wrong with them.
pub(crate) struct Scene {
    pub(crate) it: Installation,
    pub(crate) fleet: Fleet,
    _ingest: Process,
    pub(crate) dispatcher: Process,
    _worker: Process,
    /// Answers the commands of the page.
    _operator: Process,
    pub(crate) page: Page,
}

impl Scene {
    /// All services on an installation, and the section of the runbook under `heading`.
    pub(crate) async fn of(it: Installation, heading: &'static str) -> Self {
        let fleet = Fleet::of(&it).await;
        Self::with(it, fleet, heading).await
    }

    /// [`Self::of`] with settings of its own.
    pub(crate) async fn with(it: Installation, fleet: Fleet, heading: &'static str) -> Self {
        let [ingest, dispatcher, worker] = fleet.start_all().await;
        let mut operator = fleet.start(Service::OperatorApi).await;
        let address = operator.address_logged_with("listening").await;
        let key = key_of_the_house(&it.store, &[Role::Operator]).await;
        let mut page = Page::section(heading);
        page.set("PATH", path_with_postrider());
        page.set("OPERATOR_URL", format!("http://{address}"));
        page.set("OPERATOR_KEY", key);
        page.sign_in().await;
        Self {
            it,
            fleet,
            _ingest: ingest,
            dispatcher,
            _worker: worker,
            _operator: operator,
            page,
        }
    }
}

impl Scene {
    /// Goes on with another section, and returns the one that it was at.
    pub(crate) fn turn_to(&mut self, next: Page) -> Page {
        let next = next.with_what_is_set_in(&self.page);
        std::mem::replace(&mut self.page, next)
    }
}

/// The search path of commands, with the binary under test before everything else.
pub(crate) fn path_with_postrider() -> String {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_postrider"));
    let folder = binary.parent().expect("a binary is in a folder").display();
    match std::env::var("PATH") {
        Ok(path) => format!("{folder}:{path}"),
        Err(_) => folder.to_string(),
    }
}

/// Waits until every push that was answered 202 is SENT, and makes sure that each was accepted by Swrve.
pub(crate) async fn all_sent(it: &Installation, answers: &Answers) -> Vec<usize> {
    eventually("every push to be sent", async || {
        let unsent: i64 =
            sqlx::query_scalar("SELECT count(*) FROM push_notifications WHERE status <> 'SENT'")
                .fetch_one(&it.pool)
                .await
                .expect("the rows can be counted");
        (unsent == 0 && it.sim.report().in_flight == 0).then_some(())
    })
    .await;
    let arrivals = it.sim.received(0, usize::MAX).items;
    let accepted = |user: &str| {
        let own = arrivals.iter().filter(|arrival| arrival.user == user);
        own.filter(|arrival| arrival.status.is_some_and(|status| status < 300))
            .count()
    };
    let accepted: Vec<usize> = answers.keys().map(|user| accepted(user)).collect();
    assert!(accepted.iter().all(|times| *times > 0), "a push was lost");
    accepted
}

/// [`all_sent`] where no attempt can have been lost.
pub(crate) async fn all_sent_once(it: &Installation, answers: &Answers) {
    let accepted = all_sent(it, answers).await;
    assert!(accepted.iter().all(|times| *times == 1), "a push was sent twice");
}

/// Waits until so many notifications, which is all of them, are SENT.
pub(crate) async fn all_delivered(it: &Installation, notifications: usize) {
    eventually("every notification to be sent", async || {
        let (all, unsent): (i64, i64) =
            sqlx::query_as("SELECT count(*), count(*) FILTER (WHERE status <> 'SENT') FROM notifications")
                .fetch_one(&it.pool)
                .await
                .expect("the rows can be counted");
        assert_eq!(all, notifications as i64, "each event is fanned out once");
        (unsent == 0).then_some(())
    })
    .await;
}

/// [`all_delivered`], and no endpoint has accepted one twice.
pub(crate) async fn all_delivered_once(it: &Installation, subscribers: &Subscribers, notifications: usize) {
    all_delivered(it, notifications).await;
    let arrivals = subscribers.receiver.received(0, usize::MAX).items;
    let mut accepted = BTreeSet::new();
    for arrival in arrivals {
        if arrival.status.is_some_and(|status| status < 300) {
            assert!(
                accepted.insert((arrival.path.clone(), arrival.id.clone())),
                "{} came again to {}",
                arrival.id,
                arrival.path
            );
        }
    }
    assert_eq!(accepted.len(), notifications);
}
