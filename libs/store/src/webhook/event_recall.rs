//! Finding the event that answered a request before, when the request itself cannot be accepted any more.

use uuid::Uuid;

use crate::webhook::event_key::EventKey;
use crate::{Error, Store};

impl Store {
    /// The event that answered the same request before, if one did: found by any of its keys.
    pub async fn recall_event(&self, keys: &[EventKey]) -> Result<Option<Uuid>, Error> {
        let event = sqlx::query_scalar!(
            r#"
            SELECT k.event FROM UNNEST($1::text[], $2::text[], $3::bytea[]) AS i(scope, key, request)
            JOIN event_keys k ON k.scope = i.scope AND k.key = i.key AND k.request = i.request
            LIMIT 1
            "#,
            &keys.iter().map(|key| key.scope.as_str()).collect::<Vec<_>>() as &[&str],
            &keys.iter().map(|key| key.key.as_str()).collect::<Vec<_>>() as &[&str],
            &keys.iter().map(|key| key.request.as_slice()).collect::<Vec<_>>() as &[&[u8]],
        )
        .fetch_optional(&self.pool)
        .await?;
        Ok(event)
    }
}
