//! Rows of every kind and state on the schema of the previous version, made by its services where they make such rows by
//! being asked, and as they would have left them where that takes a fault at the right moment.

use chrono::TimeDelta;
use domain::clock::{Clock as _, SystemClock};
use domain::notification::NotificationState;
use domain::push::{PushId, PushState};
use serde_json::{Value, json};
use testkit::Installation;
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use uuid::Uuid;

use crate::apis::Apis;
use crate::rig::{RESELLERS, Subscriber, Subscribers, events, pushes, windowed_pushes};
use crate::versions::Version::Previous;
use crate::versions::Versions;

/// What is in the database, by identifier.
pub(super) struct Left {
    /// Handed in, or made as waiting, in flight, failed: each is to be SENT by this version.
    pub(super) to_send: Vec<Uuid>,
    pub(super) sent_before: Uuid,
    pub(super) discarded: Uuid,
    /// Notifications that are to be SENT by this version.
    pub(super) to_deliver: Vec<Uuid>,
    /// Those that have ended, and stay so.
    pub(super) ended: Vec<(Uuid, NotificationState)>,
    pub(super) replay: String,
    /// Jobs of dead letters.
    pub(super) jobs: [String; 2],
}

/// One that gets everything, one that is paused by an operator, one that its reseller switches off, all of the same reseller.
pub(super) fn subscribers() -> Vec<Subscriber> {
    let [acme, _] = RESELLERS;
    vec![
        Subscriber::new("everything", acme, &["*"]),
        Subscriber::new("held", acme, &["*"]),
        Subscriber::new("off", acme, &["*"]),
    ]
}

pub(super) const EVERYTHING: usize = 0;
pub(super) const HELD: usize = 1;
pub(super) const OFF: usize = 2;

impl Left {
    /// Makes all of it. Neither a dispatcher nor a retry worker is there.
    pub(super) async fn by(
        it: &Installation,
        versions: &Versions,
        subscribers: &Subscribers,
        client: &Apis,
    ) -> Self {
        let off = subscribers.all[OFF].id;
        // Which makes a mail that waits.
        client
            .post_as_reseller(&format!("/subscriptions/{off}/deactivate"), None)
            .await;
        let held = subscribers.all[HELD].id;
        let mut left = Self::in_every_state(it, subscribers.all[EVERYTHING].id).await;
        let mut all = pushes("queued", 5);
        all.extend(windowed_pushes("scheduled", 3, "* * * * * ?"));
        let queued = versions.fleet(Previous).hand_in(all).finish().await;
        left.to_send.extend(queued.into_values());
        versions
            .fleet(Previous)
            .hand_in(events("queued", 6))
            .finish()
            .await;
        let since = json!({"since": SystemClock.now() - TimeDelta::days(1)});
        let replay = client
            .post_as_reseller(&format!("/subscriptions/{held}/replays"), Some(since))
            .await;
        left.replay = id_of(&replay);
        left
    }

    async fn in_every_state(it: &Installation, subscription: Uuid) -> Self {
        let mut left = Self {
            to_send: Vec::new(),
            sent_before: Uuid::nil(),
            discarded: Uuid::nil(),
            to_deliver: Vec::new(),
            ended: Vec::new(),
            replay: String::new(),
            jobs: Default::default(),
        };
        let cancelled = |state: &PushState| *state == PushState::Cancelled;
        for state in PushState::ALL.into_iter().filter(|state| !cancelled(state)) {
            let id = push(it, state).await;
            match state {
                PushState::Sent => left.sent_before = id,
                _ => left.to_send.push(id),
            }
        }
        for state in NotificationState::ALL {
            let row = NotificationRow::in_state(state, subscription);
            let made = row.leased_for(TimeDelta::seconds(-1)).make(&it.pool).await;
            match state {
                NotificationState::Sent
                | NotificationState::Failed
                | NotificationState::GivenUp
                | NotificationState::Cancelled => {
                    left.ended.push((made.id.uuid(), state));
                }
                _ => left.to_deliver.push(made.id.uuid()),
            }
        }
        left
    }

    /// What an operator has done: something is paused, a dead letter was replayed by hand and another one discarded, a job is to
    /// replay those that are left and has not begun, one that is to discard those of the other lane is paused.
    pub(super) async fn is_worked_on(&mut self, it: &Installation, subscribers: &Subscribers, client: &Apis) {
        let held = subscribers.all[HELD].id;
        client.change(&format!("/subscriptions/{held}/pause")).await;
        let replayed = push(it, PushState::Failed).await;
        client
            .change(&format!(
                "/dead-letters/{}/replay",
                dead_letter_of(it, replayed).await
            ))
            .await;
        self.to_send.push(replayed);
        self.discarded = push(it, PushState::GivenUp).await;
        client
            .change(&format!(
                "/dead-letters/{}/discard",
                dead_letter_of(it, self.discarded).await
            ))
            .await;
        let replaying = json!({"action": "replay", "filter": {"lane": "push"}, "perSecond": 1});
        let discarding = json!({"action": "discard", "filter": {"lane": "reseller"}, "note": "the upgrade"});
        self.jobs = [
            id_of(&client.post("/dead-letters/jobs", replaying).await),
            id_of(&client.post("/dead-letters/jobs", discarding).await),
        ];
        client
            .change(&format!("/dead-letters/jobs/{}/pause", self.jobs[1]))
            .await;
    }

    /// The previous version goes on taking in after the migration.
    pub(super) async fn comes_later(&mut self, versions: &Versions) {
        let later = versions
            .fleet(Previous)
            .hand_in(pushes("later", 5))
            .finish()
            .await;
        self.to_send.extend(later.into_values());
        versions
            .fleet(Previous)
            .hand_in(events("later", 6))
            .finish()
            .await;
    }

    /// What was paused goes on, because this version's operator says so.
    pub(super) async fn is_resumed(&self, subscribers: &Subscribers, client: &Apis) {
        let held = subscribers.all[HELD].id;
        let pauses = client.look("/pauses").await;
        assert_eq!(pauses["items"][0]["key"], json!(held), "{pauses}");
        client.change(&format!("/subscriptions/{held}/resume")).await;
        let job = client.look(&format!("/dead-letters/jobs/{}", self.jobs[1])).await;
        assert_eq!(job["status"], "PAUSED", "{job}");
        client
            .change(&format!("/dead-letters/jobs/{}/resume", self.jobs[1]))
            .await;
    }

    /// The story of each row can be told.
    pub(super) async fn everything_is_explained(&self, client: &Apis) {
        let pushes = [self.sent_before, self.discarded];
        let ended = self.ended.iter().map(|(id, _)| *id);
        for id in pushes
            .iter()
            .chain(&self.to_send)
            .chain(&self.to_deliver)
            .copied()
            .chain(ended)
        {
            client.look(&format!("/explain/{id}")).await;
        }
    }
}

/// With its identifier as its user's, by which it is known at Swrve.
async fn push(it: &Installation, state: PushState) -> Uuid {
    let row = PushRow::in_state(state).created_at(SystemClock.now());
    let id: PushId = row.leased_for(TimeDelta::seconds(-1)).make(&it.pool).await.id;
    sqlx::query("UPDATE push_notifications SET push_key = id::text WHERE id = $1")
        .bind(id.uuid())
        .execute(&it.pool)
        .await
        .expect("the row can be changed");
    id.uuid()
}

async fn dead_letter_of(it: &Installation, push: Uuid) -> Uuid {
    sqlx::query_scalar("SELECT id FROM dead_letters WHERE push_id = $1")
        .bind(push)
        .fetch_one(&it.pool)
        .await
        .expect("it has a dead letter")
}

fn id_of(document: &Value) -> String {
    document["id"].as_str().expect("it has an identifier").to_owned()
}
