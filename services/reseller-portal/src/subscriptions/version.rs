//! The version of a subscription, as `ETag` and `If-Match` have it: of what its reseller can change, so that deliveries and pauses do not
//! make another one.

use serde_json::json;
use sha2::{Digest as _, Sha256};
use store::webhook::SubscriptionView;

/// A strong entity tag.
pub(crate) fn version(view: &SubscriptionView) -> String {
    let content = json!([
        view.url,
        view.event_types,
        view.email,
        view.description,
        view.timeout_millis,
        view.resend_after_outage,
        view.retry_plan.as_str(),
        view.retry_client_errors,
    ]);
    let digest = Sha256::digest(content.to_string());
    format!("\"{}\"", hex::encode(&digest[..8]))
}
