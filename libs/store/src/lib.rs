//! All SQL of Postrider. PostgreSQL is the truth about every push; each function here is one operation of the life
//! cycle, done in one short transaction for a whole batch, and guarded so that it changes only rows that are in the
//! state it expects. Each fails with [`Error`] when the database does; then nothing has happened unless its description says otherwise.
//!
//! What it does not do: decide. Which state follows is `domain`'s business; nothing here talks to the broker or to a
//! receiver, and no transaction outlives a call.

mod api_key;
mod audit;
mod backlog;
mod cancel;
mod connections;
mod cutoff;
mod dead_letters;
pub mod demo;
mod error;
mod examined;
mod held_back;
mod hosts;
mod indexes;
mod lease;
mod open_dead_letters;
mod partition;
mod pause_periods;
mod pauses;
mod portal_visits;
mod processes;
pub mod push;
mod read;
mod rescued;
mod resolution;
mod resting;
mod restore;
mod retention;
mod retry_now;
mod session;
pub mod status;
mod tentative;
mod text;
pub mod timeline;
mod visits;
pub mod webhook;
pub mod webpush;

use std::sync::Arc;
use std::time::Duration;

use crate::resting::Resting;
use crate::session::Sessions;
use crate::webhook::LineTerms;
use sqlx::Connection as _;
use sqlx::migrate::{Migration, Migrator};
use sqlx::postgres::types::PgInterval;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

pub use api_key::{ApiKey, KeyRevoked, KeyRotated, SuccessorEnd};
pub use audit::{Act, AuditFilter, AuditView};
pub use backlog::Backlog;
pub use cancel::{Cancellation, CancelledMany, ToCancel};
pub use connections::Connections;
pub use cutoff::Cutoff;
pub use dead_letters::{
    BrokerDeadLetter, DeadLetterCursor, DeadLetterFilter, DeadLetterGroup, DeadLetterGroupKey,
    DeadLetterGroupNote, DeadLetterGroups, DeadLetterHistory, DeadLetterHours, DeadLetterLane,
    DeadLetterOrder, DeadLetterReason, DeadLetterState, DeadLetterSubject, DeadLetterTimeline,
    DeadLetterView, DeadLettersBy, DeadLettersByReseller, Hours, ResellerDeadLetters,
};
pub use error::{Error, singly, within};
pub use examined::Examined;
pub use lease::{Lease, LeaseView};
pub use partition::OldMonth;
pub use pause_periods::PausePeriod;
pub use pauses::{Lane, Pausable, PauseChange, PauseCounts, PauseView};
pub use portal_visits::{EndVisits, NewPortalLink, PORTAL_VISITS_OF_PERSON, PortalLinkView, PortalVisit};
pub use processes::{Beat, LaneMinute, ProcessView, WebpushMinute};
pub use rescued::Rescued;
pub use resolution::{
    CANARY_WAIT, DeadLetterJob, DeadLetterKind, DeadLetterSelection, DeadLetterStep, Fate, Fates, JobCare,
    JobCommanded, JobCreated, JobOutcome, KindOutcome, NewDeadLetterJob, Preview, RecoveryTerms, Resolved,
    SettledRecovery, Skipped,
};
pub use restore::{AfterRestore, Gap, NotRecovered, PossiblySent, Requeued, RescuedNow, Stopped};
pub use retention::Kept;
pub use retry_now::{RetriesNow, RetryNow};
pub use visits::{
    BREAK_GLASS_MINUTES, BrokenGlass, IDLE_MINUTES, Person, VISIT_HOURS, VisitBy, VisitView, Visitor,
};

/// The schema, as a list of migrations.
pub static MIGRATOR: Migrator = sqlx::migrate!("../../migrations");

/// How to reach the database. Has no `Debug`: the URL holds a password.
#[derive(Clone)]
pub struct Settings {
    /// `postgres://…`, with one host, or several separated by commas of which one that can be written to is used.
    pub url: String,
    /// Greatest number of connections, those for leases left out.
    pub max_connections: u32,
    /// Greatest number of connections for leases. They are apart, so that a holder can renew its lease while everything else
    /// waits.
    pub lease_connections: u32,
    /// How long an operation waits for a connection.
    pub acquire_timeout: Duration,
    /// Shown in `pg_stat_activity`.
    pub application_name: String,
    /// By which the turns in the lines of subscriptions are forecast.
    pub line_terms: LineTerms,
}

impl Settings {
    /// How a connection to each host of the database is opened, in the order of the URL.
    pub fn connect_options(&self) -> Result<Vec<PgConnectOptions>, Error> {
        let hosts = hosts::each(&self.url).map_err(Error::Url)?;
        let options = hosts
            .into_iter()
            .map(|host| session::options(host, &self.application_name));
        Ok(options.collect())
    }
}

/// The database of Postrider. Cheap to clone; clones share its connections.
#[derive(Debug, Clone)]
pub struct Store {
    pool: PgPool,
    /// Of the pool, for the batches that follow one another all the time.
    resting: Arc<Resting>,
    line_terms: LineTerms,
    /// For leases.
    leases: PgPool,
    /// Told when a connection is refused because its session is shared.
    shared_sessions: Arc<Notify>,
    /// Of several hosts.
    following: Option<Following>,
}

/// The task that has the pools connect to the host that can be written to, and whether it has found one. It ends with the last clone.
#[derive(Debug, Clone)]
struct Following {
    found: watch::Receiver<bool>,
    _task: Arc<JoinSet<()>>,
}

impl Store {
    /// Prepares a pool. Connects when first used, so that a service can start before its database.
    pub fn open(settings: &Settings) -> Result<Self, Error> {
        let hosts: Arc<[PgConnectOptions]> = settings.connect_options()?.into();
        let shared_sessions = Arc::<Notify>::default();
        let sessions = Arc::new(Sessions::new(Arc::clone(&hosts), Arc::clone(&shared_sessions)));
        let open = |most| open_pool(settings, most, &hosts[0], &sessions);
        let (pool, leases) = (open(settings.max_connections), open(settings.lease_connections));
        let following = (hosts.len() > 1).then(|| {
            let (found, whether_found) = watch::channel(false);
            let pools = [pool.clone(), leases.clone()];
            let mut task = JoinSet::new();
            task.spawn(hosts::follow(Arc::clone(&hosts), pools, found));
            Following {
                found: whether_found,
                _task: Arc::new(task),
            }
        });
        Ok(Self {
            resting: Resting::new(pool.clone()),
            pool,
            leases,
            line_terms: settings.line_terms,
            shared_sessions,
            following,
        })
    }

    /// Waits until it is known which of several hosts can be written to, for as long as one is waited for. Until then connections are opened to the
    /// first, and where that is lost and silent, the first attempt takes all of the time that an operation waits for a connection: too long for a
    /// program that does not try again.
    pub async fn find_host(&self) {
        if let Some(following) = &self.following {
            let mut found = following.found.clone();
            // Whether any was found shows when the database is used.
            let _ = tokio::time::timeout(2 * LIFE_SIGN_LIMIT, found.wait_for(|found| *found)).await;
        }
    }

    /// Wraps a pool that exists, as tests are given one.
    pub fn from_pool(pool: PgPool) -> Self {
        Self {
            leases: pool.clone(),
            resting: Resting::new(pool.clone()),
            pool,
            line_terms: LineTerms::default(),
            shared_sessions: Arc::default(),
            following: None,
        }
    }

    /// Brings the schema up to date; returns the number of migrations that were applied before and are applied now. One that
    /// a later version has brought further is left as it is: going back to an earlier version begins with this as well.
    ///
    /// # Errors
    ///
    /// [`Error::Migrate`] when a migration fails, was changed after it had been applied, or is unknown and not later than
    /// those that are known.
    pub async fn migrate(&self) -> Result<(usize, usize), Error> {
        let before = self.applied_migrations().await?;
        let mut connection = self.pool.acquire().await?;
        // A migration of a large table may take longer than any statement of a service.
        sqlx::query("SET statement_timeout = 0")
            .execute(&mut *connection)
            .await?;
        let mut migrator = Migrator::with_migrations(MIGRATOR.iter().cloned().collect());
        migrator.set_ignore_missing(are_known_or_later(&before));
        migrator.run(&mut *connection).await.map_err(Error::Migrate)?;
        // The connection goes with its setting.
        connection.close().await?;
        Ok((before.len(), self.applied_migrations().await?.len()))
    }

    /// Whether the schema holds every migration that this program knows.
    pub async fn is_migrated(&self) -> Result<bool, Error> {
        let applied = self.applied_migrations().await?;
        Ok(known_migrations().all(|version| applied.contains(&version)))
    }

    async fn applied_migrations(&self) -> Result<Vec<i64>, Error> {
        // The table is the migrator's own and may not exist yet, so this query cannot be checked at compile time.
        let asking = sqlx::query_scalar::<_, i64>("SELECT version FROM _sqlx_migrations WHERE success")
            .fetch_all(&self.pool);
        let applied = tokio::select! {
            applied = asking => applied,
            // The pool would try until its wait is over, and then say that it has no connection.
            () = self.shared_sessions.notified() => return Err(Error::SharedSessions),
        };
        match applied {
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("42P01") => Ok(Vec::new()),
            applied => Ok(applied?),
        }
    }

    /// Asks the database for a sign of life.
    pub async fn ping(&self) -> Result<(), Error> {
        let asking = sqlx::query("SELECT 1").execute(&self.pool);
        tokio::select! {
            answer = asking => Ok(answer.map(drop)?),
            // As above.
            () = self.shared_sessions.notified() => Err(Error::SharedSessions),
        }
    }

    /// Closes every connection; operations under way are waited for.
    pub async fn close(&self) {
        // Closed from here on: what rests can only go.
        let closing = self.pool.close();
        self.resting.end();
        tokio::join!(closing, self.leases.close());
    }
}

fn open_pool(settings: &Settings, most: u32, host: &PgConnectOptions, sessions: &Arc<Sessions>) -> PgPool {
    let (opened, acquired, released) = (Arc::clone(sessions), Arc::clone(sessions), Arc::clone(sessions));
    PgPoolOptions::new()
        .max_connections(most)
        .acquire_timeout(settings.acquire_timeout)
        .after_connect(move |connection, _| {
            let sessions = Arc::clone(&opened);
            Box::pin(async move { sessions.begin(connection).await })
        })
        // Asking before each use would cost a round trip; only after a pause may the server have gone meanwhile.
        .test_before_acquire(false)
        .before_acquire(move |connection, meta| {
            let sessions = Arc::clone(&acquired);
            Box::pin(async move {
                if meta.idle_for < IDLE_LIMIT {
                    Ok(true)
                } else {
                    sessions.is_usable(connection).await
                }
            })
        })
        // A connection that was given up in the middle of a statement behind a cut proxy would keep its place in the
        // pool for as long as the proxy is cut.
        .after_release(move |connection, _| {
            let sessions = Arc::clone(&released);
            Box::pin(async move {
                let usable = sessions.is_usable(connection).await?;
                // They have grown to the largest statement that it was ever sent, several megabytes for a large batch of events, and
                // the pool leaves them so.
                connection.shrink_buffers();
                Ok(usable)
            })
        })
        .connect_lazy_with(host.clone())
}

fn known_migrations() -> impl Iterator<Item = i64> {
    let up = |migration: &&Migration| migration.migration_type.is_up_migration();
    MIGRATOR.iter().filter(up).map(|migration| migration.version)
}

/// Whether a schema is one of this version, or one of this version and what later ones have added. Anything else that is
/// not known belongs to another history.
fn are_known_or_later(applied: &[i64]) -> bool {
    let newest = known_migrations().max().unwrap_or_default();
    let mut unknown = applied
        .iter()
        .filter(|version| known_migrations().all(|known| known != **version));
    unknown.all(|version| *version > newest)
}

/// How long a connection may have been idle to be used without asking whether it is still there.
const IDLE_LIMIT: Duration = Duration::from_secs(1);
/// How long a living connection may take to say so.
const LIFE_SIGN_LIMIT: Duration = Duration::from_secs(2);

/// A duration as PostgreSQL takes it. Precise to the microsecond.
fn interval(duration: Duration) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
    }
}

/// One value of each row of a batch, as a statement takes them.
fn column<'a, T, V>(rows: &'a [T], value: impl FnMut(&'a T) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}

/// Reads back a name that a CHECK constraint keeps to known values.
fn stored<T: std::str::FromStr>(what: &'static str, text: &str) -> Result<T, Error> {
    text.parse().map_err(|_| Error::Corrupt {
        what,
        found: text.to_owned(),
    })
}

/// The same of what may be missing.
fn stored_if<T: std::str::FromStr>(what: &'static str, text: Option<&str>) -> Result<Option<T>, Error> {
    text.map(|text| stored(what, text)).transpose()
}
