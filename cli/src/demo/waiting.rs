//! Waiting until every push is where it should be. What counts is where a push is, not which way it took there.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::push::PushStatus;
use futures::{StreamExt as _, stream};
use tokio::time::Instant;
use uuid::Uuid;

use super::case::{Ended, Posted};
use crate::ingest::{Answer, Ingest, Push};
use crate::progress::Progress;

/// How often one push is looked at.
const POLL: Duration = Duration::from_millis(100);
/// Pushes looked at in turn.
const AT_ONCE: usize = 8;

/// Waits for all cases until `deadline`. A push that ended elsewhere is not waited for any longer.
pub(crate) async fn wait(ingest: &Ingest, posted: Vec<Posted>, deadline: Instant) -> Vec<Ended> {
    let watch = Watch {
        ingest,
        deadline,
        progress: Progress::of("pushes"),
    };
    let accepted = |posted: &Posted| ids(&posted.answers).len() as u64;
    let total = posted
        .iter()
        .filter(|posted| posted.case.expected.status().is_some());
    watch.progress.show(0, total.map(accepted).sum(), "");
    let mut ended = Vec::with_capacity(posted.len());
    for posted in posted {
        let (mut pushes, mut unseen) = (Vec::new(), Vec::new());
        if let Some(wanted) = posted.case.expected.status() {
            let mut seen = stream::iter(ids(&posted.answers))
                .map(|id| watch.until(id, wanted))
                .buffered(AT_ONCE);
            while let Some(found) = seen.next().await {
                watch.progress.step();
                match found {
                    Ok(push) => pushes.push(push),
                    Err(error) => unseen.push(format!("{error:#}")),
                }
            }
        }
        ended.push(Ended {
            posted,
            pushes,
            unseen,
        });
    }
    ended
}

fn ids(answers: &[Answer]) -> BTreeSet<Uuid> {
    let id = |answer: &Answer| match answer {
        Answer::Accepted { id, .. } => Some(*id),
        Answer::Refused { .. } => None,
    };
    answers.iter().filter_map(id).collect()
}

struct Watch<'a> {
    ingest: &'a Ingest,
    deadline: Instant,
    progress: Progress,
}

impl Watch<'_> {
    /// The push once it has the wanted status, has ended otherwise, or time is up.
    async fn until(&self, id: Uuid, wanted: PushStatus) -> anyhow::Result<Push> {
        loop {
            let found = self.ingest.find(id).await;
            let late = Instant::now() >= self.deadline;
            match found {
                Ok(push) if late || push.status == wanted || push.status.is_terminal() => return Ok(push),
                Ok(push) => self.progress.say(&push.explanation),
                Err(error) if late => return Err(error),
                Err(_) => {}
            }
            tokio::time::sleep(POLL).await;
        }
    }
}
