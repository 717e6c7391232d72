//! The traces of pushes.

use config::Secret;
use domain::push::PushStatus;
use simulators::receiver::{Options, Receiver};
use testkit::{FaultProxy, Installation, eventually};
use tokio::net::TcpListener;

use crate::collector::{Line, Span, SpanKind};
use crate::rig::{Push, Service, answer_to, count_with_status, pushes};
use crate::scene::{Scene, Traceparent};
use crate::tree::{Tree, orphans};

/// The spans of a push that takes the straight way.
const STRAIGHT: [&str; 8] = [
    "POST /push",
    "wait to store pushes",
    "store pushes",
    "publish push.ready",
    "process push.ready",
    "claim pushes",
    "POST",
    "complete pushes",
];
/// Those that a detour through the database adds.
const DETOUR: [&str; 6] = [
    "promote pushes",
    "publish push.ready",
    "process push.ready",
    "claim pushes",
    "POST",
    "complete pushes",
];

#[testkit::test]
async fn a_push_is_one_trace_from_the_request_to_swrves_answer(mut it: Installation) {
    let (proxy, url) = FaultProxy::for_url(it.config.amqp.url.expose()).await;
    it.config.amqp.url = Secret::new(url);
    let retried = answer_to("retried", 503, Some(1));
    it.sim.script(vec![retried]).expect("a script");
    let scene = Scene::of(it).await;
    let processes = scene.fleet.start_all().await;
    scene.straight().await;
    scene.retried().await;
    scene.of_a_caller().await;
    scene.in_a_crowd().await;
    scene.detour(&proxy).await;
    scene.not_sampled().await;
    for process in processes {
        process.ask_to_stop();
        process.ended().await;
    }
    scene.nothing_is_astray();
}

impl Scene {
    async fn push(&self, group: &str, caller: Option<&str>) -> Traceparent {
        self.accept(one(group), caller).await
    }

    async fn straight(&self) {
        let stored = self.push("straight", None).await;
        let tree = Tree::with(&self.collector, &stored, &STRAIGHT).await;
        let root = tree.root();
        assert_eq!(root.parent, "");
        assert_eq!(root.attribute("http.response.status_code"), "202");
        let sent = tree.accepted();
        assert_eq!(sent.kind, SpanKind::Client);
        assert_eq!(sent.attribute("http.response.status_code"), "200");
        assert_eq!(sent.attribute("server.address"), "127.0.0.1");
        assert_eq!(
            tree.way_up(sent),
            [
                "dispatcher: process push.ready",
                "ingest-api: publish push.ready",
                "ingest-api: POST /push"
            ]
        );
        let processed = tree.above(sent);
        assert_eq!(processed.attribute("postrider.status"), "SENT");
        assert_eq!(
            processed.attribute("messaging.message.id"),
            tree.above(processed).attribute("messaging.message.id")
        );
        self.no_text_of_callers(&tree, "straight");
        self.line_of(&stored).await;
        self.counted().await;
    }

    /// The line of the request has its place in the trace.
    async fn line_of(&self, stored: &Traceparent) {
        let line = eventually("the line of the request", async || {
            let mut lines = self.collector.lines().into_iter();
            lines.find(|line| line.trace == stored.trace() && line.text == "answered")
        })
        .await;
        assert_eq!(
            (line.service.as_str(), line.level.as_str(), line.span.as_str()),
            ("ingest-api", "DEBUG", stored.span())
        );
        assert_eq!(line.attributes["status"], "202", "{line:?}");
    }

    /// Each process tells what it has counted itself.
    async fn counted(&self) {
        for (service, name) in [
            ("ingest-api", "postrider_push_receiving_seconds"),
            ("ingest-api", "postrider_push_received_total"),
            ("dispatcher", "postrider_push_sent_total"),
            ("dispatcher", "process_cpu_seconds_total"),
        ] {
            let what = format!("{name} of {service}");
            eventually(&what, async || {
                self.collector.sum(service, name).filter(|sum| *sum > 0.0)
            })
            .await;
        }
        assert_eq!(
            self.collector.sum("ingest-api", "postrider_push_sent_total"),
            None
        );
    }

    /// Nothing of what a push says and to whom is in its trace.
    fn no_text_of_callers(&self, tree: &Tree, group: &str) {
        let told = format!("{tree:?}");
        for secret in [group, "Hello", "pr_"] {
            assert!(!told.contains(secret), "{secret:?} is in {told}");
        }
    }

    async fn retried(&self) {
        let stored = self.push("retried", None).await;
        let names = [STRAIGHT.as_slice(), &DETOUR].concat();
        let tree = Tree::with(&self.collector, &stored, &names).await;
        assert_eq!(tree.answers(), [("1", "503"), ("2", "200")]);
        let [first, second] = tree.attempts()[..] else {
            panic!("{tree:#?}")
        };
        assert_eq!((first.failed, first.attribute("error.type")), (true, "503"));
        assert_eq!(
            (second.failed, second.attribute("http.request.resend_count")),
            (false, "1")
        );
        assert_eq!(
            tree.way_up(second),
            [
                "dispatcher: process push.ready",
                "retry-worker: publish push.ready",
                "ingest-api: POST /push"
            ]
        );
    }

    async fn of_a_caller(&self) {
        let caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let stored = self.push("caller", Some(caller)).await;
        assert_eq!(stored.0[..36], caller[..36], "the trace is the caller's");
        let tree = Tree::with(&self.collector, &stored, &STRAIGHT).await;
        assert_eq!(tree.root().parent, "00f067aa0ba902b7");
    }

    /// Pushes that are stored together: each has a wait of its own, which refers to the commit that they share, and back.
    async fn in_a_crowd(&self) {
        let crowd = pushes("crowd", 40);
        self.fleet.hand_in(crowd.clone()).finish().await;
        for push in &crowd {
            let stored = self.stored::<Push>(&push.user).await;
            let tree = Tree::with(&self.collector, &stored, &["wait to store pushes", "POST"]).await;
            let wait = tree.only("wait to store pushes");
            assert_eq!(wait.parent, stored.span());
            let [(_, commit)] = &wait.links[..] else {
                panic!("{wait:?}")
            };
            let commit = eventually("the commit of a crowd", async || self.span(commit)).await;
            assert_eq!(commit.name, "store pushes");
            let back = (wait.trace.clone(), wait.id.clone());
            assert!(commit.links.contains(&back), "{commit:?} does not know {wait:?}");
        }
    }

    fn span(&self, id: &str) -> Option<Span> {
        self.collector.spans().into_iter().find(|span| span.id == id)
    }

    /// The broker is away when it comes, so it waits in the database and is promoted later.
    async fn detour(&self, proxy: &FaultProxy) {
        proxy.cut();
        let stored = self.push("detour", None).await;
        eventually("the push to be PENDING", async || {
            let pending = count_with_status(&self.it, "detour", PushStatus::Pending).await;
            (pending == 1).then_some(())
        })
        .await;
        proxy.heal();
        let names = [&["POST /push"], DETOUR.as_slice()].concat();
        let tree = Tree::with(&self.collector, &stored, &names).await;
        assert_eq!(tree.answers(), [("1", "200")]);
        let way = tree.way_up(tree.accepted());
        assert_eq!(
            way[1..],
            ["retry-worker: publish push.ready", "ingest-api: POST /push"]
        );
    }

    /// Neither a caller's decision nor our own lets a span of it out, although its `traceparent` is stored.
    async fn not_sampled(&self) {
        let caller = "00-5bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        let unsampled = self.push("unsampled", Some(caller)).await;
        assert_eq!(unsampled.trace(), &caller[3..35]);
        assert!(!unsampled.is_sampled(), "{unsampled:?}");
        self.fleet.forget_addresses();
        let never = ("POSTRIDER__TELEMETRY__SAMPLE_RATIO", "0".to_owned());
        let _process = self.fleet.start_with(Service::IngestApi, &[never]).await;
        let rare = self.push("rare", None).await;
        assert!(!rare.is_sampled(), "{rare:?}");
        for group in ["unsampled", "rare"] {
            eventually("the push to be sent", async || {
                let sent = count_with_status(&self.it, group, PushStatus::Sent).await;
                (sent == 1).then_some(())
            })
            .await;
        }
        // What comes after them has arrived, so they would have.
        let caller = "00-6bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let after = self.push("after", Some(caller)).await;
        Tree::with(&self.collector, &after, &STRAIGHT).await;
        for nowhere in [unsampled, rare] {
            assert_eq!(self.collector.trace(nowhere.trace()).len(), 0);
        }
    }

    /// Every span that ever arrived is part of a whole trace, every process has told its end, and no line tells what it must not.
    pub(crate) fn nothing_is_astray(&self) {
        for span in self.collector.spans() {
            let trace = self.collector.trace(&span.trace);
            assert!(orphans(&trace).is_empty(), "{:#?}", orphans(&trace));
        }
        let lines = self.collector.lines();
        for service in ["ingest-api", "dispatcher", "retry-worker"] {
            let is_last = |line: &Line| line.service == service && line.text == "stopped";
            assert!(lines.iter().any(is_last), "the last line of {service}");
        }
        for line in lines {
            let told = format!("{line:?}");
            for secret in ["Hello", "pr_", "whsec"] {
                assert!(!told.contains(secret), "{secret:?} is in {told}");
            }
        }
    }
}

/// What a dispatcher tells Swrve is the place of the very attempt.
#[testkit::test]
async fn swrve_gets_the_place_of_the_attempt(mut it: Installation) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let swrve = Receiver::start(listener, Options::default()).expect("the receiver starts");
    it.config.swrve.url = Secret::new(swrve.url(""));
    let scene = Scene::of(it).await;
    let _processes = scene.fleet.start_all().await;
    let stored = scene.push("told", None).await;
    let tree = Tree::with(&scene.collector, &stored, &STRAIGHT).await;
    let received = &swrve.received(0, 1).items[0];
    let told = Traceparent(received.headers["traceparent"].clone());
    assert_eq!(told.trace(), stored.trace());
    assert_eq!(told.span(), tree.accepted().id);
    assert!(told.is_sampled());
}

fn one(group: &str) -> Push {
    pushes(group, 1).remove(0)
}
