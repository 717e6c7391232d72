//! Forgetting dead letters and jobs: what was settled long ago, and in the end also those that were never decided about, when
//! what they are about is gone.

use crate::{Cutoff, Error, Store};

impl Store {
    /// Forgets at most `limit` dead letters that were resolved before the cutoff; returns how many.
    pub async fn forget_resolved_dead_letters(&self, cutoff: Cutoff, limit: u32) -> Result<u64, Error> {
        let forgotten = sqlx::query!(
            r#"
            DELETE FROM dead_letters
            WHERE id IN (SELECT id FROM dead_letters
                         WHERE state IN ('REPLAYED', 'DISCARDED') AND created_at < $1 AND resolved_at < $1
                         LIMIT $2 FOR UPDATE SKIP LOCKED)
            "#,
            cutoff.before(),
            i64::from(limit),
        )
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }

    /// Forgets at most `limit` open dead letters that were written before the cutoff; returns how many.
    pub async fn forget_open_dead_letters(&self, cutoff: Cutoff, limit: u32) -> Result<u64, Error> {
        // The reasons that there are lead along the index to the oldest dead letters of each.
        let forgotten = sqlx::query!(
            r#"
            DELETE FROM dead_letters
            WHERE id IN (SELECT id FROM dead_letters
                         WHERE state = 'OPEN' AND lane IN ('push', 'reseller') AND created_at < $1
                           AND reason = ANY (ARRAY(SELECT DISTINCT reason FROM dead_letter_tallies WHERE state = 'OPEN'))
                         LIMIT $2 FOR UPDATE SKIP LOCKED)
            "#,
            cutoff.before(),
            i64::from(limit),
        )
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }

    /// Forgets the jobs that ended before the cutoff; returns how many.
    pub async fn forget_dead_letter_jobs(&self, cutoff: Cutoff) -> Result<u64, Error> {
        let forgotten = sqlx::query!(
            "DELETE FROM dead_letter_jobs WHERE finished_at < $1",
            cutoff.before()
        )
        .execute(&self.pool)
        .await?;
        Ok(forgotten.rows_affected())
    }

    /// Makes one tally of several of the same kind and hour, which concurrent changes leave behind, and none of those that
    /// sum up to nothing. What another transaction is changing is left for another time; no count changes.
    pub async fn fold_dead_letter_tallies(&self) -> Result<(), Error> {
        sqlx::query!(
            r#"
            WITH several AS (
                SELECT state, lane, reason, fingerprint, target, hour FROM dead_letter_tallies
                GROUP BY state, lane, reason, fingerprint, target, hour HAVING count(*) > 1
                LIMIT 10000),
            taken AS (
                SELECT t.id FROM dead_letter_tallies t
                JOIN several USING (state, lane, reason, fingerprint, target, hour)
                FOR UPDATE OF t SKIP LOCKED),
            folded AS (
                DELETE FROM dead_letter_tallies t USING taken WHERE t.id = taken.id
                RETURNING t.state, t.lane, t.reason, t.fingerprint, t.target, t.hour, t.letters)
            INSERT INTO dead_letter_tallies (state, lane, reason, fingerprint, target, hour, letters)
            SELECT state, lane, reason, fingerprint, target, hour, sum(letters) FROM folded
            GROUP BY state, lane, reason, fingerprint, target, hour HAVING sum(letters) <> 0
            "#
        )
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}
