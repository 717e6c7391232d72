//! `postrider tail`: what is going on, as it happens: new notifications and what comes of them.
//!
//! The portal says that something changed, where it is new enough, and the lists are read then; of an earlier one they are read again and
//! again. Each time a list is read from its newest entry back to a minute before what is known, and what has not ended by then is asked for
//! one by one.

mod follow;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use anyhow::Context as _;
use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use domain::clock::{Clock as _, SystemClock};
use lifecycle::Shutdown;
use reqwest::StatusCode;
use serde_json::Value;
use uuid::Uuid;

use super::{Common, identifier};
use crate::age::Age;
use crate::api::Page;
use crate::output::{self, JsonArgs};
use crate::portal::{PAGE_MAX, Portal};
use crate::problem::Refusal;

use follow::{Follower, Found, News, accepted_at};

/// How many notifications are asked for one by one at a time: the portal counts a reseller's requests.
const SINGLE_MAX: usize = 20;
/// Longest pause while the portal does not answer.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// What has not ended.
const UNFINISHED: &str = "PENDING,IN_MEMORY,RETRY,SCHEDULED";

#[derive(Debug, Args)]
#[command(after_help = "\
A line says when, where the notification stands, event type, event, notification, and why. Ctrl-C ends it.
What is resent or replayed of events that are older is seen as long as it has not ended when it is looked for.

Examples:
  postrider tail
  postrider tail 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d --newer-than 10m
  postrider tail --json | jq -r 'select(.status == \"GIVEN_UP\") | .id'")]
pub(crate) struct TailArgs {
    /// Of these subscriptions; of all when none is given, also of those that are made meanwhile.
    #[arg(value_parser = identifier)]
    subscriptions: Vec<Uuid>,
    /// Begins with events that were accepted less than this long ago, such as 10m.
    #[arg(long, value_name = "AGE")]
    newer_than: Option<Age>,
    /// How often to look, at most where the portal says when something changed.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(100..))]
    interval_millis: u64,
    /// Ends after so many lines.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    common: Common<JsonArgs>,
}

/// Does what the command says.
pub(crate) async fn run(args: TailArgs) -> anyhow::Result<()> {
    let shutdown = Shutdown::on_signals().context("failed to register the signal handlers")?;
    let mut tail = Tail {
        portal: Portal::connect(&args.common.portal)?,
        followers: BTreeMap::new(),
        changes: None,
        left: args.count,
        json: args.common.is_json(),
        chosen: args.subscriptions,
    };
    tokio::select! {
        () = shutdown.cancelled() => Ok(()),
        ended = tail.follow(args.newer_than, Duration::from_millis(args.interval_millis)) => ended,
    }
}

struct Tail {
    portal: Portal,
    chosen: Vec<Uuid>,
    followers: BTreeMap<Uuid, Follower>,
    /// Up to where the changes are known; none of a portal that does not tell them.
    changes: Option<String>,
    json: bool,
    /// Lines until it ends.
    left: Option<u64>,
}

impl Tail {
    async fn follow(&mut self, newer_than: Option<Age>, interval: Duration) -> anyhow::Result<()> {
        // Before anything is looked at, so that nothing falls in between.
        self.changes = self.changes_after(None).await.ok();
        self.begin(newer_than).await?;
        output::note(match self.followers.len() {
            1 => "following 1 subscription".to_owned(),
            more => format!("following {more} subscriptions"),
        });
        let mut pause = interval;
        while self.left != Some(0) {
            match self.look().await {
                Ok(()) => pause = interval,
                Err(error) if is_hopeless(&error) => return Err(error),
                Err(error) => {
                    pause = (pause * 2).min(PAUSE_MAX);
                    output::note(format_args!(
                        "{error:#}; looking again in {} s",
                        pause.as_secs().max(1)
                    ));
                }
            }
            if self.left != Some(0) {
                tokio::time::sleep(pause).await;
                self.until_changed().await;
            }
        }
        Ok(())
    }

    /// Waits until the portal says that something changed; not at all where it does not say that. Some changes are of time alone, so that it
    /// is looked again after a while in any case.
    async fn until_changed(&mut self) {
        if let Some(after) = &self.changes
            && let Ok(next) = self.changes_after(Some(after)).await
        {
            self.changes = Some(next);
        }
    }

    /// Up to where the changes are known once there is one after `after`.
    async fn changes_after(&self, after: Option<&str>) -> anyhow::Result<String> {
        let query = after.map(|after| [("after", after), ("limit", PAGE_MAX)]);
        let changes: Value = match &query {
            Some(query) => self.portal.get("/changes", query).await?,
            None => self.portal.get("/changes", &()).await?,
        };
        let next = changes["next"].as_str().context("the portal said no next")?;
        Ok(next.to_owned())
    }

    /// Takes note of what is there already. What of it has not ended yet is followed as well.
    async fn begin(&mut self, newer_than: Option<Age>) -> anyhow::Result<()> {
        let since = newer_than.map(|age| age.before(SystemClock.now()));
        for id in self.subscriptions().await? {
            match self.follower(id, since).await {
                Ok(follower) => drop(self.followers.insert(id, follower)),
                Err(error) if self.is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// One that knows what is there already, but for what was accepted at `since` or later and is to be said.
    async fn follower(&self, id: Uuid, since: Option<DateTime<Utc>>) -> anyhow::Result<Follower> {
        let newest = match since {
            Some(since) => Some(since),
            None => self.newest(id).await?,
        };
        let mut follower = Follower::since(newest);
        let mut found = self.read(id, &follower, 0).await?;
        if let Some(since) = since {
            found
                .rows
                .retain(|row| accepted_at(row).is_some_and(|at| at < since));
        }
        follower.take_all(found)?;
        Ok(follower)
    }

    /// Whether the error says that a subscription was deleted after it had been listed, which is no harm unless it was
    /// asked for by name.
    fn is_gone(&self, error: &anyhow::Error) -> bool {
        self.chosen.is_empty() && status(error) == Some(StatusCode::NOT_FOUND)
    }

    /// When the newest event was accepted, by the clock of the process that accepted it: ours may differ.
    async fn newest(&self, id: Uuid) -> anyhow::Result<Option<DateTime<Utc>>> {
        let path = format!("/subscriptions/{id}/notifications");
        let newest: Option<Value> = self.portal.newest(&path).await?;
        Ok(newest.as_ref().and_then(accepted_at))
    }

    async fn subscriptions(&self) -> anyhow::Result<Vec<Uuid>> {
        if !self.chosen.is_empty() {
            return Ok(self.chosen.clone());
        }
        let all = self.portal.all_since::<Value>("/subscriptions", None).await?;
        let ids = all.iter().filter_map(|one| one["id"].as_str()?.parse().ok());
        Ok(ids.collect())
    }

    /// Looks once at everything, and says what is new. What could not be read is as it was, and is read the next time.
    async fn look(&mut self) -> anyhow::Result<()> {
        let ids = self.subscriptions().await?;
        self.followers.retain(|id, _| ids.contains(id));
        let (mut all, mut failed, mut singles) = (Vec::new(), None, SINGLE_MAX);
        for id in ids {
            // One that was made meanwhile has nothing that was said already.
            let mut follower = self.followers.remove(&id).unwrap_or_default();
            match self.read(id, &follower, singles).await {
                Ok(found) => {
                    singles -= found.singles;
                    let news = follower.take_all(found)?;
                    all.extend(news.into_iter().map(|news| (id, news)));
                }
                Err(error) if self.is_gone(&error) => continue,
                Err(error) => failed = Some(error),
            }
            self.followers.insert(id, follower);
            if failed.is_some() {
                break;
            }
        }
        all.sort_by_key(|(_, news)| news.at);
        for (id, news) in all {
            self.say(id, news)?;
        }
        failed.map_or(Ok(()), Err)
    }

    fn say(&mut self, id: Uuid, mut news: News) -> anyhow::Result<()> {
        if self.left == Some(0) {
            return Ok(());
        }
        self.left = self.left.map(|left| left - 1);
        let is_read = if self.json {
            news.document["subscriptionId"] = id.to_string().into();
            output::line(news.document)?
        } else {
            output::line(news.text)?
        };
        if !is_read {
            self.left = Some(0);
        }
        Ok(())
    }

    /// All that may have changed of one subscription, of which up to `singles` are asked for one by one.
    async fn read(&self, id: Uuid, follower: &Follower, singles: usize) -> anyhow::Result<Found> {
        let path = format!("/subscriptions/{id}/notifications");
        let since = follower
            .horizon()
            .map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, true));
        let mut rows = self.portal.all_since(&path, since.as_deref()).await?;
        let waiting = [("status", UNFINISHED), ("limit", PAGE_MAX)];
        let waiting: Page<Value> = self.portal.get(&path, &waiting).await?;
        rows.extend(waiting.items);
        let looked_at: HashSet<Uuid> = rows
            .iter()
            .filter_map(|row| row["id"].as_str()?.parse().ok())
            .collect();
        let (asked, mut gone) = (follower.unfinished(&looked_at, singles), Vec::new());
        for single in &asked {
            match self.portal.get(&format!("/notifications/{single}"), &()).await {
                Ok(document) => rows.push(document),
                Err(error) if status(&error) == Some(StatusCode::NOT_FOUND) => gone.push(*single),
                Err(error) => return Err(error),
            }
        }
        Ok(Found {
            rows,
            gone,
            singles: asked.len(),
        })
    }
}

fn status(error: &anyhow::Error) -> Option<StatusCode> {
    error.downcast_ref::<Refusal>().map(|refusal| refusal.status)
}

/// Whether looking again would be of no use.
pub(in crate::commands) fn is_hopeless(error: &anyhow::Error) -> bool {
    matches!(
        status(error),
        Some(
            StatusCode::UNAUTHORIZED
                | StatusCode::FORBIDDEN
                | StatusCode::NOT_FOUND
                | StatusCode::BAD_REQUEST
        )
    )
}
