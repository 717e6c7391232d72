//! The traces of events.

use domain::notification::NotificationStatus;
use simulators::receiver::Rule;
use testkit::{Installation, eventually};

use crate::collector::SpanKind;
use crate::rig::{Event, RESELLERS, Subscriber, Subscribers, events_of, notifications_with_status};
use crate::scene::{Scene, Traceparent};
use crate::tree::Tree;

/// The spans of an event with one notification that takes the straight way.
const STRAIGHT: [&str; 8] = [
    "POST /events",
    "wait to store events",
    "store events",
    "publish reseller.ready",
    "process reseller.ready",
    "claim notifications",
    "POST",
    "complete notifications",
];
/// Those that a retry adds.
const RETRY: [&str; 6] = [
    "promote notifications",
    "publish reseller.retry",
    "process reseller.retry",
    "claim notifications",
    "POST",
    "complete notifications",
];

#[testkit::test]
async fn an_event_is_one_trace_from_the_request_to_the_endpoints_answer(it: Installation) {
    let all = vec![Subscriber::new("hook", RESELLERS[0], &["*"])];
    let subscribers = Subscribers::of(&it, all).await;
    let scene = Scene::of(it).await;
    let processes = scene.fleet.start_all().await;
    scene.delivered(&subscribers).await;
    scene.delivered_again(&subscribers).await;
    scene.delivered_for_a_caller(&subscribers).await;
    scene.delivered_unsampled(&subscribers).await;
    scene.tested(&subscribers).await;
    for process in processes {
        process.ask_to_stop();
        process.ended().await;
    }
    scene.nothing_is_astray();
}

impl Scene {
    async fn event(&self, group: &str, caller: Option<&str>) -> Traceparent {
        let event = events_of(RESELLERS[0], group, 1).remove(0);
        self.accept::<Event>(event, caller).await
    }

    async fn delivered(&self, subscribers: &Subscribers) {
        let stored = self.event("straight", None).await;
        let tree = Tree::with(&self.collector, &stored, &STRAIGHT).await;
        assert_eq!(
            (tree.root().parent.as_str(), tree.root().id.as_str()),
            ("", stored.span())
        );
        let sent = tree.accepted();
        assert_eq!(sent.kind, SpanKind::Client);
        assert_eq!(tree.answers(), [("1", "200")]);
        assert_eq!(
            tree.way_up(sent),
            [
                "dispatcher: process reseller.ready",
                "ingest-api: publish reseller.ready",
                "ingest-api: POST /events"
            ]
        );
        let told = format!("{tree:?}");
        for private in ["straight-0", "/hook", "whsec", "pr_"] {
            assert!(!told.contains(private), "{private:?} is in {told}");
        }
        assert_eq!(told_of(subscribers, "straight"), [place(&stored, &sent.id)]);
    }

    /// A test event begins at the reseller's API, and waits in the database first. Whether it is recorded is not for a stranger to say.
    async fn tested(&self, subscribers: &Subscribers) {
        let subscriber = &subscribers.all[0];
        let stranger = "00-6bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        let portal = self.fleet.portal(subscriber.reseller).await;
        let portal = portal.with_traceparent(stranger);
        let answer = portal
            .post(&format!("/subscriptions/{}/test", subscriber.id), None)
            .await;
        let id = answer["eventId"].as_str().expect("an identifier");
        let stored = self.stored::<Event>(id).await;
        let names = ["POST", "complete notifications"];
        let tree = Tree::with(&self.collector, &stored, &names).await;
        assert_eq!(tree.root().name, "POST /subscriptions/{id}/test");
        let trace = &stranger[3..35];
        assert_ne!(stored.trace(), trace);
        assert_eq!(
            (&*tree.root().parent, &*tree.root().links),
            ("", &[(trace.to_owned(), stranger[36..52].to_owned())][..])
        );
        assert_eq!(
            tree.way_up(tree.accepted()).last().expect("a root"),
            "reseller-portal: POST /subscriptions/{id}/test"
        );
        portal.stop().await;
    }

    async fn delivered_again(&self, subscribers: &Subscribers) {
        let failing = Rule {
            times: Some(1),
            ..Rule::answering(503)
        };
        subscribers.script(vec![failing]);
        let stored = self.event("again", None).await;
        let names = [STRAIGHT.as_slice(), &RETRY].concat();
        let tree = Tree::with(&self.collector, &stored, &names).await;
        assert_eq!(tree.answers(), [("1", "503"), ("2", "200")]);
        let [first, second] = tree.attempts()[..] else {
            panic!("{tree:#?}")
        };
        assert_eq!(
            (first.attribute("postrider.lane"), first.attribute("error.type")),
            ("first", "503")
        );
        assert_eq!(second.attribute("postrider.lane"), "retry");
        assert_eq!(
            tree.way_up(second),
            [
                "retry-worker: process reseller.retry",
                "retry-worker: publish reseller.retry",
                "ingest-api: POST /events"
            ]
        );
        let places = [place(&stored, &first.id), place(&stored, &second.id)];
        assert_eq!(
            told_of(subscribers, "again"),
            places,
            "each attempt tells its own place"
        );
    }

    async fn delivered_for_a_caller(&self, subscribers: &Subscribers) {
        let caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let stored = self.event("caller", Some(caller)).await;
        assert_eq!(stored.0[..36], caller[..36], "the trace is the caller's");
        let tree = Tree::with(&self.collector, &stored, &STRAIGHT).await;
        assert_eq!(tree.root().parent, "00f067aa0ba902b7");
        assert_eq!(
            told_of(subscribers, "caller"),
            [place(&stored, &tree.accepted().id)]
        );
    }

    /// The endpoint is told what is stored, so that it does not begin a trace of its own.
    async fn delivered_unsampled(&self, subscribers: &Subscribers) {
        let caller = "00-5bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        let unsampled = self.event("unsampled", Some(caller)).await;
        assert!(!unsampled.is_sampled(), "{unsampled:?}");
        eventually("the notification to be sent", async || {
            let sent = notifications_with_status(&self.it, "unsampled", NotificationStatus::Sent).await;
            (sent == 1).then_some(())
        })
        .await;
        assert_eq!(
            told_of(subscribers, "unsampled"),
            std::slice::from_ref(&unsampled.0)
        );
        let after = self.event("after", None).await;
        Tree::with(&self.collector, &after, &STRAIGHT).await;
        assert_eq!(self.collector.trace(unsampled.trace()).len(), 0);
    }
}

/// The `traceparent` of a span in the trace of what is stored.
fn place(stored: &Traceparent, span: &str) -> String {
    format!("00-{}-{span}-01", stored.trace())
}

/// What the endpoint was told of the trace, with each attempt for the event of a group.
fn told_of(subscribers: &Subscribers, group: &str) -> Vec<String> {
    let received = subscribers.receiver.received(0, usize::MAX).items;
    let of_it = received
        .into_iter()
        .filter(|one| one.id.starts_with(&format!("{group}-")));
    of_it.map(|one| one.headers["traceparent"].clone()).collect()
}
