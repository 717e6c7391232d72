//! `kill -9` of ingest-api while callers wait for their answers.

use testkit::Installation;

use crate::rig::{Delivered, Fleet, SENT, Service, Subscribers, events, queue_leases_run_out};

const EVENTS: usize = 300;

#[testkit::test]
async fn an_event_whose_answer_was_lost_is_stored_and_fanned_out_once(it: Installation) {
    let subscribers = Subscribers::usual(&it).await;
    let fleet = Fleet::of(&it).await;
    let [ingest, _dispatcher, _worker] = fleet.start_all().await;
    let all = events("all", EVENTS);
    let mut callers = fleet.hand_in(all.clone());
    callers.have_answers(EVENTS / 3).await;
    ingest.kill();
    fleet.forget_addresses();
    let before = callers.answered();
    assert!(before < EVENTS, "it was killed too late");
    let _ingest = fleet.start(Service::IngestApi).await;
    let answers = callers.finish().await;
    // Some are stored as queued and were never published.
    queue_leases_run_out(&it).await;

    let door = fleet.door();
    for event in &all {
        let again = door.insist(event).await;
        assert!(again.replayed, "{event:?} was answered as if it were new");
        assert_eq!(again.id, answers[&event.id]);
    }
    let delivered = Delivered::of(&it, &subscribers, (&all, &answers), |_, _| SENT).await;
    delivered.assert_no_duplicates();
}
