//! Questions to the database that are asked together: what has come while the last statement ran is the next one.
//!
//! It deliberately waits for nothing that is not under way already to make batches larger.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_api::Outage;
use lifecycle::TaskGroup;
use metrics::Histogram;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

/// How long the database may take for one of them.
const LIMIT: Duration = Duration::from_secs(8);
/// Batches that may wait for each that is asked.
const BATCHES_WAITING: usize = 4;

/// The database did not answer, or more is asked than it can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unanswered;

type Waiting<A> = oneshot::Sender<Result<A, Unanswered>>;
type Questions<Q, A> = mpsc::Receiver<(Q, Waiting<A>)>;

/// The entrance to a statement that answers many questions.
pub(crate) struct Batch<Q, A> {
    questions: mpsc::Sender<(Q, Waiting<A>)>,
}

/// A statement that answers each of several questions, in their order.
pub(crate) trait Statement<Q, A>: Send + Sync + 'static {
    /// Asks.
    fn ask(&self, questions: &[Q]) -> impl Future<Output = Result<Vec<A>, store::Error>> + Send;
}

/// How much is asked at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Statements under way.
    pub(crate) workers: usize,
    /// Questions in one of them.
    pub(crate) most: usize,
    /// How long one of them is the only one. Where a statement computes and does not wait, a second one beside it makes both smaller and
    /// answers nothing sooner; after this time it is taken to wait.
    pub(crate) alone: Duration,
}

struct Worker<Q, A, S> {
    questions: Arc<Mutex<Questions<Q, A>>>,
    statement: Arc<S>,
    outage: Arc<Outage>,
    size: Option<Histogram>,
    sizes: Sizes,
}

impl<Q: Send + Sync + 'static, A: Send + 'static> Batch<Q, A> {
    /// Starts the workers, which end when the entrance is dropped and all has been answered. `what` completes "failed to …".
    pub(crate) fn start<S: Statement<Q, A>>(
        statement: S,
        what: &'static str,
        sizes: Sizes,
        size: Option<&Histogram>,
        tasks: &TaskGroup,
    ) -> Self {
        let (sender, receiver) = mpsc::channel(sizes.workers * sizes.most * BATCHES_WAITING);
        let questions = Arc::new(Mutex::new(receiver));
        let (statement, outage) = (Arc::new(statement), Arc::new(Outage::of(what)));
        for _ in 0..sizes.workers {
            let worker = Worker {
                questions: Arc::clone(&questions),
                statement: Arc::clone(&statement),
                outage: Arc::clone(&outage),
                size: size.cloned(),
                sizes,
            };
            tasks.spawn("batch", worker.run());
        }
        Self { questions: sender }
    }

    /// Asks together with what is asked meanwhile.
    pub(crate) async fn ask(&self, question: Q) -> Result<A, Unanswered> {
        let (answer, answered) = oneshot::channel();
        self.questions
            .try_send((question, answer))
            .map_err(|_| Unanswered)?;
        answered.await.unwrap_or(Err(Unanswered))
    }
}

impl<Q: Send + Sync + 'static, A: Send + 'static, S: Statement<Q, A>> Worker<Q, A, S> {
    async fn run(self) {
        let Sizes { most, alone, .. } = self.sizes;
        let mut taken = Vec::with_capacity(most);
        // One for all statements: to put it off costs nothing, to begin one wakes the thread that waits for the network.
        let mut alone_is_over = pin!(sleep(alone));
        let mut queue = self.questions.lock().await;
        loop {
            if queue.recv_many(&mut taken, most).await == 0 {
                return;
            }
            // Tasks that can run now run first, and requests that have arrived are read: what they ask costs next to nothing as
            // a part of this statement, and as much as this one if it comes after it.
            yield_now().await;
            while taken.len() < most
                && let Ok(question) = queue.try_recv()
            {
                taken.push(question);
            }
            // A caller that has gone was told that it got no answer.
            let open = taken.drain(..).filter(|(_, answer)| !answer.is_closed());
            let (questions, waiting): (Vec<Q>, Vec<Waiting<A>>) = open.unzip();
            if questions.is_empty() {
                continue;
            }
            let mut answering = pin!(self.answer(questions, waiting));
            // A timer, even one of no time at all, runs until the next millisecond.
            let is_answered = !alone.is_zero() && {
                alone_is_over.as_mut().reset(Instant::now() + alone);
                tokio::select! {
                    biased;
                    () = answering.as_mut() => true,
                    () = alone_is_over.as_mut() => false,
                }
            };
            // Where one statement at a time is enough this worker goes on: to wake another one would only take time.
            if !is_answered {
                drop(queue);
                answering.await;
                queue = self.questions.lock().await;
            }
        }
    }

    async fn answer(&self, questions: Vec<Q>, waiting: Vec<Waiting<A>>) {
        if let Some(size) = &self.size {
            size.record(u32::try_from(questions.len()).unwrap_or(u32::MAX));
        }
        match self.ask(&questions).await {
            Ok(answers) => {
                for (waiting, answer) in waiting.into_iter().zip(answers) {
                    let _ = waiting.send(Ok(answer));
                }
            }
            Err(error) if error.is_transient() || questions.len() == 1 => {
                for waiting in waiting {
                    let _ = waiting.send(Err(Unanswered));
                }
            }
            // One question that the database refuses must not take its neighbours with it.
            Err(_) => {
                for (question, waiting) in questions.into_iter().zip(waiting) {
                    let answer = self.ask(std::slice::from_ref(&question)).await;
                    let _ = waiting.send(answer.ok().and_then(|mut one| one.pop()).ok_or(Unanswered));
                }
            }
        }
    }

    async fn ask(&self, questions: &[Q]) -> Result<Vec<A>, store::Error> {
        let answers = store::within(LIMIT, self.statement.ask(questions)).await;
        match &answers {
            Ok(_) => self.outage.worked(),
            Err(error) => self.outage.failed(error),
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use lifecycle::Shutdown;
    use tokio::sync::Semaphore;
    use tokio::time::timeout;

    use super::*;

    /// Doubles numbers once it is let; refuses 13.
    struct Double {
        let_go: Arc<Semaphore>,
        asked: Arc<AtomicUsize>,
    }

    impl Statement<u32, u32> for Double {
        async fn ask(&self, questions: &[u32]) -> Result<Vec<u32>, store::Error> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let _ = self.let_go.acquire().await;
            if questions.contains(&13) {
                return Err(store::Error::Corrupt {
                    what: "number",
                    found: "13".to_owned(),
                });
            }
            Ok(questions.iter().map(|number| number * 2).collect())
        }
    }

    fn batch(permits: usize) -> (Batch<u32, u32>, Arc<AtomicUsize>, Shutdown) {
        let sizes = Sizes {
            workers: 1,
            most: 4,
            alone: Duration::ZERO,
        };
        batch_of(sizes, Arc::new(Semaphore::new(permits)))
    }

    fn batch_of(sizes: Sizes, let_go: Arc<Semaphore>) -> (Batch<u32, u32>, Arc<AtomicUsize>, Shutdown) {
        let shutdown = Shutdown::new();
        let asked = Arc::new(AtomicUsize::new(0));
        let statement = Double {
            let_go,
            asked: Arc::clone(&asked),
        };
        let tasks = TaskGroup::under(&shutdown);
        (
            Batch::start(statement, "double", sizes, None, &tasks),
            asked,
            shutdown,
        )
    }

    #[tokio::test]
    async fn what_is_asked_meanwhile_is_asked_together() {
        let (batch, asked, _shutdown) = batch(1);
        let answers = tokio::join!(batch.ask(1), batch.ask(2), batch.ask(3), batch.ask(4));
        assert_eq!(answers, (Ok(2), Ok(4), Ok(6), Ok(8)));
        assert!(asked.load(Ordering::Relaxed) < 4);
    }

    #[tokio::test]
    async fn what_others_are_about_to_ask_is_asked_with_it() {
        let (batch, asked, _shutdown) = batch(1);
        let second = async {
            // By then the worker has taken the first question.
            yield_now().await;
            batch.ask(2).await
        };
        let answers = tokio::join!(batch.ask(1), second);
        assert_eq!(answers, (Ok(2), Ok(4)));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn no_statement_has_more_questions_than_it_may() {
        let (batch, asked, _shutdown) = batch(1);
        let others = async {
            yield_now().await;
            tokio::join!(
                batch.ask(2),
                batch.ask(3),
                batch.ask(4),
                batch.ask(5),
                batch.ask(6)
            )
        };
        let (first, others) = tokio::join!(batch.ask(1), others);
        assert_eq!((first, others), (Ok(2), (Ok(4), Ok(6), Ok(8), Ok(10), Ok(12))));
        assert_eq!(asked.load(Ordering::Relaxed), 2, "four, and then two");
    }

    /// Two questions, the second while the statement of the first is under way. Returns how many statements have begun at once, and how
    /// many by the time that the first is taken to wait.
    async fn begun(alone: Duration) -> (usize, usize) {
        // Timers count in milliseconds, at the beginning of which one of no time at all is over at once.
        tokio::time::advance(Duration::from_micros(300)).await;
        let sizes = Sizes {
            workers: 2,
            most: 4,
            alone,
        };
        let let_go = Arc::new(Semaphore::new(0));
        let (batch, asked, _shutdown) = batch_of(sizes, Arc::clone(&let_go));
        let asked = || asked.load(Ordering::Relaxed);
        let looking = async {
            let at_once = asked();
            sleep(alone * 2).await;
            let later = asked();
            let_go.add_permits(1);
            (at_once, later)
        };
        let second = async {
            while asked() == 0 {
                yield_now().await;
            }
            tokio::join!(batch.ask(2), async {
                // As often as all that can be done by then takes turns.
                for _ in 0..100 {
                    yield_now().await;
                }
                looking.await
            })
        };
        let (first, (second, begun)) = tokio::join!(batch.ask(1), second);
        assert_eq!((first, second), (Ok(2), Ok(4)));
        begun
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_statement_begins_when_the_first_takes_long() {
        assert_eq!(begun(Duration::from_millis(2)).await, (1, 2));
        assert_eq!(begun(Duration::ZERO).await, (2, 2), "where they may overlap");
    }

    #[tokio::test]
    async fn what_is_refused_takes_no_neighbour_with_it() {
        let (batch, _, _shutdown) = batch(1);
        let answers = tokio::join!(batch.ask(1), batch.ask(13), batch.ask(3));
        assert_eq!(answers, (Ok(2), Err(Unanswered), Ok(6)));
    }

    #[tokio::test]
    async fn more_than_can_be_answered_is_refused_at_once() {
        let (batch, _, _shutdown) = batch(0);
        let mut asking: Vec<_> = (0..64).map(|n| Box::pin(batch.ask(n))).collect();
        let mut refused = 0;
        for ask in &mut asking {
            let now = timeout(Duration::from_millis(1), ask).await;
            refused += usize::from(now == Ok(Err(Unanswered)));
        }
        assert!(refused >= 64 - 20, "{refused}");
    }
}
