//! What Swrve and endpoints answer: the status alone decides, and whatever the rest says, what is kept of it can be
//! stored, is not long, and is told in fingerprints that are known.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use domain::dead_letter::FailureClass;
use domain::notification::{ClientErrors, DeliveryOutcome, RetryAfter};
use domain::push::{SendOutcome, StatusClass, classify};
use engine::webhook::Answer;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Response};
use serde_json::Value;

use crate::given::can_be_stored;

/// A century, which is what longer delays are taken for.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Checks the property.
pub fn check(input: &[u8]) {
    let _ = answered(&mut Unstructured::new(input));
}

fn answered(input: &mut Unstructured<'_>) -> Result<()> {
    let status = input.int_in_range(200..=999u16)?;
    let kept = input.int_in_range(0..=64usize)?;
    let length = input.int_in_range(0..=40usize)?.min(input.len());
    let retry_after = HeaderValue::from_bytes(input.bytes(length)?).ok();
    let body = input.peek_bytes(input.len()).unwrap_or_default();
    let answer = || {
        let mut answer = Response::new(body.to_vec());
        *answer.status_mut() = status.try_into().expect("a status");
        if let Some(value) = &retry_after {
            answer.headers_mut().insert(RETRY_AFTER, value.clone());
        }
        answer
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let runtime = runtime.expect("a runtime");
    of_swrve(
        status,
        body,
        runtime.block_on(http_client::fuzzing::swrve_answer(answer())),
    );
    let outcome = runtime.block_on(http_client::fuzzing::webhook_answer(answer(), kept));
    of_endpoint(status, kept, retry_after.as_ref(), &outcome);
    let whole = runtime.block_on(http_client::fuzzing::webhook_answer(answer(), 4_096));
    challenged(status, whole);
    Ok(())
}

fn of_swrve(status: u16, body: &[u8], outcome: SendOutcome) {
    match &outcome {
        SendOutcome::Delivered => assert_eq!(classify(status), StatusClass::Success),
        SendOutcome::Refused {
            status: told,
            code,
            message,
        } => {
            assert!(*told == status && classify(status) != StatusClass::Success);
            assert!(
                !message.trim().is_empty() && message.chars().count() <= 1_000,
                "{message:?}"
            );
            assert!(!message.contains(char::is_control));
            let said: Option<Value> = serde_json::from_slice(body).ok();
            assert!(code.is_none() || said.is_none_or(|said| said["code"].as_i64() == *code));
        }
        other => panic!("an answer is no {other:?}"),
    }
    is_known(outcome.classification().fingerprint.as_deref());
}

fn of_endpoint(status: u16, kept: usize, header: Option<&HeaderValue>, outcome: &DeliveryOutcome) {
    let DeliveryOutcome::Answered {
        status: told,
        retry_after,
        body,
    } = outcome
    else {
        panic!("an answer is no failure: {outcome:?}");
    };
    assert_eq!(*told, status);
    assert!(body.len() <= kept && !body.contains('\0'), "{body:?}");
    let text = header
        .and_then(|value| value.to_str().ok())
        .map(str::trim)
        .unwrap_or_default();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match retry_after {
        Some(RetryAfter::Delay(delay)) => assert!(digits && *delay <= LONGEST),
        Some(RetryAfter::At(at)) => assert!(!digits && can_be_stored(*at), "{at}"),
        None => assert!(!digits, "{text}"),
    }
    for client_errors in [ClientErrors::Final, ClientErrors::Usual, ClientErrors::Retried] {
        let classification = outcome.clone().classification(client_errors);
        assert_eq!(classification.fingerprint.is_none(), (200..300).contains(&status));
        is_known(classification.fingerprint.as_deref());
    }
}

fn is_known(fingerprint: Option<&str>) {
    let Some(fingerprint) = fingerprint else { return };
    assert_ne!(
        FailureClass::of(fingerprint),
        FailureClass::Unknown,
        "{fingerprint}"
    );
    assert!(fingerprint.len() <= 300 && fingerprint.bytes().all(|byte| byte.is_ascii_graphic()));
}

/// Right is a success with the text alone, or as a JSON text, or as a member of a JSON object.
fn challenged(status: u16, outcome: DeliveryOutcome) {
    let DeliveryOutcome::Answered { body, .. } = &outcome else {
        return;
    };
    let text = "0123abcd";
    let told = body.clone();
    let right = engine::webhook::fuzzing::classified(outcome, text) == Answer::Right;
    assert!(
        !right || (200..300).contains(&status) && told.contains("0"),
        "{told}"
    );
    let alone = told.trim() == text || told.trim() == format!("\"{text}\"");
    assert!(right || !alone || !(200..300).contains(&status), "{told}");
}
