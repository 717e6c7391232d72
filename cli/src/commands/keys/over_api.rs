//! The same over the operator API, for administrators who do not reach the database.

use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::{ApiKey, SuccessorEnd};

use super::RotateArgs;
use crate::api::Api;
use crate::part::Pages;

/// In which the API tells how long a key works beside the one that it was rotated into.
const HOUR: u64 = 3_600;

/// A key that was made.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Made {
    /// The key, which is shown this once.
    pub(super) key: String,
    /// What is stored of it.
    #[serde(flatten)]
    pub(super) stored: ApiKey,
    /// When the key ends that was rotated into it, if one was.
    #[serde(default)]
    pub(super) old_expires_at: Option<DateTime<Utc>>,
}

/// Makes a key like `new`, whose identifier and time the API gives.
pub(super) async fn create(api: &Api, new: &ApiKey, note: Option<&str>) -> anyhow::Result<Made> {
    let body = json!({
        "name": new.name,
        "roles": new.roles,
        "resellerId": new.reseller_id,
        "expiresAt": new.expires_at,
        "scope": new.scope,
        "perSecond": new.per_second,
        "note": note,
    });
    api.post("/keys", &body).await
}

/// All keys, the oldest first, as the database has them.
pub(super) async fn list(api: &Api) -> anyhow::Result<Vec<ApiKey>> {
    let ended_too = Map::from_iter([("revoked".to_owned(), Value::from(true))]);
    let mut document = Pages::new(api, "/keys", ended_too, u64::MAX).whole().await?;
    let keys = serde_json::from_value::<Vec<ApiKey>>(document["items"].take());
    let mut keys = keys.context("the answer is no list of keys; is this the operator API?")?;
    keys.reverse();
    Ok(keys)
}

/// Rotates a key.
pub(super) async fn rotate(api: &Api, args: &RotateArgs, end: SuccessorEnd) -> anyhow::Result<Made> {
    let overlap = args.overlap.duration().as_secs();
    if !overlap.is_multiple_of(HOUR) {
        bail!("over the operator API --overlap is in whole hours, such as 2h or 1d");
    }
    let mut body = json!({ "overlapHours": overlap / HOUR, "note": args.note });
    match end {
        SuccessorEnd::SameLife => {}
        SuccessorEnd::Never => body["expiresAt"] = Value::Null,
        SuccessorEnd::At(at) => body["expiresAt"] = json!(at),
    }
    api.post(&format!("/keys/{}/rotate", args.id), &body).await
}
