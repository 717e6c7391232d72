//! Doors to what is private here, for the properties of `testing/fuzz/properties`. They add nothing of their own.

use std::time::Duration;

use domain::notification::DeliveryOutcome;
use domain::push::SendOutcome;
use http::Response;
use reqwest::{Body, Url};
use tokio::time::Instant;

use crate::{SwrveError, swrve, webhook};

/// How long a body may take to be read.
const PATIENCE: Duration = Duration::from_secs(600);

/// What an answer of Swrve stands for.
pub async fn swrve_answer(answer: Response<Vec<u8>>) -> SendOutcome {
    swrve::answer::outcome_of(answer.map(Body::from).into(), Instant::now() + PATIENCE).await
}

/// What an endpoint's answer stands for, with the first `kept` bytes of its body.
pub async fn webhook_answer(answer: Response<Vec<u8>>, kept: usize) -> DeliveryOutcome {
    webhook::answer::outcome_of(answer.map(Body::from).into(), kept, Instant::now() + PATIENCE).await
}

/// Where pushes are sent to when `swrve.url` is `base`.
pub fn swrve_endpoint(base: &str) -> Result<Url, SwrveError> {
    swrve::endpoint::push_endpoint(base)
}
