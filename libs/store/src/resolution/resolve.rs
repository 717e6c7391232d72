//! Dead letters about something that is sent again: resolved, whether a reseller, an operator or a job had it sent.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::{Act, Error};

/// Resolves the open dead letters about pushes and notifications that are due again; returns them.
pub(crate) async fn resolve(
    connection: &mut PgConnection,
    due: &[Uuid],
    act: &Act<'_>,
    job: Option<Uuid>,
) -> Result<Vec<Uuid>, Error> {
    if due.is_empty() {
        return Ok(Vec::new());
    }
    Ok(sqlx::query_scalar!(
        r#"
        WITH about_push AS (
            SELECT id FROM dead_letters WHERE push_id = ANY ($1) AND state = 'OPEN'
            FOR UPDATE SKIP LOCKED),
        about_notification AS (
            SELECT id FROM dead_letters WHERE notification_id = ANY ($1) AND state = 'OPEN'
            FOR UPDATE SKIP LOCKED)
        UPDATE dead_letters d SET state = 'REPLAYED', resolved_at = $2, resolved_by = $3, note = $4, job_id = $5
        FROM (SELECT id FROM about_push UNION ALL SELECT id FROM about_notification) AS open
        WHERE d.id = open.id
        RETURNING d.id
        "#,
        due,
        act.at,
        act.by,
        act.note,
        job,
    )
    .fetch_all(connection)
    .await?)
}
