//! The counts of dead letters that triggers keep, against the rows themselves.

use sqlx::PgPool;

const DIFFERENCES: &str = "
    SELECT coalesce(l.state, t.state) AS state, coalesce(l.fingerprint, t.fingerprint) AS fingerprint,
           coalesce(l.letters, 0), coalesce(t.letters, 0)::bigint
    FROM (SELECT state, lane, reason, fingerprint, target, hour_of(created_at) AS hour, count(*) AS letters
          FROM dead_letters GROUP BY 1, 2, 3, 4, 5, 6) AS l
    FULL JOIN (SELECT state, lane, reason, fingerprint, target, hour, sum(letters) AS letters
               FROM dead_letter_tallies GROUP BY 1, 2, 3, 4, 5, 6 HAVING sum(letters) <> 0) AS t
        USING (state, lane, reason, fingerprint, target, hour)
    WHERE l.letters IS DISTINCT FROM t.letters";

/// Each dead letter is counted once, whichever version has made, resolved or deleted it.
pub(crate) async fn tallies_equal_counts(pool: &PgPool) {
    let differences: Vec<(String, String, i64, i64)> = sqlx::query_as(DIFFERENCES)
        .fetch_all(pool)
        .await
        .expect("the dead letters can be counted");
    assert_eq!(
        differences,
        [],
        "state and kind, how many dead letters there are, and how many the tallies say"
    );
}
