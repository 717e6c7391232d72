//! What every connection asks of the server, and what is done where that does not arrive because a connection pooler such as `PgBouncer`
//! is in between.
//!
//! A pooler that keeps a session for each connection is as good as the server, once the settings are made by a statement. One that gives
//! a session to each transaction (`pool_mode = transaction`) is refused: settings and advisory locks would go to other connections.

use std::sync::Arc;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use tokio::sync::{Notify, OnceCell};

use crate::{Error, LIFE_SIGN_LIMIT, hosts};

const SETTINGS: [(&str, &str); 8] = [
    // Bounds what a lost client or a lock can hold up; far above what any statement here takes, and below what callers
    // wait for an answer, so that few of them give up what is still being done. It does not cut a commit that waits for the
    // disk: what must not be done after its caller gave up (a claim) needs more, see `tentative`.
    ("statement_timeout", "8s"),
    ("idle_in_transaction_session_timeout", "30s"),
    // Every statement here wants a few rows by key, or the head of an index. A planner that guesses (a LIMIT it does
    // not know, a partition that is new or was analysed while it was empty) prefers reading whole tables now and then,
    // and a cached plan stays that bad while the table grows. Forbidding those plans makes one plan right for ever, so
    // planning again for each call is not worth its time either.
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    // A forbidden plan that has no alternative, as on an unindexed system table, has a cost that looks worth compiling.
    ("jit", "off"),
];

/// Arrives with the settings and is set nowhere else, neither by a statement nor for a role: it tells whether they have arrived.
const MARK: (&str, &str) = ("postrider.session", "own");

/// The time of its start tells a process from one on another host that has the same number.
const PROCESS: &str = "SELECT pid || ' ' || backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()";

/// How often two connections are compared. Once tells only as long as nothing else uses the pooler.
const COMPARISONS: usize = 5;

/// `host` with what every connection asks for.
pub(crate) fn options(host: PgConnectOptions, application_name: &str) -> PgConnectOptions {
    host.application_name(application_name)
        // Changes nothing since PostgreSQL 12, and poolers refuse it.
        .extra_float_digits(None)
        .options(SETTINGS)
        .options([MARK])
}

/// Looks at each connection before it is used.
pub(crate) struct Sessions {
    hosts: Arc<[PgConnectOptions]>,
    /// Set once a pooler was found to keep a session for each connection.
    apart: OnceCell<()>,
    shared: Arc<Notify>,
}

impl Sessions {
    /// `shared` is told whenever a connection is refused because its session is shared.
    pub(crate) fn new(hosts: Arc<[PgConnectOptions]>, shared: Arc<Notify>) -> Self {
        Self {
            hosts,
            apart: OnceCell::new(),
            shared,
        }
    }

    /// Fails for a connection that must not be used. The pool then opens others until the wait for a connection is over.
    pub(crate) async fn begin(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        // Nothing is prepared by then: a pooler that shares sessions mixes up the names of prepared statements.
        let row = sqlx::raw_sql(
            "SELECT current_setting('postrider.session', true), current_setting('transaction_read_only')",
        )
        .fetch_one(&mut *connection)
        .await?;
        if self.hosts.len() > 1 && row.try_get::<String, _>(1)? == "on" {
            return Err(sqlx::Error::Configuration(
                "this host of the database cannot be written to".into(),
            ));
        }
        if row.try_get::<Option<String>, _>(0)?.as_deref() == Some(MARK.1) {
            return Ok(());
        }
        let check = self.check(&mut *connection);
        self.apart.get_or_try_init(|| check).await?;
        let settings = SETTINGS.map(|(name, value)| format!("set_config('{name}', '{value}', false)"));
        sqlx::raw_sql(AssertSqlSafe(format!("SELECT {}", settings.join(", "))))
            .fetch_one(connection)
            .await?;
        Ok(())
    }

    /// Whether a connection answers and, where there are several hosts, can be written to: not one to a primary that was demoted. An error
    /// makes the pool close it at once, without a farewell that the server would not hear.
    pub(crate) async fn is_usable(&self, connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
        let answer = async {
            if self.hosts.len() > 1 {
                hosts::is_writable(connection).await
            } else {
                connection.ping().await.map(|()| true)
            }
        };
        tokio::time::timeout(LIFE_SIGN_LIMIT, answer)
            .await
            .unwrap_or_else(|_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))
    }

    async fn check(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let comparing = tokio::time::timeout(LIFE_SIGN_LIMIT, self.are_shared(connection));
        // Where the other connection waits in vain, all sessions are taken for long: they are kept by connections.
        if comparing.await.unwrap_or(Ok(false))? {
            self.shared.notify_waiters();
            return Err(sqlx::Error::Configuration(Box::new(Error::SharedSessions)));
        }
        Ok(())
    }

    /// Whether one process of the server serves two connections, or two serve one. The other connection asks twice: a pooler may hand out
    /// the session that was given back last, or the one that was given back first.
    async fn are_shared(&self, connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
        let own = process(connection).await?;
        for host in self.hosts.iter() {
            let Some(mut other) = hosts::connect(host).await else {
                continue;
            };
            for _ in 0..COMPARISONS {
                let now = process(connection).await?;
                let (first, second) = (process(&mut other).await?, process(&mut other).await?);
                if now != own || first == own || first != second {
                    return Ok(true);
                }
            }
            other.close().await?;
        }
        Ok(false)
    }
}

async fn process(connection: &mut PgConnection) -> Result<String, sqlx::Error> {
    sqlx::raw_sql(PROCESS).fetch_one(connection).await?.try_get(0)
}
