//! How an operation on the store can fail, by what the caller can do about it.

use std::time::{Duration, Instant};

use domain::names::UnknownName;

use crate::Lane;

/// Why an operation failed. Nothing was changed, unless the connection broke during the commit itself.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database URL cannot be read.
    #[error("the database URL cannot be read")]
    Url(#[source] sqlx::Error),
    /// The database is away, overloaded or in the middle of a restart: the same call may succeed later.
    #[error("the database is not available")]
    Unavailable(#[source] sqlx::Error),
    /// A connection pooler refused: the settings of a session, as `PgBouncer` does by default, or because its server is away.
    #[error(
        "a connection pooler refused: give database.url of PostgreSQL itself, or set ignore_startup_parameters = options and pool_mode = session in PgBouncer"
    )]
    Pooler(#[source] sqlx::Error),
    /// A connection pooler gives a session to each transaction instead of each connection, so that no connection is used.
    #[error(
        "a connection pooler shares sessions: give database.url of PostgreSQL itself, or set pool_mode = session in PgBouncer"
    )]
    SharedSessions,
    /// The database did not answer in time, as behind a cut proxy; whether it did what was asked is not known.
    #[error("the database did not answer within {} ms", limit.as_millis())]
    Silent {
        /// How long it was waited for.
        limit: Duration,
    },
    /// A lane cannot be closed: claims in it take longer than they should. The same call may succeed later.
    #[error("claims of the {lane} lane that were under way did not end within {} ms", limit.as_millis())]
    ClaimsUnderWay {
        /// The lane.
        lane: Lane,
        /// How long they were waited for.
        limit: Duration,
    },
    /// The database refused the operation; it will refuse it again.
    #[error("the database refused an operation")]
    Refused(#[source] sqlx::Error),
    /// The schema could not be brought up to date.
    #[error("the schema could not be brought up to date")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    /// Sessions of other roles write events, and since when is hidden from this one: what they write may be missed.
    #[error(
        "sessions of other roles write events, and since when is hidden from this role: GRANT pg_read_all_stats to it, as deploy/postgres/roles.sql does"
    )]
    HiddenSessions,
    /// A stored value means nothing to this version of the program.
    #[error("the stored {what} {found:?} is unknown to this version")]
    Corrupt {
        /// What kind of value.
        what: &'static str,
        /// The value.
        found: String,
    },
}

impl Error {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_) | Self::Pooler(_) | Self::Silent { .. } | Self::ClaimsUnderWay { .. }
        )
    }

    /// Whether a lock was not to be had within `lock_timeout`.
    pub(crate) fn is_lock_timeout(&self) -> bool {
        let Self::Unavailable(sqlx::Error::Database(error)) = self else {
            return false;
        };
        error.code().as_deref() == Some("55P03")
    }
}

/// Bounds the wait for an operation. A connection whose other end has vanished never reports that by itself; when the
/// wait is given up, the pool finds it dead and closes it.
///
/// # Errors
///
/// [`Error::Silent`] when the operation took longer than `limit`, or its own error.
pub async fn within<T>(
    limit: Duration,
    operation: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::time::timeout(limit, operation)
        .await
        .unwrap_or(Err(Error::Silent { limit }))
}

/// Does for each of `ids` by itself what the database refuses for good to do for all of them at once, so that one bad row holds up no
/// other. What is refused is told to `passed_over`, and left as it is. All of it takes no longer than `limit`, and ends with the first
/// failure that passes: what is left by then is not tried, since the caller has no more time for it.
pub async fn singly<I: Copy, T, F: Future<Output = Result<T, Error>>>(
    limit: Duration,
    ids: &[I],
    operation: impl Fn(I) -> F,
    passed_over: impl Fn(I, Error),
) -> Vec<T> {
    let deadline = Instant::now() + limit;
    let mut done = Vec::with_capacity(ids.len());
    for (tried, &id) in ids.iter().enumerate() {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let outcome = if remaining.is_zero() {
            Err(Error::Silent { limit })
        } else {
            within(remaining, operation(id)).await
        };
        match outcome {
            Ok(one) => done.push(one),
            Err(error) if error.is_transient() => {
                let left = ids.len() - tried;
                tracing::warn!(error = %error, left, "the rest is not tried one by one");
                break;
            }
            Err(error) => passed_over(id, error),
        }
    }
    done
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        if let Some(corrupt) = corrupt(&error) {
            corrupt
        } else if is_of_pooler(&error) {
            Self::Pooler(error)
        } else if is_transient(&error) {
            Self::Unavailable(error)
        } else {
            Self::Refused(error)
        }
    }
}

/// What a column had and this version does not know: a name, or something larger.
fn corrupt(error: &sqlx::Error) -> Option<Error> {
    let sqlx::Error::ColumnDecode { source, .. } = error else {
        return None;
    };
    let (what, found) = match (source.downcast_ref(), source.downcast_ref()) {
        (Some(UnknownName { what, found, .. }), _) | (_, Some(Error::Corrupt { what, found })) => {
            (what, found)
        }
        _ => return None,
    };
    Some(Error::Corrupt {
        what,
        found: found.clone(),
    })
}

/// A violation of the protocol: `PgBouncer` says so whenever it refuses, `PostgreSQL` only to a driver with a fault.
fn is_of_pooler(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.code().as_deref() == Some("08P01"))
}

fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => error.code().is_some_and(|code| is_transient_state(&code)),
        _ => false,
    }
}

/// SQLSTATE classes of PostgreSQL's appendix A that pass: 08 connection, 40 rollback, 53 resources, 57 operator
/// intervention, 58 system error; 25006 is a standby that has not been promoted, 55P03 a lock that was not to be had.
fn is_transient_state(code: &str) -> bool {
    matches!(code.get(..2), Some("08" | "40" | "53" | "57" | "58")) || matches!(code, "25006" | "55P03")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pool_passes_and_a_missing_row_does_not() {
        assert!(Error::from(sqlx::Error::PoolTimedOut).is_transient());
        assert!(!Error::from(sqlx::Error::RowNotFound).is_transient());
    }

    #[test]
    fn a_name_that_this_version_does_not_know_is_corrupt() {
        let unknown = "ASLEEP".parse::<domain::push::PushStatus>().unwrap_err();
        let error = Error::from(sqlx::Error::ColumnDecode {
            index: "0".to_owned(),
            source: unknown.into(),
        });
        assert_eq!(
            error.to_string(),
            r#"the stored status "ASLEEP" is unknown to this version"#
        );
    }

    #[test]
    fn states_of_a_restarting_server_pass_and_broken_constraints_do_not() {
        for code in ["57P01", "57P03", "08006", "40P01", "53300", "25006", "55P03"] {
            assert!(is_transient_state(code), "{code}");
        }
        for code in ["23505", "23514", "42P01", "42703", "22P02"] {
            assert!(!is_transient_state(code), "{code}");
        }
    }

    #[tokio::test]
    async fn one_by_one_ends_with_the_first_failure_that_passes_or_when_time_is_up() {
        let one = async |limit: Duration| {
            let refused = std::cell::RefCell::new(Vec::new());
            let ask = |id: u32| async move {
                match id {
                    2 => Err(Error::Refused(sqlx::Error::RowNotFound)),
                    4 => Err(Error::from(sqlx::Error::PoolTimedOut)),
                    id => Ok(id),
                }
            };
            let done = singly(limit, &[1, 2, 3, 4, 5], ask, |id, _| {
                refused.borrow_mut().push(id)
            })
            .await;
            (done, refused.into_inner())
        };
        assert_eq!(one(Duration::from_secs(60)).await, (vec![1, 3], vec![2]));
        assert_eq!(one(Duration::ZERO).await, (vec![], vec![]));
    }
}
