//! The catalogue of event types: what resellers can subscribe to, and what payloads of a type look like.
//!
//! It deliberately checks no payload: a schema is stored as it came, and the service that accepts events compiles it.

use chrono::{DateTime, Utc};
use domain::event::UnknownFields;
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::PgExecutor;

use crate::read::Name;
use crate::{Act, Error, Store, text};

/// An event type of the catalogue.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventType {
    /// Its name, such as `domain.created`.
    pub name: String,
    /// When it occurs, for people.
    pub description: String,
    /// A JSON array that describes the attributes of a payload, for people.
    pub attributes: Value,
    /// A payload.
    pub example: Value,
    /// A JSON array of further payloads with their names and descriptions, for people.
    pub variants: Value,
    /// A JSON Schema for payloads.
    pub schema: Option<Value>,
    /// What becomes of fields of a payload that the schema does not list.
    pub unknown_fields: UnknownFields,
    /// When it got into the catalogue.
    pub created_at: DateTime<Utc>,
    /// When it last changed.
    pub updated_at: DateTime<Utc>,
    /// When it was retired.
    pub retired_at: Option<DateTime<Utc>>,
}

/// What the catalogue is to say of an event type.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEventType {
    /// Its name.
    pub name: String,
    /// When it occurs, for people.
    pub description: String,
    /// A JSON array.
    pub attributes: Value,
    /// A JSON object.
    pub example: Value,
    /// A JSON array.
    pub variants: Value,
    /// A JSON Schema for payloads.
    pub schema: Option<Value>,
    /// What becomes of fields of a payload that the schema does not list.
    pub unknown_fields: UnknownFields,
}

impl Store {
    /// The event type of this name, retired ones included.
    pub async fn find_event_type(&self, name: &str) -> Result<Option<EventType>, Error> {
        find(&self.pool, name).await
    }

    /// Every event type by name, retired ones included.
    pub async fn list_event_types(&self) -> Result<Vec<EventType>, Error> {
        Ok(sqlx::query_as!(
            EventType,
            r#"
            SELECT name, description, attributes, example, variants, schema, unknown_fields AS "unknown_fields: Name<_>",
                   created_at, updated_at, retired_at
            FROM event_types ORDER BY name
            "#,
        )
        .fetch_all(&self.pool)
        .await?)
    }

    /// Adds an event type to the catalogue, or replaces what the catalogue says of it; one that was retired is in use
    /// again. Returns whether it was new.
    pub async fn put_event_type(&self, event_type: &NewEventType, act: Act<'_>) -> Result<bool, Error> {
        let mut transaction = self.pool.begin().await?;
        let description = text::storable(&event_type.description);
        let schema = event_type.schema.as_ref().map(text::storable_json);
        let before = find(&mut *transaction, &event_type.name).await?;
        let new = sqlx::query_scalar!(
            r#"
            INSERT INTO event_types AS t
                (name, description, attributes, example, variants, schema, unknown_fields, created_at, updated_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
            ON CONFLICT (name) DO UPDATE
            SET description = EXCLUDED.description, attributes = EXCLUDED.attributes, example = EXCLUDED.example,
                variants = EXCLUDED.variants, schema = EXCLUDED.schema,
                unknown_fields = EXCLUDED.unknown_fields, retired_at = NULL,
                -- A process that remembers a compiled schema knows it by this time: it must not stand still.
                updated_at = greatest(EXCLUDED.updated_at, t.updated_at + interval '1 microsecond')
            RETURNING xmax = 0 AS "new!"
            "#,
            event_type.name,
            description.as_ref(),
            text::storable_json(&event_type.attributes),
            text::storable_json(&event_type.example),
            text::storable_json(&event_type.variants),
            schema,
            event_type.unknown_fields.as_str(),
            act.at,
        )
        .fetch_one(&mut *transaction)
        .await?;
        let mut details = json!({ "new": new });
        if let Some(before) = before {
            event_type.tell_changes(&before, &mut details);
        }
        let entry = act.entry("event-type.put", subject(&event_type.name), details);
        entry.record(&mut transaction).await?;
        transaction.commit().await?;
        Ok(new)
    }

    /// Retires an event type: new events of it are refused from now on. `false` when there is none of this name that is
    /// in use.
    pub async fn retire_event_type(&self, name: &str, act: Act<'_>) -> Result<bool, Error> {
        let mut transaction = self.pool.begin().await?;
        let retired = sqlx::query!(
            r#"
            UPDATE event_types SET retired_at = $2, updated_at = greatest($2, updated_at + interval '1 microsecond')
            WHERE name = $1 AND retired_at IS NULL
            "#,
            name,
            act.at,
        )
        .execute(&mut *transaction)
        .await?;
        let is_retired = retired.rows_affected() == 1;
        if is_retired {
            let entry = act.entry("event-type.retire", subject(name), json!({}));
            entry.record(&mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(is_retired)
    }
}

async fn find(database: impl PgExecutor<'_>, name: &str) -> Result<Option<EventType>, Error> {
    Ok(sqlx::query_as!(
        EventType,
        r#"
        SELECT name, description, attributes, example, variants, schema, unknown_fields AS "unknown_fields: Name<_>",
               created_at, updated_at, retired_at
        FROM event_types WHERE name = $1
        "#,
        name,
    )
    .fetch_optional(database)
    .await?)
}

impl NewEventType {
    /// Adds to an audit entry what this says otherwise than what was `before`: its short fields as they were and are, of the long ones the names.
    fn tell_changes(&self, before: &EventType, details: &mut Value) {
        let short = [
            ("description", json!(before.description), json!(self.description)),
            (
                "unknownFields",
                json!(before.unknown_fields),
                json!(self.unknown_fields),
            ),
            ("retiredAt", json!(before.retired_at), Value::Null),
        ];
        for (name, from, to) in short {
            if from != to {
                details[name] = json!({ "from": from, "to": to });
            }
        }
        let long = [
            ("attributes", before.attributes != self.attributes),
            ("example", before.example != self.example),
            ("variants", before.variants != self.variants),
            ("schema", before.schema != self.schema),
        ];
        let changed = long.into_iter().filter(|(_, is_other)| *is_other);
        details["fields"] = changed.map(|(name, _)| name).collect();
    }
}

fn subject(name: &str) -> String {
    format!("event-type/{name}")
}
