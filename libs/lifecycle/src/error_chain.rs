//! An error as one line of a log. Logs take this and never `Debug`, which shows what a server quotes of a row.

use std::error::Error;
use std::iter::successors;

/// An error with everything that led to it, on one line unless a part of it has more.
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let parts: Vec<String> = successors(Some(error), |&error| error.source())
        .map(ToString::to_string)
        .collect();
    parts.join(": ")
}
