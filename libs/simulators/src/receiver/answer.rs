//! What is answered: by a rule, to a challenge, to a forged request, to a question.

use std::time::Duration;

use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use crate::receiver::body::AnswerBody;
use crate::receiver::script::Rule;

pub(crate) type Answer = Response<AnswerBody>;

/// A status and nothing else.
pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(AnswerBody::Whole(None));
    *answer.status_mut() = status;
    answer
}

/// A value as JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let Ok(text) = serde_json::to_vec(value) else {
        return empty(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let mut answer = empty(status);
    *answer.body_mut() = AnswerBody::whole(text);
    let json = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(CONTENT_TYPE, json);
    answer
}

/// What is wrong with a request.
pub(crate) fn refusal(status: StatusCode, error: &str) -> Answer {
    json(status, &serde_json::json!({ "error": error }))
}

/// What a rule says that is no waiting, hanging or closing.
pub(crate) fn of_rule(rule: Rule) -> Answer {
    let status = rule.status.and_then(|status| StatusCode::from_u16(status).ok());
    let mut answer = empty(status.unwrap_or(StatusCode::OK));
    for (name, value) in rule.headers {
        // Rules are checked when they are taken, so that both are fit to be sent.
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            answer.headers_mut().insert(name, value);
        }
    }
    *answer.body_mut() = match (rule.body, rule.byte_millis) {
        (Some(body), _) => AnswerBody::whole(body),
        (None, Some(millis)) => AnswerBody::trickle(rule.body_bytes, Duration::from_millis(millis)),
        (None, None) if rule.endless || rule.body_bytes.is_some() => AnswerBody::Filler(rule.body_bytes),
        (None, None) => AnswerBody::Whole(None),
    };
    answer
}
