//! Turns an error of the HTTP client into text for the attempt's row: the whole chain of causes, without the URL.

use std::error::Error;

use crate::sanitise::sanitise;

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
