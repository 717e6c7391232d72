//! Turns an error of the HTTP client into text for the attempt's row, without the URL: what the other end did in words, what is our own as the whole
//! chain of causes.

use std::error::Error;

use crate::connection::{failure, find};
use crate::sanitise::sanitise;

/// Why there was no answer.
pub(super) fn unanswered(error: reqwest::Error) -> String {
    let error = error.without_url();
    let words = match find::<rustls::Error>(&error) {
        Some(tls) => format!("the TLS handshake failed: {tls}"),
        None => failure(&error).1,
    };
    sanitise(&words)
}

/// `error` and its causes, outermost first.
pub(super) fn of(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    sanitise(&text)
}
