//! What operators stop for a while: a lane, a subscription, or all of a reseller. A pause takes the lock that every claim
//! asks for, and waits for those under way (see `enter_lane` in the migrations): once it has been answered, no claim that
//! it concerns commits any more. What was claimed before is sent and recorded.
//!
//! It deliberately says nothing about a reseller's own pause, which is in its subscription, and stops no process: engines look
//! here by themselves, and the claiming statements refuse whatever they ask meanwhile.

use std::time::{Duration, Instant};

use chrono::{DateTime, SubsecRound as _, Utc};
pub use domain::lane::Lane;
use serde::Serialize;
use serde_json::json;
use sqlx::{PgConnection, Postgres, Transaction};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::read::Count;
use crate::text::storable;
use crate::{Act, Error, Store, stored};

/// What is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pausable {
    /// All of a lane.
    Lane(Lane),
    /// One subscription.
    Subscription(Uuid),
    /// All subscriptions of a reseller, those to come included.
    Reseller(String),
}

impl Pausable {
    /// The kind of thing, as it is stored and shown.
    pub fn scope(&self) -> &'static str {
        match self {
            Self::Lane(_) => "lane",
            Self::Subscription(_) => "subscription",
            Self::Reseller(_) => "reseller",
        }
    }

    /// Which one of its kind.
    pub fn key(&self) -> String {
        match self {
            Self::Lane(lane) => lane.as_str().to_owned(),
            Self::Subscription(id) => id.to_string(),
            Self::Reseller(reseller) => reseller.clone(),
        }
    }

    /// What a row of `pauses` is about.
    fn read(scope: &str, key: String) -> Result<Self, Error> {
        match scope {
            "lane" => Ok(Self::Lane(stored("lane", &key)?)),
            "subscription" => Ok(Self::Subscription(stored("identifier of a subscription", &key)?)),
            "reseller" => Ok(Self::Reseller(key)),
            _ => Err(Error::Corrupt {
                what: "scope of a pause",
                found: scope.to_owned(),
            }),
        }
    }

    /// The lane whose claims it concerns.
    fn lane(&self) -> Lane {
        match self {
            Self::Lane(lane) => *lane,
            Self::Subscription(_) | Self::Reseller(_) => Lane::Reseller,
        }
    }
}

/// A pause that is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Pause)]
pub struct PauseView {
    /// What kind of thing is paused: `lane`, `subscription` or `reseller`.
    #[schema(example = "lane")]
    pub scope: String,
    /// Which one: the lane's name, the subscription's identifier, the reseller's.
    #[schema(example = "push")]
    pub key: String,
    /// Whose subscription it is.
    #[serde(rename = "resellerId")]
    pub reseller: Option<String>,
    /// What its reseller calls the subscription, else where it sends to.
    #[schema(example = "Domains, production")]
    pub name: Option<String>,
    /// Why.
    #[schema(example = "Swrve asked us to wait, see incident 17.")]
    pub note: String,
    /// The name and identifier of the API key.
    #[schema(example = "maria (019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d)")]
    pub paused_by: String,
    /// Since when.
    pub paused_at: DateTime<Utc>,
    /// When it ends by itself; null when it lasts until it is resumed.
    pub until: Option<DateTime<Utc>>,
    /// Whether its reseller has made it, who alone can end it.
    pub by_reseller: bool,
}

/// What came of pausing or resuming something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PauseChange {
    /// It is so now.
    Changed,
    /// It was so before.
    Unchanged,
    /// There is no such thing.
    Unknown,
}

/// How much is paused, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PauseCounts {
    /// Whether the push lane is.
    pub push_lane: bool,
    /// Whether the reseller lane is.
    pub reseller_lane: bool,
    /// Subscriptions, each by itself.
    pub subscriptions: u64,
    /// Resellers.
    pub resellers: u64,
}

/// Who ends a pause whose time is over, for the audit log.
const END_OF_PAUSE: &str = "postrider (end of the pause)";

/// How long claims under way are waited for. Operators wait for the answer.
const CLOSING_LIMIT: Duration = Duration::from_secs(6);
/// How long claims go on between two turns.
const CLOSING_PAUSE: Duration = Duration::from_millis(100);

impl Store {
    /// Pauses something until it is resumed; otherwise as [`Store::pause_until`].
    pub async fn pause(&self, what: &Pausable, act: Act<'_>) -> Result<PauseChange, Error> {
        self.pause_until(what, None, act).await
    }

    /// Pauses something, where `until` says so up to a time at which [`Store::end_pauses`] resumes it. What is paused already stays so, with the
    /// first note and end. Waits for claims that are under way, for some seconds.
    ///
    /// # Errors
    ///
    /// [`Error::ClaimsUnderWay`] when they do not end in time, or [`Error`] when the database fails; then nothing is paused.
    pub async fn pause_until(
        &self,
        what: &Pausable,
        until: Option<DateTime<Utc>>,
        act: Act<'_>,
    ) -> Result<PauseChange, Error> {
        // As the database keeps it, so that the audit log says the same.
        let until = until.map(|until| until.trunc_subsecs(6));
        let mut transaction = self.close_lane(what.lane()).await?;
        lock(&mut transaction, what).await?;
        if !exists(&mut transaction, what).await? {
            return Ok(PauseChange::Unknown);
        }
        let inserted = sqlx::query!(
            r#"
            INSERT INTO pauses (scope, key, note, paused_by, paused_at, until) VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (scope, key) DO NOTHING
            "#,
            what.scope(),
            what.key(),
            &*storable(act.note.unwrap_or_default()),
            &*storable(act.by),
            act.at,
            until,
        )
        .execute(&mut *transaction)
        .await?;
        if inserted.rows_affected() == 0 {
            return Ok(PauseChange::Unchanged);
        }
        note_change(&mut transaction, what, true).await?;
        hold(&mut transaction, what, act.at).await?;
        let action = format!("{}.pause", what.scope());
        let details = until.map_or_else(|| json!({}), |until| json!({"until": until}));
        let entry = act.entry(&action, subject(what), details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(PauseChange::Changed)
    }

    /// Lets something go on. A subscription whose reseller is paused as well stays held, and the other way round. An
    /// endpoint that failed before is judged from now on, while it stays known since when it fails: what was not tried meanwhile is no
    /// failure.
    ///
    /// # Errors
    ///
    /// As [`Store::pause`]; then nothing is changed.
    pub async fn resume(&self, what: &Pausable, act: Act<'_>) -> Result<PauseChange, Error> {
        self.resume_due(what, None, act).await
    }

    /// Resumes what is paused until `now` or a time before, and says how much that was. A pause that another ends meanwhile is not ended twice, and
    /// one that was made instead of it stays; one that cannot be ended now keeps none of the other lane from its end.
    ///
    /// # Errors
    ///
    /// As [`Store::pause`], for the last that could not be ended.
    pub async fn end_pauses(&self, now: DateTime<Utc>) -> Result<u64, Error> {
        let due = sqlx::query!(
            "SELECT scope, key FROM pauses WHERE until <= $1 ORDER BY until, scope, key",
            now
        )
        .fetch_all(&self.pool)
        .await?;
        let act = Act {
            by: END_OF_PAUSE,
            note: None,
            at: now,
        };
        let (mut ended, mut failure) = (0, None);
        let mut busy: Vec<Lane> = Vec::new();
        for row in due {
            let what = Pausable::read(&row.scope, row.key)?;
            // Its claims did not end in time a moment ago, and waiting for them again would hold up claims and the pauses of the other lane.
            if busy.contains(&what.lane()) {
                continue;
            }
            match self.resume_due(&what, Some(now), act).await {
                Ok(PauseChange::Changed) => ended += 1,
                Ok(PauseChange::Unchanged | PauseChange::Unknown) => {}
                Err(error) => {
                    busy.push(what.lane());
                    failure = Some(error);
                }
            }
        }
        failure.map_or(Ok(ended), Err)
    }

    /// As [`Store::resume`], where `due` says so only if the pause ends by itself then or before.
    async fn resume_due(
        &self,
        what: &Pausable,
        due: Option<DateTime<Utc>>,
        act: Act<'_>,
    ) -> Result<PauseChange, Error> {
        let mut transaction = self.close_lane(what.lane()).await?;
        lock(&mut transaction, what).await?;
        let before = sqlx::query!(
            r#"
            DELETE FROM pauses WHERE scope = $1 AND key = $2 AND ($3::timestamptz IS NULL OR until <= $3)
            RETURNING note, paused_by, paused_at
            "#,
            what.scope(),
            what.key(),
            due,
        )
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(before) = before else {
            let known = exists(&mut transaction, what).await?;
            return Ok(if known {
                PauseChange::Unchanged
            } else {
                PauseChange::Unknown
            });
        };
        note_change(&mut transaction, what, false).await?;
        resume(&mut transaction, what, before.paused_at, act.at).await?;
        let details =
            json!({"pausedBy": before.paused_by, "pausedAt": before.paused_at, "pauseNote": before.note});
        let action = format!("{}.resume", what.scope());
        let entry = act.entry(&action, subject(what), details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(PauseChange::Changed)
    }

    /// Every pause that is in force: lanes first, then the longest.
    pub async fn list_pauses(&self) -> Result<Vec<PauseView>, Error> {
        Ok(sqlx::query_as!(
            PauseView,
            r#"
            SELECT p.scope, p.key, p.note, p.paused_by, p.paused_at, p.until, s.reseller_id AS "reseller?",
                   coalesce(nullif(s.description, ''), split_part(s.url, '?', 1)) AS "name?", false AS "by_reseller!"
            FROM pauses p
            LEFT JOIN subscriptions s ON s.id = CASE WHEN p.scope = 'subscription' THEN p.key::uuid END
            ORDER BY p.scope <> 'lane', p.paused_at, p.key
            "#,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// The pauses that resellers have made of subscriptions of their own, the longest first, at most `limit`.
    pub async fn pauses_by_resellers(&self, limit: u32) -> Result<Vec<PauseView>, Error> {
        Ok(sqlx::query_as!(
            PauseView,
            r#"
            SELECT 'subscription' AS "scope!", id::text AS "key!", '' AS "note!", 'reseller ' || reseller_id AS "paused_by!",
                   paused_at AS "paused_at!", NULL::timestamptz AS until, reseller_id AS "reseller?",
                   coalesce(nullif(description, ''), split_part(url, '?', 1)) AS "name?", true AS "by_reseller!"
            FROM subscriptions WHERE paused_at IS NOT NULL AND deleted_at IS NULL
            ORDER BY paused_at, id LIMIT $1
            "#,
            i64::from(limit),
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Everything that keeps something paused, itself included, in words.
    pub async fn pauses_of(&self, what: &Pausable) -> Result<Vec<String>, Error> {
        let mut pauses = self.other_pauses(what).await?;
        let (scope, key) = (what.scope(), what.key());
        let all = self.list_pauses().await?;
        let own = all.iter().find(|pause| pause.scope == scope && pause.key == key);
        if let Some(own) = own {
            pauses.insert(0, format!("the {scope} {key} is paused by {}", own.paused_by));
        }
        Ok(pauses)
    }

    /// Other pauses that something is under, in words.
    pub async fn other_pauses(&self, what: &Pausable) -> Result<Vec<String>, Error> {
        let mut others = Vec::new();
        if !matches!(what, Pausable::Lane(_)) && self.lane_is_paused(Lane::Reseller).await? {
            others.push("the reseller lane is paused".to_owned());
        }
        let Pausable::Subscription(id) = what else {
            return Ok(others);
        };
        let row = sqlx::query!(
            r#"
            SELECT reseller_id, paused_at IS NOT NULL AS "own!",
                   EXISTS (SELECT FROM pauses WHERE scope = 'reseller' AND key = reseller_id) AS "reseller!"
            FROM subscriptions WHERE id = $1
            "#,
            id,
        )
        .fetch_optional(&self.pool)
        .await?;
        if let Some(row) = row {
            if row.reseller {
                others.push(format!("all of reseller {} is paused", row.reseller_id));
            }
            if row.own {
                others.push("its reseller has paused it".to_owned());
            }
        }
        Ok(others)
    }

    /// Since when a lane is paused, if it is, and until when where the pause ends by itself.
    pub async fn lane_paused(
        &self,
        lane: Lane,
    ) -> Result<Option<(DateTime<Utc>, Option<DateTime<Utc>>)>, Error> {
        let row = sqlx::query!(
            "SELECT paused_at, until FROM pauses WHERE scope = 'lane' AND key = $1",
            lane.as_str()
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(row.map(|row| (row.paused_at, row.until)))
    }

    /// Whether a lane is paused, as far as engines look.
    pub async fn lane_is_paused(&self, lane: Lane) -> Result<bool, Error> {
        Ok(
            sqlx::query_scalar!("SELECT paused FROM lanes WHERE name = $1", lane.as_str())
                .fetch_one(&self.pool)
                .await?,
        )
    }

    /// Counts what is paused.
    pub async fn count_pauses(&self) -> Result<PauseCounts, Error> {
        Ok(sqlx::query_as!(
            PauseCounts,
            r#"
            SELECT count(*) FILTER (WHERE scope = 'lane' AND key = 'push') > 0 AS "push_lane!",
                   count(*) FILTER (WHERE scope = 'lane' AND key = 'reseller') > 0 AS "reseller_lane!",
                   count(*) FILTER (WHERE scope = 'subscription') AS "subscriptions!: Count",
                   count(*) FILTER (WHERE scope = 'reseller') AS "resellers!: Count"
            FROM pauses
            "#,
        )
        .fetch_one(&self.pool)
        .await?)
    }
}

fn subject(what: &Pausable) -> String {
    format!("{}/{}", what.scope(), what.key())
}

impl Store {
    /// Begins a transaction during which nothing is claimed in a lane: waits for the claims that are under way, and makes those to
    /// come wait for its end.
    ///
    /// While this waits for the lock, every later claim waits behind it. So it is waited for in short turns, between which claims
    /// go on: a claim that takes long delays the pause, and not the whole lane.
    async fn close_lane(&self, lane: Lane) -> Result<Transaction<'static, Postgres>, Error> {
        let until = Instant::now() + CLOSING_LIMIT;
        loop {
            let mut transaction = self.pool.begin().await?;
            match lock_lane(&mut transaction, lane).await {
                Ok(()) => return Ok(transaction),
                Err(error) if error.is_lock_timeout() && Instant::now() < until => {}
                Err(error) if error.is_lock_timeout() => {
                    return Err(Error::ClaimsUnderWay {
                        lane,
                        limit: CLOSING_LIMIT,
                    });
                }
                Err(error) => return Err(error),
            }
            transaction.rollback().await?;
            tokio::time::sleep(CLOSING_PAUSE).await;
        }
    }
}

async fn lock_lane(connection: &mut PgConnection, lane: Lane) -> Result<(), Error> {
    // No process claims while the lock is held: a holder that is cut off in between must not keep it for long.
    sqlx::query!("SET LOCAL idle_in_transaction_session_timeout = '5s'")
        .execute(&mut *connection)
        .await?;
    sqlx::query!("SET LOCAL lock_timeout = '500ms'")
        .execute(&mut *connection)
        .await?;
    sqlx::query!(
        "SELECT pg_advisory_xact_lock(hashtextextended('postrider.lane/' || $1, 0))",
        lane.as_str(),
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!("SET LOCAL lock_timeout TO DEFAULT")
        .execute(connection)
        .await?;
    Ok(())
}

/// Takes what has to be taken before the row of the pause.
async fn lock(connection: &mut PgConnection, what: &Pausable) -> Result<(), Error> {
    match what {
        Pausable::Lane(_) => Ok(()),
        Pausable::Subscription(id) => lock_subscription(connection, *id).await,
        Pausable::Reseller(reseller) => lock_reseller(connection, reseller).await,
    }
}

/// The deletion of a subscription takes it first as well, and then its pause.
async fn lock_subscription(connection: &mut PgConnection, id: Uuid) -> Result<(), Error> {
    sqlx::query!("SELECT FROM subscriptions WHERE id = $1 FOR NO KEY UPDATE", id)
        .execute(connection)
        .await?;
    Ok(())
}

/// The lock under which subscriptions of a reseller are made: none appears between a pause and what it holds.
async fn lock_reseller(connection: &mut PgConnection, reseller: &str) -> Result<(), Error> {
    sqlx::query!(
        "SELECT pg_advisory_xact_lock(hashtextextended('postrider.reseller/' || $1, 0))",
        reseller,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// A reseller is known by its subscriptions or its API keys.
async fn exists(connection: &mut PgConnection, what: &Pausable) -> Result<bool, Error> {
    Ok(match what {
        Pausable::Lane(_) => true,
        Pausable::Subscription(id) => sqlx::query_scalar!(
            r#"SELECT EXISTS (SELECT FROM subscriptions WHERE id = $1 AND deleted_at IS NULL) AS "exists!""#,
            id,
        )
        .fetch_one(connection)
        .await?,
        Pausable::Reseller(reseller) => {
            sqlx::query_scalar!(
                r#"
            SELECT EXISTS (SELECT FROM subscriptions WHERE reseller_id = $1 AND deleted_at IS NULL)
                OR EXISTS (SELECT FROM api_keys WHERE reseller_id = $1) AS "exists!"
            "#,
                reseller,
            )
            .fetch_one(connection)
            .await?
        }
    })
}

/// Tells claims whose snapshot is older that they must look again.
async fn note_change(connection: &mut PgConnection, what: &Pausable, paused: bool) -> Result<(), Error> {
    sqlx::query!(
        "UPDATE lanes SET changes = changes + 1, paused = CASE WHEN $2 THEN $3 ELSE paused END WHERE name = $1",
        what.lane().as_str(),
        matches!(what, Pausable::Lane(_)),
        paused,
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn hold(connection: &mut PgConnection, what: &Pausable, at: DateTime<Utc>) -> Result<(), Error> {
    let (subscription, reseller) = match what {
        Pausable::Lane(_) => return Ok(()),
        Pausable::Subscription(id) => (Some(*id), None),
        Pausable::Reseller(reseller) => (None, Some(reseller.as_str())),
    };
    sqlx::query!(
        r#"
        UPDATE subscriptions s SET held_at = $3, updated_at = $3
        FROM (SELECT id FROM subscriptions
              WHERE (id = $1 OR reseller_id = $2) AND held_at IS NULL AND deleted_at IS NULL
              -- In the order in which everybody locks several.
              ORDER BY id FOR NO KEY UPDATE) l
        WHERE s.id = l.id
        "#,
        subscription,
        reseller,
        at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Undoes [`hold`] where no other pause of an operator stands.
async fn resume(
    connection: &mut PgConnection,
    what: &Pausable,
    since: DateTime<Utc>,
    at: DateTime<Utc>,
) -> Result<(), Error> {
    let (subscription, reseller) = match what {
        Pausable::Lane(Lane::Push) => return Ok(()),
        Pausable::Lane(Lane::Reseller) => return forgive_failures(connection, since, at).await,
        Pausable::Subscription(id) => (Some(*id), None),
        Pausable::Reseller(reseller) => (None, Some(reseller.as_str())),
    };
    sqlx::query!(
        r#"
        UPDATE subscriptions s
        SET held_at = NULL, updated_at = $3,
            judged_from = CASE WHEN failing_since IS NOT NULL THEN $3::timestamptz END
        FROM (SELECT h.id FROM subscriptions h
              WHERE (h.id = $1 OR h.reseller_id = $2) AND h.held_at IS NOT NULL AND h.deleted_at IS NULL
                AND NOT EXISTS (SELECT FROM pauses p WHERE p.scope = 'subscription' AND p.key = h.id::text)
                AND NOT EXISTS (SELECT FROM pauses p WHERE p.scope = 'reseller' AND p.key = h.reseller_id)
              ORDER BY h.id FOR NO KEY UPDATE) l
        WHERE s.id = l.id
        "#,
        subscription,
        reseller,
        at,
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// While the lane was paused nothing was tried, whosever endpoint it was: that time does not count.
async fn forgive_failures(
    connection: &mut PgConnection,
    since: DateTime<Utc>,
    at: DateTime<Utc>,
) -> Result<(), Error> {
    sqlx::query!(
        r#"
        UPDATE subscriptions s
        SET judged_from = least($2::timestamptz,
                greatest(s.failing_since, s.judged_from) + greatest($2::timestamptz - $1::timestamptz, '0'))
        FROM (SELECT id FROM subscriptions WHERE failing_since IS NOT NULL AND deleted_at IS NULL
              ORDER BY id FOR NO KEY UPDATE) l
        WHERE s.id = l.id
        "#,
        since,
        at,
    )
    .execute(connection)
    .await?;
    Ok(())
}
