//! `postrider recover`: what follows when the database was lost and restored to an earlier moment.

use anyhow::{Context as _, anyhow, bail};
use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use config::Sources;
use domain::clock::{Clock as _, SystemClock};
use domain::counted::of;
use serde_json::json;
use store::{AfterRestore, DeadLetterLane, Gap, NotRecovered, PossiblySent};

use super::database::{Database, by_hand};
use crate::confirm::{Act, Yes};
use crate::output::{self, Column, JsonArgs, Table};
use crate::progress::Progress;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider recover --after-restore --lost-at 2026-11-21T12:00:00Z --dry-run
  postrider recover --after-restore --lost-at 2026-11-21T12:00:00Z --note 'the volume was lost, incident 17'

docs/disaster.md says what comes before and after.")]
pub(crate) struct RecoverArgs {
    /// The database was restored to an earlier moment, and all services are stopped.
    #[arg(long = "after-restore", required = true)]
    _after_restore: bool,
    /// When the database was lost, or a little later: nothing was sent after this.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time)]
    lost_at: DateTime<Utc>,
    /// The moment that it was restored to, for the record; else the last transaction that the server replayed, or when the database last saw a
    /// service at work.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time)]
    restored_to: Option<DateTime<Utc>>,
    /// Counts, and changes nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    yes: Yes,
    /// Why; kept in the audit log.
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    form: JsonArgs,
}

/// Recovers, or counts what a recovery would be about.
pub(crate) async fn run(sources: &Sources, args: &RecoverArgs) -> anyhow::Result<()> {
    let now = SystemClock.now();
    if args.lost_at > now {
        bail!("--lost-at lies in the future: it is {} now", written(now));
    }
    if args.restored_to.is_some_and(|at| at > args.lost_at) {
        bail!("--restored-to is after --lost-at");
    }
    let database = Database::open_migrated(sources).await?;
    let store = &database.store;
    let failed = || database.failure("recover");
    let restored_to = match args.restored_to {
        Some(given) => Some(given),
        None => store.restored_to(args.lost_at).await.with_context(failed)?,
    };
    let Some(restored_to) = restored_to else {
        bail!("no service has ever worked on this database: give --restored-to if it is the right one");
    };
    let gap = Gap {
        restored_to,
        lost_at: args.lost_at,
    };
    let counted = store
        .count_possibly_sent(gap.lost_at)
        .await
        .with_context(failed)?;
    if args.dry_run {
        if restored_to > args.lost_at {
            return Err(refused(&NotRecovered::RestoredLater(restored_to)));
        }
        return show_dry_run(gap, &counted, args.form.is_json());
    }
    let act = Act {
        what: &format!("hold {} as possibly sent", sum(&counted)),
        effect: "",
        instead: "--dry-run to see more",
    };
    args.yes.confirm(&act, || ())?;
    let progress = Progress::of("held as possibly sent");
    let total = counted.iter().map(|one| one.count).sum();
    let recovered = store
        .recover_after_restore(gap, by_hand(now, args.note.as_deref()), |done| {
            progress.show(done, total, "");
        })
        .await;
    drop(progress);
    match recovered.with_context(failed)? {
        Ok(done) if args.form.is_json() => output::json(&done),
        Ok(done) => show(&done),
        Err(why) => Err(refused(&why)),
    }
}

fn refused(why: &NotRecovered) -> anyhow::Error {
    match why {
        NotRecovered::Connected(names) => anyhow!(
            "still connected to the database: {}. Stop every service, and a connection pooler that keeps their connections, and \
             try again; until then both lanes stay as they are",
            names.join(", ")
        ),
        NotRecovered::Newer(at) => anyhow!(
            "the database knows of a service at work at {}, after --lost-at. If the database was lost later than you said, give that \
             time; if a service was started since the restore, stop it, give a time after that, and with --restored-to the moment that you \
             restored to",
            written(*at)
        ),
        NotRecovered::RestoredLater(at) => anyhow!(
            "the database seems to have been restored to {}, which is after --lost-at. Give the time at which it was lost, or with \
             --restored-to the moment that you restored to",
            written(*at)
        ),
    }
}

fn show_dry_run(gap: Gap, counted: &[PossiblySent], as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return output::json(&json!({
            "restoredTo": gap.restored_to,
            "lostAt": gap.lost_at,
            "possiblySent": counted,
        }));
    }
    output::result(format_args!("would be held as possibly sent: {}", sum(counted)))?;
    show_classes(counted)?;
    show_gap(gap)
}

fn show(done: &AfterRestore) -> anyhow::Result<()> {
    match done.done_before {
        Some(at) => output::result(format_args!(
            "the recovery from this loss was through at {}; nothing was changed now. Held still: {}",
            written(at),
            sum(&done.possibly_sent)
        ))?,
        None => output::result(format_args!(
            "held as possibly sent: {}",
            sum(&done.possibly_sent)
        ))?,
    }
    show_classes(&done.possibly_sent)?;
    for (what, ids) in [
        (
            "paused, to be resumed or cancelled by you: job",
            &done.stopped.jobs_paused,
        ),
        (
            "cancelled, to be made again by its reseller: replay",
            &done.stopped.replays_cancelled,
        ),
    ] {
        for id in ids {
            output::result(format_args!("{what} {id}"))?;
        }
    }
    for lane in &done.lanes_paused {
        output::result(format_args!(
            "paused by an operator, until you resume it, whenever it was to end: lane {lane}"
        ))?;
    }
    show_gap(done.gap)?;
    output::result(next(&done.possibly_sent))?;
    Ok(())
}

/// Pushes are a decision for each class. Notifications are released together: their receivers know them.
fn next(held: &[PossiblySent]) -> &'static str {
    if held.iter().any(|one| one.lane == DeadLetterLane::Reseller) {
        "Next: docs/disaster.md, step 7. When the services run, this releases the notifications:\n  \
         postrider dead-letters replay --lane reseller --fingerprint 'recovery/possibly-sent/*' --canary 10 --note 'why'"
    } else {
        "Next: docs/disaster.md, step 7"
    }
}

fn show_classes(classes: &[PossiblySent]) -> anyhow::Result<()> {
    if !classes.is_empty() {
        output::result(table(classes))?;
    }
    Ok(())
}

fn show_gap(gap: Gap) -> anyhow::Result<()> {
    output::result(format_args!(
        "Nothing is known of what happened from {} to {}:\n  \
         events and pushes that were accepted: their callers hand them in again. Receivers know an event by its eventId and take it once;\n  \
         a push has nothing that Swrve would know it by, and its Idempotency-Key of that time is not known: the device may show it twice\n  \
         what resellers and operators did: subscriptions, secrets, API keys that were revoked, pauses, cancellations, replays, resends",
        written(gap.restored_to),
        written(gap.lost_at)
    ))?;
    Ok(())
}

fn table(classes: &[PossiblySent]) -> Table {
    let mut table = output::table([
        Column::whole("lane"),
        Column::whole("class").name(),
        Column::whole("count"),
    ]);
    for one in classes {
        table.add_row([
            one.lane.as_str().to_owned(),
            one.class.clone(),
            one.count.to_string(),
        ]);
    }
    table
}

fn sum(classes: &[PossiblySent]) -> String {
    let of_lane = |name: &str| -> u64 {
        let of_it = classes.iter().filter(|one| one.lane.as_str() == name);
        of_it.map(|one| one.count).sum()
    };
    format!(
        "{} and {}",
        of(of_lane("push"), "push", "pushes"),
        of(of_lane("reseller"), "notification", "notifications")
    )
}

fn written(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(lane: DeadLetterLane) -> PossiblySent {
        PossiblySent {
            lane,
            class: "retry".to_owned(),
            count: 1,
        }
    }

    #[test]
    fn a_release_is_proposed_for_notifications_alone() {
        let (push, reseller) = (held(DeadLetterLane::Push), held(DeadLetterLane::Reseller));
        assert!(
            next(&[push.clone(), reseller])
                .contains("--lane reseller --fingerprint 'recovery/possibly-sent/*'")
        );
        for without in [&[push][..], &[]] {
            assert_eq!(next(without), "Next: docs/disaster.md, step 7");
        }
    }

    #[test]
    fn who_is_refused_is_told_what_to_give() {
        let at = DateTime::UNIX_EPOCH;
        for (why, option) in [
            (NotRecovered::Newer(at), "--restored-to"),
            (NotRecovered::RestoredLater(at), "--restored-to"),
            (
                NotRecovered::Connected(vec!["ingest-api".to_owned()]),
                "ingest-api",
            ),
        ] {
            assert!(refused(&why).to_string().contains(option), "{why:?}");
        }
    }
}
