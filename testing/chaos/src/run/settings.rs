//! How the services of a run are configured: everything that takes minutes in production takes seconds here, and everything that is
//! large is small enough to be reached.

use std::time::Duration;

use serde_json::json;

/// The least time between two send starts.
pub(super) const GAP: Duration = Duration::from_millis(4);
/// Attempts after which a push is given up.
pub(super) const PUSH_ATTEMPTS: i32 = 8;
/// Retries after which a notification is given up.
pub(super) const NOTIFICATION_RETRIES: i32 = 4;

/// Variables of the environment of every service; `sealing_key` seals secrets.
pub(super) fn all(sealing_key: &str) -> Vec<(String, String)> {
    let push_keys = json!({"Hello": {"IOS": "Hello-IOS", "ANDROID": "Hello-ANDROID"}});
    let settings = [
        ("INGEST__REQUEST_TIMEOUT_MILLIS", "4000".to_owned()),
        ("AMQP__CONFIRM_TIMEOUT_MILLIS", "2000".to_owned()),
        ("DATABASE__MAX_CONNECTIONS", "8".to_owned()),
        ("DATABASE__ACQUIRE_TIMEOUT_MILLIS", "2000".to_owned()),
        ("SWRVE__DELAY_MILLIS", GAP.as_millis().to_string()),
        // A pool of 100, a lease of seconds in the queue, claims that hold for 24 s.
        ("SWRVE__AVERAGE_PROCESSING_MILLIS", "400".to_owned()),
        ("SWRVE__TIMEOUT_MILLIS", "2000".to_owned()),
        ("SWRVE__MESSAGE_PROTOTYPE_PUSH_KEYS", push_keys.to_string()),
        ("PUSH__QUEUE__CAPACITY", "1000".to_owned()),
        ("PUSH__RETRY__DELAY_IN_SECONDS", "1".to_owned()),
        ("PUSH__RETRY__MAX_ATTEMPTS", PUSH_ATTEMPTS.to_string()),
        ("PUSH__LEADER__TTL_MILLIS", "2000".to_owned()),
        ("PUSH__LEADER__POLL_MILLIS", "200".to_owned()),
        ("RESELLER__QUEUE__CAPACITY", "500".to_owned()),
        ("RESELLER__DELIVERY__TIMEOUT_MILLIS", "2000".to_owned()),
        ("RESELLER__DELIVERY__MAX_TIMEOUT_MILLIS", "2000".to_owned()),
        ("RESELLER__DELIVERY__MAX_IN_FLIGHT", "128".to_owned()),
        ("RESELLER__RETRY__MAX_IN_FLIGHT", "64".to_owned()),
        ("RESELLER__RETRY__MAX_RETRIES", NOTIFICATION_RETRIES.to_string()),
        ("RESELLER__RETRY__INITIAL_DELAY_IN_SECONDS", "1".to_owned()),
        ("RESELLER__RETRY__MAX_DELAY_IN_SECONDS", "2".to_owned()),
        // What is sent again by itself would come while the verdict is read.
        ("RESELLER__REPLAY__AFTER_OUTAGE", "false".to_owned()),
        ("RESELLER__SECRETS__KEY", sealing_key.to_owned()),
        ("RESELLER__EGRESS__ALLOW_NETWORKS", "127.0.0.0/8".to_owned()),
        ("RESELLER__EGRESS__ALLOW_HTTP", "true".to_owned()),
        // The same bytes in the alphabet of URLs.
        ("WEBPUSH__KEYS", sealing_key.replace('+', "-").replace('/', "_")),
        ("WEBPUSH__ENDPOINT__REQUEST_TIMEOUT_MILLIS", "4000".to_owned()),
        // What is silent is noticed within the time that it is.
        ("WEBPUSH__ENDPOINT__NODE_TIMEOUT_MILLIS", "1500".to_owned()),
        ("WEBPUSH__CONNECTION__PING_INTERVAL_MILLIS", "1000".to_owned()),
        ("WEBPUSH__CONNECTION__PONG_TIMEOUT_MILLIS", "3000".to_owned()),
        ("WEBPUSH__CONNECTION__DRAIN_MILLIS", "500".to_owned()),
        ("SHUTDOWN__GRACE_PERIOD_MILLIS", "30000".to_owned()),
        ("TELEMETRY__LOG_FORMAT", "json".to_owned()),
        (
            "TELEMETRY__LOG_FILTER",
            "info,lapin=off,engine::push::starts=trace".to_owned(),
        ),
    ];
    settings
        .into_iter()
        .map(|(name, value)| (format!("POSTRIDER__{name}"), value))
        .collect()
}
