//! What a reseller can do about an answer of its endpoint, as the mails about refusals say it, and about an endpoint that does not answer. Pure.

use super::Sentence;

/// The sentence with what the endpoint answers of late, and what to do about it.
pub fn answered(mut said: Sentence, status: u16) -> Sentence {
    let text = format!(" It answers {status} of late: {}", advice(status));
    said.text.push_str(&text);
    said.with("answer", status)
}

/// The sentence with why no answer came of late, by what the newest failed attempt is recorded as, and what to do about it; as it is where that
/// was on our side.
pub fn unanswered(mut said: Sentence, error_type: &str) -> Sentence {
    let text = match error_type {
        "TIMEOUT" => {
            "It does not answer in time of late: have it answer as soon as it has stored the notification, or give it longer with the timeout \
             of the subscription."
        }
        "DNS" => "Its name has no public address of late: check the records of the name.",
        "TLS" => {
            "No secure connection to it comes about of late: check its certificate, until when that is valid and for which names."
        }
        "CONNECT" => {
            "No connection to it comes about of late: check that it runs, and that no firewall refuses us."
        }
        "PROTOCOL" => "What it answers of late is no HTTP: check what listens on its port.",
        "EGRESS" => "The address of its name is not a public one of late: check the records of the name.",
        _ => return said,
    };
    said.text.push(' ');
    said.text.push_str(text);
    said.with("errorType", error_type)
}

/// That what was tried of late failed on our side, which is for the operators.
pub fn failing_on_our_side() -> Sentence {
    Sentence::new(
        "failing-on-our-side",
        "Active, but the attempts of late fail on our side: there is nothing for you to mend, it is for the operators of the platform. What failed \
         is tried again by itself until its retries are used up.",
    )
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
