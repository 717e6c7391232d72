//! What waits because of pauses.

use crate::read::Count;
use crate::{Error, PauseView, Store};

/// Most notifications that are counted for a pause; one more says that there are more.
pub const PAUSED_COUNTED_MAX: u64 = 10_000;

/// How many notifications wait that a pause concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedWaiting {
    /// `subscription` or `reseller`.
    pub scope: String,
    /// Which one.
    pub key: String,
    /// How many, counted up to one more than [`PAUSED_COUNTED_MAX`].
    pub waiting: u64,
}

impl Store {
    /// What waits because of these pauses of subscriptions and resellers, of the first `most` of them.
    pub async fn waiting_for_pauses(
        &self,
        pauses: &[PauseView],
        most: usize,
    ) -> Result<Vec<PausedWaiting>, Error> {
        let counted = pauses.iter().filter(|pause| pause.scope != "lane").take(most);
        let (scopes, keys): (Vec<String>, Vec<String>) = counted
            .map(|pause| (pause.scope.clone(), pause.key.clone()))
            .unzip();
        Ok(sqlx::query_as!(
            PausedWaiting,
            r#"
            SELECT p.scope AS "scope!", p.key AS "key!", w.waiting AS "waiting!: Count"
            FROM UNNEST($2::text[], $3::text[]) WITH ORDINALITY AS p(scope, key, place)
            CROSS JOIN LATERAL (
                SELECT count(*) AS waiting FROM (
                    SELECT 1 FROM subscriptions s
                    CROSS JOIN LATERAL (
                        (SELECT 1 FROM notifications n WHERE n.subscription_id = s.id AND n.status = 'PENDING' LIMIT $1)
                        UNION ALL
                        (SELECT 1 FROM notifications n WHERE n.subscription_id = s.id AND n.status = 'RETRY' LIMIT $1)
                        UNION ALL
                        (SELECT 1 FROM notifications n WHERE n.subscription_id = s.id AND n.status = 'SCHEDULED' LIMIT $1)) AS n
                    WHERE s.deleted_at IS NULL
                      AND (s.id = CASE WHEN p.scope = 'subscription' THEN p.key::uuid END
                           OR s.reseller_id = CASE WHEN p.scope = 'reseller' THEN p.key END)
                    LIMIT $1) AS counted) AS w
            ORDER BY p.place
            "#,
            PAUSED_COUNTED_MAX.cast_signed() + 1,
            &scopes,
            &keys,
        )
        .fetch_all(&self.pool)
        .await?)
    }
}
