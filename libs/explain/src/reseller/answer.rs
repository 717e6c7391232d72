//! What a reseller can do about an answer of its endpoint, as the mails about refusals say it. Pure.

use super::Sentence;

/// The sentence with what the endpoint answers of late, and what to do about it.
pub fn answered(mut said: Sentence, status: u16) -> Sentence {
    let text = format!(" It answers {status} of late: {}", advice(status));
    said.text.push_str(&text);
    said.with("answer", status)
}

fn advice(status: u16) -> &'static str {
    match status {
        401 | 403 => {
            "did you rotate the signing secret? Check that it verifies with a secret that is valid now, that its clock is right, and that no \
             gateway before it asks for a login."
        }
        404 | 405 => {
            "check that the path of the endpoint is still the one that you have entered, and that it accepts POST."
        }
        413 => "check how large a body the endpoint and the gateways before it accept.",
        400 | 415 | 422 => {
            "check that it accepts the JSON of every event type that the filter selects, fields that it does not know included."
        }
        429 => "set the requests per second of the subscription to what it takes.",
        500..600 => "look into its log, and into those of the gateways before it, why it fails.",
        _ => "look into its log, and into those of the gateways before it, why it refuses the request.",
    }
}
