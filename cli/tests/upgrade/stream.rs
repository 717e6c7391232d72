//! Traffic that does not stop while services come and go, and its end.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::notification::NotificationStatus;
use domain::push::PushStatus;
use simulators::receiver::Rule as EndpointRule;
use testkit::{Installation, eventually};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::rig::{
    Answers, Callers, Delivered, Door, Ended, Event, Push, SENT, Subscribers, answer_to, count_with_status,
    events, notifications_with_status, pushes, windowed_pushes,
};

/// Between two portions; about a hundred pushes and events come in a second.
const PAUSE: Duration = Duration::from_millis(150);
/// Of each kind, in a portion.
const PORTION: usize = 2;
/// By which it can be seen that a mix of versions works.
const PROBE: usize = 10;

/// What was handed in and answered.
#[derive(Default, Clone)]
pub(crate) struct HandedIn {
    pushes: Answers,
    events: Vec<Event>,
    events_answered: Answers,
}

/// Callers that hand in one portion after the other until they are told to stop.
pub(crate) struct Stream {
    stop: watch::Sender<bool>,
    portions: watch::Receiver<usize>,
    task: JoinHandle<HandedIn>,
    probed: HandedIn,
}

/// Swrve and the endpoints answer some of it badly at first, some of it for ever.
pub(crate) fn make_trouble(it: &Installation, subscribers: &Subscribers) {
    let script = vec![answer_to("flaky", 503, Some(40)), answer_to("refused", 400, None)];
    it.sim.script(script).expect("a script");
    let flaky = EndpointRule {
        times: Some(60),
        ..EndpointRule::answering(503)
    };
    subscribers.script(vec![flaky.at("/domains")]);
}

fn expected_status(user: &str) -> PushStatus {
    if user.starts_with("refused-") {
        PushStatus::Failed
    } else {
        PushStatus::Sent
    }
}

fn portion(number: usize) -> (Vec<Push>, Vec<Event>) {
    let mut all = pushes(&format!("plain-{number}"), PORTION);
    all.extend(pushes(&format!("flaky-{number}"), PORTION));
    all.extend(pushes(&format!("refused-{number}"), 1));
    all.extend(windowed_pushes(&format!("windowed-{number}"), 1, "* * * * * ?"));
    (all, events(&format!("stream-{number}"), 3 * PORTION))
}

impl Stream {
    /// Lets it begin.
    pub(crate) fn start(door: Door) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (progress, portions) = watch::channel(0);
        Self {
            stop,
            portions,
            task: tokio::spawn(hand_in(door, stopped, progress)),
            probed: HandedIn::default(),
        }
    }

    /// Waits until two more portions were answered: the second one was handed in as a whole from now on.
    pub(crate) async fn goes_on(&mut self) {
        let now = *self.portions.borrow_and_update();
        let answered = self.portions.wait_for(|portions| *portions >= now + 2).await;
        answered.expect("callers do not give up");
    }

    /// Has something handed in, and waits until it was delivered: whichever services there are, they deliver.
    pub(crate) async fn is_delivered(
        &mut self,
        it: &Installation,
        (door, subscribers): (&Door, &Subscribers),
        mix: &str,
    ) {
        let of_mix = events(mix, PROBE);
        let expected = subscribers.notifications_of(&of_mix);
        let pushed = Callers::start(door, pushes(mix, PROBE)).finish().await;
        let answered = Callers::start(door, of_mix.clone()).finish().await;
        self.probed.pushes.extend(pushed);
        self.probed.events.extend(of_mix);
        self.probed.events_answered.extend(answered);
        eventually(&format!("{mix} to deliver"), async || {
            let pushed = count_with_status(it, mix, PushStatus::Sent).await;
            let notified = notifications_with_status(it, mix, NotificationStatus::Sent).await;
            (pushed == PROBE as i64 && notified == expected).then_some(())
        })
        .await;
    }

    /// Ends it, waits until everything has ended, and checks that.
    pub(crate) async fn audit(self, it: &Installation, subscribers: &Subscribers) -> (Ended, Delivered) {
        self.stop.send_replace(true);
        let mut all = self.task.await.expect("no caller panics");
        all.pushes.extend(self.probed.pushes);
        all.events.extend(self.probed.events);
        all.events_answered.extend(self.probed.events_answered);
        let pushes = Ended::of(it, &all.pushes, expected_status).await;
        let events = (&*all.events, &all.events_answered);
        let notifications = Delivered::of(it, subscribers, events, |_, _| SENT).await;
        let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
        for user in all.pushes.keys() {
            *ends.entry(expected_status(user).as_str()).or_default() += 1;
        }
        assert_eq!(ends.len(), 2, "pushes were sent and refused: {ends:?}");
        (pushes, notifications)
    }
}

async fn hand_in(door: Door, stopped: watch::Receiver<bool>, progress: watch::Sender<usize>) -> HandedIn {
    let mut all = HandedIn::default();
    let mut ticks = tokio::time::interval(PAUSE);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for number in 0.. {
        if *stopped.borrow() {
            break;
        }
        ticks.tick().await;
        let (pushes, events) = portion(number);
        all.events.extend(events.iter().cloned());
        let (pushed, answered) = tokio::join!(
            Callers::start(&door, pushes).finish(),
            Callers::start(&door, events).finish()
        );
        all.pushes.extend(pushed);
        all.events_answered.extend(answered);
        progress.send_replace(number + 1);
    }
    all
}
