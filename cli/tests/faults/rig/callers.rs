//! Callers as they should be: what they hand in has a key of its own, and what was not answered is asked again.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::{Client, RequestBuilder, StatusCode, header};
use testkit::PATIENCE;
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

/// Requests that are under way at once.
const CALLERS: usize = 8;
/// Pause of a caller that was not answered.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// What a caller hands in.
pub(crate) trait Submission: Debug + Send + Sync + 'static {
    /// Where to.
    const PATH: &'static str;

    /// By which the service knows it when it comes again; nothing else has the same one.
    fn key(&self) -> &str;

    /// Puts it into a request, with its key.
    fn fill(&self, request: RequestBuilder) -> RequestBuilder;
}

/// The identifier that was answered, by the key of what was handed in.
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
    /// Hands something in; `None` when there was no answer, or one that says "not now".
    pub(crate) async fn hand_in<S: Submission>(&self, submission: &S) -> Option<Accepted> {
        let address = self.address()?;
        let request = self
            .http
            .post(format!("http://{address}{}", S::PATH))
            .bearer_auth(&self.key);
        let response = submission.fill(request).send().await.ok()?;
        match response.status() {
            StatusCode::ACCEPTED => {}
            StatusCode::SERVICE_UNAVAILABLE => return None,
            status => panic!("{submission:?} was answered {status}"),
        }
        let location = response.headers()[header::LOCATION].to_str().expect("text");
        let id = location.rsplit('/').next().and_then(|id| id.parse().ok());
        Some(Accepted {
            id: id.expect("the Location names what was accepted"),
            replayed: response.headers().contains_key("idempotent-replayed"),
        })
    }

    /// [`Self::hand_in`] until there is an answer.
    pub(crate) async fn insist<S: Submission>(&self, submission: &S) -> Accepted {
        let accepted = tokio::time::timeout(PATIENCE, insist(self, submission)).await;
        accepted.unwrap_or_else(|_| panic!("{submission:?} was never accepted"))
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
    /// Has them begin.
    pub(crate) fn start<S: Submission>(door: &Door, submissions: Vec<S>) -> Self {
        let (sender, answers) = watch::channel(Answers::new());
        let submissions = Arc::new(Mutex::new(submissions.into_iter()));
        let mut tasks = JoinSet::new();
        for _ in 0..CALLERS {
            tasks.spawn(call(door.clone(), Arc::clone(&submissions), sender.clone()));
        }
        Self { tasks, answers }
    }

    /// Waits until this many were answered 202.
    pub(crate) async fn have_answers(&mut self, count: usize) {
        let enough = self.answers.wait_for(|answers| answers.len() >= count).await;
        enough.expect("so many are handed in");
    }

    /// How many were answered so far.
    pub(crate) fn answered(&self) -> usize {
        self.answers.borrow().len()
    }

    /// Waits until everything was answered 202.
    pub(crate) async fn finish(mut self) -> Answers {
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("a caller does not panic");
        }
        let answers = self.answers.borrow();
        answers.clone()
    }
}

async fn call<S: Submission>(
    door: Door,
    submissions: Arc<Mutex<std::vec::IntoIter<S>>>,
    answers: watch::Sender<Answers>,
) {
    let next = || submissions.lock().unwrap_or_else(PoisonError::into_inner).next();
    while let Some(submission) = next() {
        let accepted = door.insist(&submission).await;
        answers.send_modify(|answers| {
            answers.insert(submission.key().to_owned(), accepted.id);
        });
    }
}

async fn insist(door: &Door, submission: &impl Submission) -> Accepted {
    loop {
        if let Some(accepted) = door.hand_in(submission).await {
            return accepted;
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}
