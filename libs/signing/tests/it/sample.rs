//! What the documentation for resellers shows of this crate.

// [answer]
use signing::{DEFAULT_TOLERANCE, Secret, SignedHeaders, receive};

/// What an endpoint answers: a status and a body. `header` looks a header up by its name, in lower case.
fn answer<'a>(
    secrets: &[&Secret],
    header: impl Fn(&str) -> Option<&'a str>,
    body: &[u8],
    now: i64,
) -> (u16, String) {
    let headers = SignedHeaders::read(header);
    let notification = match receive(secrets, headers, body, now, DEFAULT_TOLERANCE) {
        Ok(notification) => notification,
        Err(error) if error.code() == "bad_body" => return (400, error.to_string()),
        Err(error) => return (401, error.to_string()),
    };
    if notification.event_type == "postrider.verification" {
        let challenge = notification.data.get("challenge").and_then(|text| text.as_str());
        return (200, challenge.unwrap_or_default().to_owned());
    }
    // Store it under notification.id, and work on it later.
    (200, String::new())
}
// [/answer]

// [sign]
use signing::sign;

const NOW: i64 = 1_753_000_000;

/// The answer to a body that is signed with the endpoint's secret.
fn answer_to(body: &str) -> (u16, String) {
    let secret = Secret::generate();
    let signature = sign(&secret, "evt_1", NOW, body.as_bytes());
    let header = |name: &str| match name {
        "webhook-id" => Some("evt_1"),
        "webhook-timestamp" => Some("1753000000"),
        "webhook-signature" => Some(signature.as_str()),
        _ => None,
    };
    answer(&[&secret], header, body.as_bytes(), NOW)
}
// [/sign]

fn body(event_type: &str, data: &str) -> String {
    format!(r#"{{"id":"evt_1","type":"{event_type}","timestamp":"2025-07-20T08:26:40.000Z","data":{data}}}"#)
}

#[test]
fn the_sample_answers_what_an_endpoint_should() {
    assert_eq!(answer_to(&body("domain.created", "{}")), (200, String::new()));
    let challenge = body("postrider.verification", r#"{"challenge":"1ef5"}"#);
    assert_eq!(answer_to(&challenge), (200, "1ef5".to_owned()));
    assert_eq!(answer_to("{}").0, 400);
    let secret = Secret::generate();
    assert_eq!(answer(&[&secret], |_| None, b"{}", NOW).0, 401);
}
