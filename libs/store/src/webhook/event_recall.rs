//! Finding the event that answered a request before, when the request itself cannot be accepted any more.

use uuid::Uuid;

use crate::webhook::event_key::EventKey;
use crate::{Error, Store, column};

impl Store {
    /// The event that answered the same request before, if one did: found by any of its keys.
    pub async fn recall_event(&self, keys: &[EventKey]) -> Result<Option<Uuid>, Error> {
        Ok(sqlx::query_scalar!(
            r#"
            SELECT k.event FROM UNNEST($1::text[], $2::text[], $3::bytea[]) AS i(scope, key, request)
            JOIN event_keys k ON k.scope = i.scope AND k.key = i.key AND k.request = i.request
            LIMIT 1
            "#,
            &column(keys, |key| key.scope.as_str()) as &[&str],
            &column(keys, |key| key.key.as_str()) as &[&str],
            &column(keys, |key| key.request.as_slice()) as &[&[u8]],
        )
        .fetch_optional(&self.pool)
        .await?)
    }
}
