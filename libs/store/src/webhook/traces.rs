//! Which traces notifications belong to. Asked apart from their promotion, so that those who record none do not pay for it.

use std::collections::HashMap;

use domain::notification::NotificationId;
use uuid::Uuid;

use crate::{Error, Store};

impl Store {
    /// The W3C trace context of the request that brought the event, for those of `ids` that have one.
    pub async fn notification_traces(&self, ids: &[Uuid]) -> Result<HashMap<NotificationId, String>, Error> {
        let rows = sqlx::query!(
            r#"
            SELECT n.id, e.traceparent AS "traceparent!"
            FROM notifications n JOIN events e ON e.id = n.event
            WHERE n.id = ANY($1) AND e.traceparent IS NOT NULL
            "#,
            ids,
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows
            .into_iter()
            .map(|row| (row.id.into(), row.traceparent))
            .collect())
    }
}
