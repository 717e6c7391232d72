//! The traces of Web Push, from the request to the socket of the user agent.

use testkit::{Installation, eventually};

use crate::collector::{Span, SpanKind};
use crate::rig::{Process, Service};
use crate::scene::{Scene, Traceparent};
use crate::tree::{Tree, orphans};
use crate::user_agent::{UserAgent, send_with};

const RECEIVED: &str = "webpush-endpoint: POST /wpush/{version}/{token}";
/// The request to a node is two spans, one at each end.
const DIRECT: [&str; 3] = ["PUT /push/{uaid}", "PUT /push/{uaid}", "send notification"];
const STORED: &str = "wait to store messages";
const TOLD: [&str; 2] = ["PUT /notif/{uaid}", "PUT /notif/{uaid}"];

#[testkit::test]
async fn a_message_is_one_trace_from_the_request_to_the_socket(it: Installation) {
    let mut scene = Scene::of(it).await;
    // Long enough for a user agent on a slow machine, and waited for once.
    let ack_wait = ("POSTRIDER__WEBPUSH__CONNECTION__ACK_WAIT_MILLIS", 2_000);
    scene.fleet = scene.fleet.with_webpush().with(ack_wait.0, ack_wait.1);
    let senders = Senders::start(&scene, &[]).await;
    let (node, address) = node(&scene).await;
    let mut agent = UserAgent::connect(&address, "").await;
    let endpoint = agent.subscribe().await;

    let first = caller(1);
    let (sent, taken) = tokio::join!(senders.send(&endpoint, &first), agent.take());
    assert_eq!(sent, taken);
    let tree = scene.of_message(&first, &DIRECT).await;
    is_direct(&tree);
    let told = format!("{tree:?}");
    for private in [&*agent.uaid, &*endpoint, &*sent] {
        assert!(!told.contains(private), "{private:?} is in {told}");
    }

    // The user agent takes it and does not acknowledge it in time: it is stored, and its node told.
    let late = caller(2);
    let late_sent = senders.send(&endpoint, &late).await;
    let names = [DIRECT.as_slice(), &[STORED], &TOLD].concat();
    let tree = scene.of_message(&late, &names).await;
    is_direct(&tree);
    let at_node = |span: &&&Span| span.kind == SpanKind::Server;
    let told = tree.named(TOLD[0]);
    let told = told.iter().find(at_node).expect("the node is told");
    assert_eq!(
        tree.way_up(told),
        ["webpush-endpoint: PUT /notif/{uaid}", RECEIVED]
    );
    assert_eq!(agent.take().await, late_sent);

    node.kill();
    let stored = caller(3);
    let sent = senders.send(&endpoint, &stored).await;
    let tree = scene.of_message(&stored, &[STORED]).await;
    let asked = tree.only("PUT /push/{uaid}");
    assert_eq!((asked.failed, asked.attribute("error.type")), (true, "refused"));
    let (_node, address) = self::node(&scene).await;
    let mut agent = UserAgent::connect(&address, &agent.uaid).await;
    let mut taken = agent.take().await;
    // The killed node may not have got to know that it was acknowledged: it comes again then.
    if taken == late_sent {
        taken = agent.take().await;
    }
    assert_eq!(taken, sent);
    let tree = scene.of_message(&stored, &["send notification"]).await;
    let sent = tree.only("send notification");
    assert_eq!(sent.attribute("postrider.source"), "stored");
    assert_eq!(tree.way_up(sent), [RECEIVED], "whatever happened in between");

    // A node decides nothing by itself, although it would record all of what it begins.
    let never = ("POSTRIDER__TELEMETRY__SAMPLE_RATIO", "0".to_owned());
    let unsampled = Senders::start(&scene, &[never]).await;
    let unrecorded = caller(4);
    let (sent, taken) = tokio::join!(unsampled.send(&endpoint, &unrecorded), agent.take());
    assert_eq!(sent, taken);
    // What comes after it has arrived, so it would have.
    let last = caller(5);
    let (sent, taken) = tokio::join!(senders.send(&endpoint, &last), agent.take());
    assert_eq!(sent, taken);
    is_direct(&scene.of_message(&last, &DIRECT).await);
    scene.nothing_begins_at_a_node();
}

/// Notifications were sent within the request that handed them over.
fn is_direct(tree: &Tree) {
    let root = tree.root();
    assert_eq!((&*root.service, &*root.parent), ("webpush-endpoint", ""));
    assert_eq!(root.attribute("http.response.status_code"), "201");
    let sent = tree.only("send notification");
    assert_eq!(sent.service, "webpush-connection");
    assert_eq!(sent.attribute("postrider.source"), "direct");
    let handed_over = [
        "webpush-connection: PUT /push/{uaid}",
        "webpush-endpoint: PUT /push/{uaid}",
        RECEIVED,
    ];
    assert_eq!(tree.way_up(sent), handed_over);
}

/// A node for senders.
struct Senders {
    address: String,
    _process: Process,
}

impl Senders {
    async fn start(scene: &Scene, settings: &[(&'static str, String)]) -> Self {
        let mut process = scene.fleet.start_with(Service::WebpushEndpoint, settings).await;
        Self {
            address: process.address_logged_with("listening").await,
            _process: process,
        }
    }

    async fn send(&self, endpoint: &str, caller: &str) -> String {
        send_with(&self.address, endpoint, &[("traceparent", caller)]).await
    }
}

/// A node for user agents.
async fn node(scene: &Scene) -> (Process, String) {
    let mut node = scene.fleet.start(Service::WebpushConnection).await;
    let address = node.address_logged_with("listening").await;
    (node, address)
}

/// The `traceparent` of a sender, which is a stranger.
fn caller(number: u8) -> String {
    format!("00-{number:02}f92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")
}

impl Scene {
    /// The trace that begins with the request of a caller, when it has spans with these names.
    async fn of_message(&self, caller: &str, names: &[&str]) -> Tree {
        let caller = (caller[3..35].to_owned(), caller[36..52].to_owned());
        let request = eventually("the span of the request", async || {
            let mut spans = self.collector.spans().into_iter();
            spans.find(|span| span.links.contains(&caller))
        })
        .await;
        let request = Traceparent(format!("00-{}-{}-01", request.trace, request.id));
        Tree::with(&self.collector, &request, names).await
    }

    /// Every trace is whole, and none has its root at a node that user agents are connected to.
    fn nothing_begins_at_a_node(&self) {
        for span in self.collector.spans() {
            let trace = self.collector.trace(&span.trace);
            assert!(orphans(&trace).is_empty(), "{:#?}", orphans(&trace));
            let begins = span.parent.is_empty();
            assert!(!begins || span.service != "webpush-connection", "{span:?}");
        }
    }
}
