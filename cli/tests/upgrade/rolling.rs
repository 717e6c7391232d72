//! One service after the other is replaced, until each mix of the two versions has been at work: forward, back, and forward
//! again. A replacement is there before the old process goes, so that replicas of both versions work side by side.

use sqlx::PgPool;
use testkit::{Installation, run};

use crate::apis::Apis;
use crate::rig::{Process, Service, Subscribers};
use crate::stream::{Stream, make_trouble};
use crate::tallies::tallies_equal_counts;
use crate::versions::Version::{Previous, This};
use crate::versions::{Version, Versions, stop};

/// What is replaced by which version, one after the other. It begins with the previous version of all three and comes
/// through all eight mixes; the seventh step back is the previous version of everything on the new schema.
const STEPS: [(Service, Version); 10] = [
    (Service::IngestApi, This),
    (Service::Dispatcher, This),
    (Service::IngestApi, Previous),
    (Service::RetryWorker, This),
    (Service::IngestApi, This),
    (Service::Dispatcher, Previous),
    (Service::IngestApi, Previous),
    // Rolled back.
    (Service::RetryWorker, Previous),
    // And forward again, another way.
    (Service::RetryWorker, This),
    (Service::Dispatcher, This),
];

/// Everything at work.
struct Scene {
    it: Installation,
    versions: Versions,
    subscribers: Subscribers,
    /// In the order of [`Service::ALL`].
    at_work: [(Version, Process); 3],
}

#[sqlx::test(migrations = false)]
async fn every_mix_of_two_versions_delivers_everything(pool: PgPool) {
    run(pool, async |it: Installation| {
        let mut scene = Scene::of(it).await;
        let previous = Apis::open(&scene.it, &scene.versions, Previous).await;
        let mut stream = Stream::start(scene.versions.fleet(Previous).door());
        stream.goes_on().await;
        scene.delivers(&mut stream, 0).await;

        // Answers keep coming meanwhile and afterwards: the old services do not notice.
        scene.versions.migrate().await;
        stream.goes_on().await;
        scene.delivers(&mut stream, 1).await;
        previous.answers().await;
        let this = Apis::open(&scene.it, &scene.versions, This).await;
        for (number, (service, version)) in STEPS.into_iter().enumerate() {
            scene.replace(service, version, &mut stream).await;
            scene.delivers(&mut stream, number + 2).await;
            previous.answers().await;
            this.answers().await;
        }
        scene.replace(Service::IngestApi, This, &mut stream).await;
        previous.close().await;
        scene.ends(stream).await;
        this.answers().await;
    })
    .await;
}

impl Scene {
    /// The previous version of everything, on its own schema.
    async fn of(it: Installation) -> Self {
        let versions = Versions::of(&it).await;
        let subscribers = Subscribers::usual(&it).await;
        make_trouble(&it, &subscribers);
        let at_work = versions.fleet(Previous).start_all().await;
        Self {
            it,
            versions,
            subscribers,
            at_work: at_work.map(|process| (Previous, process)),
        }
    }

    /// What this mix is handed in now is delivered by it.
    async fn delivers(&self, stream: &mut Stream, number: usize) {
        let letters: String = self.at_work.iter().map(|(version, _)| letter(*version)).collect();
        let door = self.versions.fleet(This).door();
        let mix = format!("mix{number}{letters}");
        stream
            .is_delivered(&self.it, (&door, &self.subscribers), &mix)
            .await;
    }

    /// First both replicas, then only the new one.
    async fn replace(&mut self, service: Service, version: Version, stream: &mut Stream) {
        let replacement = self.versions.start(version, service).await;
        stream.goes_on().await;
        let place = Service::ALL.iter().position(|one| *one == service);
        let place = &mut self.at_work[place.expect("one of those that everything goes through")];
        let (old, replaced) = std::mem::replace(place, (version, replacement));
        assert_ne!(old, version, "{service:?} is of that version already");
        stop(replaced).await;
        if service == Service::Dispatcher {
            place.1.leads().await;
        }
        stream.goes_on().await;
    }

    /// Nothing is lost, nothing came twice, and nothing is counted wrongly.
    async fn ends(self, stream: Stream) {
        let (pushes, notifications) = stream.audit(&self.it, &self.subscribers).await;
        pushes.assert_no_duplicates();
        notifications.assert_no_duplicates();
        tallies_equal_counts(&self.it.pool).await;
        for (_, process) in self.at_work {
            stop(process).await;
        }
    }
}

fn letter(version: Version) -> char {
    match version {
        Previous => 'p',
        This => 't',
    }
}
