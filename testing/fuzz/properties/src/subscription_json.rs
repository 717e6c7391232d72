//! Bodies of the resellers' API: subscriptions, changes, quota requests, replays. What is accepted can be dialled, mailed
//! to, stored and asked for.

use std::time::Duration;

use chrono::TimeDelta;
use domain::email::EmailKind;
use domain::subscription::{Bounds, EventFilter};
use http_client::{EgressPolicy, Endpoint, check_endpoint};
use mail::StoredMail;
use serde_json::json;
use uuid::Uuid;

use crate::given::{is_explained, now};

const MAX_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Checks the property.
pub fn check(body: &[u8]) {
    let catalogue = ["domain.created", "domain.transfer.completed"].map(str::to_owned);
    let bounds = Bounds {
        catalogue: &catalogue,
        max_timeout: MAX_TIMEOUT,
    };
    let egress = EgressPolicy::default();
    match reseller_portal::fuzzing::subscription(body, bounds, &egress) {
        Ok(request) => {
            is_deliverable(Some(&request.url), Some(&request.email));
            is_kept(
                Some(&request.event_types),
                Some(&request.description),
                request.timeout_millis,
            );
        }
        Err(problem) => is_explained(&problem),
    }
    match reseller_portal::fuzzing::changes(body, bounds, &egress) {
        Ok(change) => {
            is_deliverable(change.url.as_deref(), change.email.as_deref());
            is_kept(
                change.event_types.as_deref(),
                change.description.as_deref(),
                change.timeout_millis.flatten(),
            );
        }
        Err(problem) => is_explained(&problem),
    }
    match reseller_portal::fuzzing::quota_request(body) {
        Ok((limits, reason)) => {
            assert!(limits.iter().any(Option::is_some), "{limits:?}");
            assert!(
                limits
                    .iter()
                    .flatten()
                    .all(|limit| (1..=1_000_000_000).contains(limit)),
                "{limits:?}"
            );
            assert!(!reason.trim().is_empty() && reason.len() <= 2_000);
        }
        Err(problem) => is_explained(&problem),
    }
    match reseller_portal::fuzzing::replay(body, MAX_AGE, now()) {
        Ok((since, until)) => {
            let earliest = now() - TimeDelta::from_std(MAX_AGE).expect("a week");
            assert!(
                earliest <= since && since < until && until <= now(),
                "{since} {until}"
            );
        }
        Err(problem) => is_explained(&problem),
    }
}

fn is_deliverable(url: Option<&str>, email: Option<&str>) {
    if let Some(url) = url {
        let endpoint = check_endpoint(url, &EgressPolicy::default()).expect("what is stored may be dialled");
        assert_eq!(endpoint.as_str(), url);
        assert_eq!(Endpoint::parse(url).expect("and is read again").as_str(), url);
    }
    let Some(email) = email else { return };
    assert!(email.len() <= 254 && email.is_ascii());
    let letter = StoredMail {
        id: Uuid::from_u128(1),
        kind: EmailKind::VerificationFailed,
        subscription_id: Uuid::from_u128(2),
        recipient: email.to_owned(),
        data: json!({"url": "https://a.example", "resellerId": "acme", "error": "why", "attempts": 1}),
        occurrences: 1,
        created_at: now(),
    };
    let composed = mail::fuzzing::composed(&letter, "Postrider <postrider@example.com>");
    let content = composed.unwrap_or_else(|error| panic!("{email} cannot be written to: {error:?}"));
    let text = String::from_utf8_lossy(&content);
    let to: Vec<_> = text.lines().filter(|line| line.starts_with("To: ")).collect();
    assert_eq!(to, [format!("To: {email}")]);
}

fn is_kept(event_types: Option<&[EventFilter]>, description: Option<&str>, timeout: Option<u32>) {
    if let Some(event_types) = event_types {
        assert!((1..=200).contains(&event_types.len()));
        for (place, filter) in event_types.iter().enumerate() {
            assert!(!event_types[..place].contains(filter), "each once");
        }
    }
    assert!(description.is_none_or(|text| text.len() <= 500 && !text.contains('\0')));
    assert!(timeout.is_none_or(|millis| (1..=30_000).contains(&millis)));
}
