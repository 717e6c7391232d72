//! `kill -9` of ingest-api while callers wait for their answers.

use domain::push::PushStatus;
use testkit::Installation;

use crate::rig::{Ended, Fleet, Service, pushes};

const PUSHES: usize = 300;

#[testkit::test]
async fn what_was_answered_is_not_lost_and_what_was_not_is_stored_once(it: Installation) {
    let fleet = Fleet::of(&it).await;
    let [ingest, _dispatcher, _worker] = fleet.start_all().await;
    let mut callers = fleet.hand_in(pushes("all", PUSHES));
    callers.have_answers(PUSHES / 3).await;
    ingest.kill();
    fleet.forget_addresses();
    let before = callers.answered();
    assert!(before < PUSHES, "it was killed too late");
    let _ingest = fleet.start(Service::IngestApi).await;
    let answers = callers.finish().await;

    let door = fleet.door();
    for push in pushes("all", PUSHES) {
        let again = door.insist(&push).await;
        assert!(again.replayed, "{push:?} was answered as if it were new");
        assert_eq!(again.id, answers[&push.user]);
    }
    let ended = Ended::of(&it, &answers, |_| PushStatus::Sent).await;
    ended.assert_no_duplicates();
}
