//! Handing the mix in, many requests at a time.

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};

use super::case::{Case, Posted};
use crate::ingest::{Answer, Ingest};

/// Requests under way at once.
const CONNECTIONS: usize = 32;

/// Posts all cases, one after the other.
pub(crate) async fn post(ingest: &Ingest, cases: Vec<Case>) -> Result<Vec<Posted>> {
    let mut posted = Vec::with_capacity(cases.len());
    for case in cases {
        let answers = answers(ingest, &case).await?;
        posted.push(Posted { case, answers });
    }
    Ok(posted)
}

/// The answers in the order of the requests. Repeated requests go one after the other, so that the first is the first.
async fn answers(ingest: &Ingest, case: &Case) -> Result<Vec<Answer>> {
    let repeats = case
        .requests
        .iter()
        .any(|request| request.idempotency_key.is_some());
    stream::iter(&case.requests)
        .map(|request| ingest.post(&request.push, request.idempotency_key.as_deref()))
        .buffered(if repeats { 1 } else { CONNECTIONS })
        .try_collect()
        .await
}
