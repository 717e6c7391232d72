//! Callers of `POST /push` as they should be: each push has an Idempotency-Key, and what was not answered is asked again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Client, StatusCode, header};
use serde_json::json;
use testkit::PATIENCE;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

/// Requests that are under way at once.
const CALLERS: usize = 8;
/// Pause of a caller that was not answered.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// A push to hand in. Its user, who gets no other one, is the Idempotency-Key too.
#[derive(Debug, Clone)]
pub(crate) struct Push {
    pub(crate) user: String,
    pub(crate) prototype: Option<&'static str>,
    pub(crate) cron: Option<&'static str>,
}

/// Pushes to be sent at once to the users `{group}-0`, `{group}-1` and so on.
pub(crate) fn pushes(group: &str, count: usize) -> Vec<Push> {
    (0..count)
        .map(|number| Push {
            user: format!("{group}-{number}"),
            prototype: Some("Hello"),
            cron: None,
        })
        .collect()
}

/// [`pushes`] with a sending window.
pub(crate) fn windowed_pushes(group: &str, count: usize, cron: &'static str) -> Vec<Push> {
    let windowed = |push| Push {
        cron: Some(cron),
        ..push
    };
    pushes(group, count).into_iter().map(windowed).collect()
}

/// The identifier that each user's push was answered with.
pub(crate) type Answers = BTreeMap<String, Uuid>;

/// A 202.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) id: Uuid,
    /// Whether the same request had been answered before.
    pub(crate) replayed: bool,
}

/// The way in: whichever instances of ingest-api there are.
#[derive(Clone)]
pub(crate) struct Door {
    pub(super) http: Client,
    pub(super) key: String,
    pub(super) addresses: Arc<Mutex<Vec<String>>>,
    /// Requests so far.
    pub(super) turns: Arc<AtomicUsize>,
}

impl Door {
    /// Hands a push in; `None` when there was no answer, or one that says "not now".
    pub(crate) async fn hand_in(&self, push: &Push) -> Option<Accepted> {
        let address = self.address()?;
        let body = json!({
            "platform": "IOS",
            "messagePrototypeKey": push.prototype,
            "pushKey": push.user,
            "message": format!("Hello {}!", push.user),
            "cronExpression": push.cron,
        });
        let request = self
            .http
            .post(format!("http://{address}/push"))
            .bearer_auth(&self.key)
            .header("Idempotency-Key", &push.user)
            .json(&body);
        let response = request.send().await.ok()?;
        match response.status() {
            StatusCode::ACCEPTED => {}
            StatusCode::SERVICE_UNAVAILABLE => return None,
            status => panic!("{push:?} was answered {status}"),
        }
        let location = response.headers()[header::LOCATION].to_str().expect("text");
        let id = location.rsplit('/').next().and_then(|id| id.parse().ok());
        Some(Accepted {
            id: id.expect("the Location names the push"),
            replayed: response.headers().contains_key("idempotent-replayed"),
        })
    }

    /// One instance after the other.
    fn address(&self) -> Option<String> {
        let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let index = self
            .turns
            .fetch_add(1, Ordering::Relaxed)
            .checked_rem(addresses.len())?;
        Some(addresses[index].clone())
    }
}

/// Callers at work.
pub(crate) struct Callers {
    tasks: JoinSet<()>,
    answers: watch::Receiver<Answers>,
}

impl Callers {
    pub(super) fn start(door: &Door, pushes: Vec<Push>) -> Self {
        let (sender, answers) = watch::channel(Answers::new());
        let pushes = Arc::new(Mutex::new(pushes.into_iter()));
        let mut tasks = JoinSet::new();
        for _ in 0..CALLERS {
            tasks.spawn(call(door.clone(), Arc::clone(&pushes), sender.clone()));
        }
        Self { tasks, answers }
    }

    /// Waits until this many pushes were answered 202.
    pub(crate) async fn have_answers(&mut self, count: usize) {
        let enough = self.answers.wait_for(|answers| answers.len() >= count).await;
        enough.expect("there are so many pushes");
    }

    /// How many pushes were answered so far.
    pub(crate) fn answered(&self) -> usize {
        self.answers.borrow().len()
    }

    /// Waits until every push was answered 202.
    pub(crate) async fn finish(mut self) -> Answers {
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("a caller does not panic");
        }
        let answers = self.answers.borrow();
        answers.clone()
    }
}

async fn call(door: Door, pushes: Arc<Mutex<std::vec::IntoIter<Push>>>, answers: watch::Sender<Answers>) {
    let next = || pushes.lock().unwrap_or_else(PoisonError::into_inner).next();
    while let Some(push) = next() {
        let accepted = tokio::time::timeout(PATIENCE, insist(&door, &push)).await;
        let accepted = accepted.unwrap_or_else(|_| panic!("{push:?} was never accepted"));
        answers.send_modify(|answers| {
            answers.insert(push.user, accepted.id);
        });
    }
}

async fn insist(door: &Door, push: &Push) -> Accepted {
    loop {
        if let Some(accepted) = door.hand_in(push).await {
            return accepted;
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}
