//! What became of what a job or a replay has sent again: asked for, waited for, and told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use domain::counted;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::age::Age;
use crate::api::Api;
use crate::output::{self, Column, Table};
use crate::problem::Refusal;
use crate::progress::Progress;
use crate::{shown, web};

/// How long until it is looked at again while a command waits: twice as long each time, since counting is work.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(15);
/// How many dead letters of a job are looked at for one that still waits.
const JOB_LOOKED_AT: &str = "200";
/// The exit code when not all was delivered, or what was waited for has not come.
pub(crate) const NOT_ALL: u8 = 4;

/// How long it is waited for what becomes of what was sent again.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Patience {
    /// How long to wait for the outcome once everything is sent again, such as 10m.
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    outcome_within: Age,
}

/// How long a command waits in all.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Within {
    /// Waits no longer than this, such as 10m; exit code 4 when the time is over.
    #[arg(long, value_name = "DURATION", requires = "wait")]
    within: Option<Age>,
}

/// Whether a command waits for what becomes of what it sends again, and for how long.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct OutcomeArgs {
    /// Waits until it is through, and then for what becomes of all that is sent again; exit code 4 if not all of that was delivered.
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) within: Within,
    #[command(flatten)]
    pub(crate) patience: Patience,
}

/// What was waited for has not come, and a sentence that says why and what mends it.
#[derive(Debug)]
pub(crate) struct NotCome(pub(crate) String);

impl fmt::Display for NotCome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotCome {}

impl Within {
    /// That long, of a command that waits without being told to.
    pub(crate) fn of(within: Option<Age>) -> Self {
        Self { within }
    }

    /// As long as the outcome may be waited for, by a command that began at `started` and whose last one is sent again `sending` from now.
    pub(crate) fn left(self, started: Instant, patience: Patience, sending: Duration) -> Duration {
        let patience = patience.outcome_within.duration() + sending;
        self.within.map_or(patience, |within| {
            patience.min(within.duration().saturating_sub(started.elapsed()))
        })
    }

    /// What `waiting` comes to. The texts say what has not happened, and what to do, when the time is over before.
    ///
    /// # Errors
    ///
    /// [`NotCome`], and those of `waiting`.
    pub(crate) async fn limit<T>(
        self,
        waiting: impl Future<Output = anyhow::Result<T>>,
        [what, advice]: [String; 2],
    ) -> anyhow::Result<T> {
        let waiting = Box::pin(waiting);
        let Some(within) = self.within else {
            return waiting.await;
        };
        let waited = tokio::time::timeout(within.duration(), waiting).await;
        waited.unwrap_or_else(|_| Err(NotCome(format!("{what} within {within}; {advice}")).into()))
    }
}

/// Where everything stands that was sent again.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcome {
    #[serde(flatten)]
    total: Fates,
    examined: u64,
    whole: bool,
    by_fingerprint: Vec<Kind>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fates {
    delivered: u64,
    waiting: u64,
    failed_again: u64,
    cancelled: u64,
    gone: u64,
}

#[derive(Debug, Deserialize)]
struct Kind {
    fingerprint: String,
    #[serde(flatten)]
    fates: Fates,
    failures: BTreeMap<String, u64>,
}

/// The outcome of a job as the API gives it; nothing from an API that knows of none, or while that cannot tell.
pub(crate) async fn of(api: &Api, job: Uuid) -> anyhow::Result<Option<Value>> {
    let found = api.get(&format!("/dead-letters/jobs/{job}/outcome"), &()).await;
    match found {
        Ok(document) => Ok(Some(document)),
        Err(error) => {
            let status = error.downcast_ref::<Refusal>().map(|refusal| refusal.status);
            match status {
                Some(StatusCode::NOT_FOUND | StatusCode::SERVICE_UNAVAILABLE) => Ok(None),
                _ => Err(error),
            }
        }
    }
}

/// The outcome once nothing waits any more, or what it is when patience ends.
pub(crate) async fn wait(
    patience: Duration,
    mut look: impl AsyncFnMut() -> anyhow::Result<Option<Value>>,
) -> anyhow::Result<Option<Value>> {
    let until = Instant::now() + patience;
    let progress = Progress::waiting("waiting for what becomes of it");
    let mut pause = LOOK_INTERVAL;
    loop {
        let found = look().await?;
        let waiting = found.as_ref().and_then(|found| found["waiting"].as_u64());
        let left = until.saturating_duration_since(Instant::now());
        if waiting == Some(0) || left.is_zero() {
            return Ok(found);
        }
        if let Some(waiting) = waiting {
            progress.say(&format!("{waiting} still wait"));
        }
        tokio::time::sleep(pause.min(left)).await;
        pause = (pause * 2).min(LOOK_INTERVAL_MAX);
    }
}

/// What the exit code says of a job that was to send something again: success if all of it was delivered, then or before. What was skipped for
/// another reason was not, and what is not known may not have been.
pub(crate) fn exit_code(outcome: Option<&Outcome>, skipped: &BTreeMap<String, u64>) -> ExitCode {
    let Some(outcome) = outcome else {
        output::note("what became of it is not known yet");
        return ExitCode::from(NOT_ALL);
    };
    outcome.time_is_over().into_iter().for_each(output::note);
    let is_done = |reason: &String| matches!(reason.as_str(), "DELIVERED" | "RESOLVED");
    if outcome.is_all_delivered() && skipped.keys().all(is_done) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOT_ALL)
    }
}

/// Says of one that a job has sent again and that still waits how it failed last and when it is tried next. It is an example beside the outcome,
/// so that nothing is said where it cannot be had.
pub(crate) async fn note_one_that_waits(api: &Api, job: Uuid, outcome: Option<&Outcome>) {
    if outcome.is_some_and(|outcome| outcome.total.waiting > 0)
        && let Ok(Some((id, headline))) = one_that_waits(api, job).await
    {
        output::note(format_args!(
            "one of them, {id}: {headline} `postrider jobs watch {job}` waits on"
        ));
    }
}

/// One that a job has sent again and that still waits, and where it stands in a sentence.
async fn one_that_waits(api: &Api, job: Uuid) -> anyhow::Result<Option<(String, String)>> {
    let query = [("job", job.to_string()), ("limit", JOB_LOOKED_AT.to_owned())];
    let page: Value = api.get("/dead-letters", &query).await?;
    let letters = shown::items(&page["items"]).iter();
    let about = letters
        .filter(|letter| letter["outcome"] == "WAITING")
        .find_map(|letter| letter["pushId"].as_str().or(letter["notificationId"].as_str()));
    let Some(id) = about else { return Ok(None) };
    let story: Value = api.get(&web::path(&["explain", id]), &()).await?;
    let headline = story["headline"].as_str().map(output::harmless);
    Ok(headline.map(|headline| (output::harmless(id), headline)))
}

impl Outcome {
    pub(crate) fn read(document: &Value) -> anyhow::Result<Self> {
        Ok(serde_json::from_value(document.clone())?)
    }

    /// Whether all that it tells of was delivered, and whether that is all there is.
    fn is_all_delivered(&self) -> bool {
        let Fates {
            waiting,
            failed_again,
            cancelled,
            gone,
            ..
        } = self.total;
        self.whole && waiting + failed_again + cancelled + gone == 0
    }

    /// All of it in one sentence.
    pub(crate) fn sentence(&self) -> String {
        let mut text = self.total.to_string();
        if !self.whole {
            text.push_str(&format!("; of a sample of {} dead letters", self.examined));
        }
        text
    }

    /// That something still waits, which is when patience has ended before that.
    fn time_is_over(&self) -> Option<String> {
        let waiting = self.total.waiting;
        (waiting > 0).then(|| {
            format!(
                "the time is over: {}; --outcome-within waits longer for what becomes of it",
                counted::of(
                    waiting,
                    "still waits for its turn or a retry, which comes by itself",
                    "still wait for their turn or a retry, which comes by itself"
                )
            )
        })
    }

    /// Why the first ones that were sent again do not let a job go on, as the console says it.
    pub(crate) fn of_failed_canary(&self) -> String {
        match self.total {
            Fates { failed_again, .. } if failed_again > 0 => {
                format!("of the first, {failed_again} failed again")
            }
            Fates { waiting, .. } if waiting > 0 => {
                "what became of the first was not known after a day".to_owned()
            }
            _ => "none of the first was delivered".to_owned(),
        }
    }

    /// As what it failed again, each kind once.
    pub(crate) fn failures(&self) -> BTreeSet<&str> {
        let kinds = self.by_fingerprint.iter();
        kinds
            .flat_map(|kind| kind.failures.keys().map(String::as_str))
            .collect()
    }

    /// The same by kind of failure; nothing to show of a job that has sent nothing again.
    pub(crate) fn table(&self) -> Option<Table> {
        if self.by_fingerprint.is_empty() {
            return None;
        }
        let mut columns = vec![
            Column::whole("it was"),
            Column::whole("delivered"),
            Column::whole("waiting"),
            Column::whole("failed again"),
        ];
        let has_failures = !self.failures().is_empty();
        if has_failures {
            columns.push(Column::prose("as").spare(1));
        }
        let mut table = output::table(columns);
        for kind in &self.by_fingerprint {
            let failures = kind.failures.iter();
            let failures: Vec<String> = failures
                .map(|(fingerprint, count)| format!("{} {count}", output::harmless(fingerprint)))
                .collect();
            let mut row = vec![
                output::harmless(&kind.fingerprint),
                kind.fates.delivered.to_string(),
                kind.fates.waiting.to_string(),
                kind.fates.failed_again.to_string(),
            ];
            if has_failures {
                row.push(failures.join(", "));
            }
            table.add_row(row);
        }
        Some(table)
    }
}

impl fmt::Display for Fates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} delivered, {} waiting, {} failed again",
            self.delivered, self.waiting, self.failed_again
        )?;
        for (count, what) in [(self.cancelled, "cancelled"), (self.gone, "not kept any more")] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(delivered: u64, waiting: u64, failed: u64) -> Outcome {
        let fates = json!({"delivered": delivered, "waiting": waiting, "failedAgain": failed, "cancelled": 0, "gone": 0});
        let mut document = fates.clone();
        document["examined"] = (delivered + waiting + failed).into();
        document["whole"] = true.into();
        let mut kind = fates;
        kind["lane"] = "push".into();
        kind["fingerprint"] = "swrve/503".into();
        kind["failures"] = json!({"swrve/401": failed});
        document["byFingerprint"] = json!([kind]);
        Outcome::read(&document).unwrap()
    }

    #[test]
    fn only_what_was_all_delivered_is_a_success() {
        let success = format!("{:?}", ExitCode::SUCCESS);
        let code = |outcome: Option<&Outcome>, skipped: &[&str]| {
            let skipped = skipped.iter().map(|reason| ((*reason).to_owned(), 1)).collect();
            format!("{:?}", exit_code(outcome, &skipped))
        };
        assert_eq!(code(Some(&outcome(3, 0, 0)), &[]), success);
        assert_eq!(code(Some(&outcome(3, 0, 0)), &["DELIVERED", "RESOLVED"]), success);
        assert_ne!(code(Some(&outcome(3, 1, 0)), &[]), success);
        assert_ne!(code(Some(&outcome(3, 0, 1)), &[]), success);
        assert_ne!(code(Some(&outcome(0, 0, 0)), &["SUBSCRIPTION_INACTIVE"]), success);
        assert_ne!(code(None, &[]), success);
        let mut sample = outcome(3, 0, 0);
        sample.whole = false;
        assert_ne!(code(Some(&sample), &[]), success);
    }

    #[test]
    fn what_still_waits_when_the_time_is_over_is_said() {
        let said = |waiting| outcome(1, waiting, 0).time_is_over();
        assert_eq!(said(0), None);
        assert!(said(4).is_some_and(|said| {
            said.starts_with("the time is over: 4 still wait for their turn or a retry")
        }));
    }

    #[test]
    fn what_has_not_failed_again_has_no_column_of_failures() {
        let mut outcome = outcome(2, 1, 0);
        outcome.by_fingerprint[0].failures.clear();
        let table = outcome.table().unwrap().tsv();
        assert_eq!(
            table,
            "it was\tdelivered\twaiting\tfailed again\nswrve/503\t2\t1\t0"
        );
    }

    #[test]
    fn what_failed_again_is_told_by_its_kind() {
        let outcome = outcome(2, 1, 3);
        assert_eq!(outcome.sentence(), "2 delivered, 1 waiting, 3 failed again");
        assert!(outcome.table().unwrap().to_string().contains("swrve/401 3"));
    }
}
