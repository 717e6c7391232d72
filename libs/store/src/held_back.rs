//! What holds back the notifications of subscriptions: a pause by an operator or by the reseller, or an endpoint that is not verified.

use std::collections::HashMap;

use domain::subscription::{HeldBack, PausedBy};
use uuid::Uuid;

use crate::read::Name;
use crate::{Error, Store};

impl Store {
    /// What holds back the notifications of each of these subscriptions; those are left out of which nothing does.
    pub async fn held_back(&self, subscriptions: &[Uuid]) -> Result<HashMap<Uuid, HeldBack>, Error> {
        let rows = sqlx::query!(
            r#"
            SELECT s.id, p.paused_by AS "paused_by?: Name<PausedBy>", s.state = 'PENDING_VERIFICATION' AS "is_unverified!"
            FROM subscriptions s
            CROSS JOIN LATERAL (
                SELECT CASE WHEN (SELECT paused FROM lanes WHERE name = 'reseller') THEN 'LANE'
                            WHEN s.held_at IS NOT NULL
                                 AND EXISTS (SELECT FROM pauses WHERE scope = 'reseller' AND key = s.reseller_id)
                                THEN 'ALL_OF_RESELLER'
                            WHEN s.held_at IS NOT NULL THEN 'OPERATOR'
                            WHEN s.paused_at IS NOT NULL THEN 'RESELLER' END AS paused_by) AS p
            WHERE s.id = ANY ($1) AND (p.paused_by IS NOT NULL OR s.state = 'PENDING_VERIFICATION')
            "#,
            subscriptions,
        )
        .fetch_all(&self.pool)
        .await?;
        let held = rows.into_iter().map(|row| {
            let held = HeldBack {
                paused_by: row.paused_by.map(Into::into),
                is_unverified: row.is_unverified,
            };
            (row.id, held)
        });
        Ok(held.collect())
    }
}
