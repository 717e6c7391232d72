//! One request from its arrival to its end, which is recorded however it ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::HeaderMap;
use hyper::http::request::Parts;

use crate::received::Outcome;
use crate::receiver::recorder::{End, Head};
use crate::receiver::server::Shared;

/// Records an abandoned request when it is dropped without an end.
#[derive(Debug)]
pub(crate) struct Arrival {
    shared: Arc<Shared>,
    pub(crate) number: u64,
    end: End,
}

impl Arrival {
    /// Stamps the arrival.
    pub(crate) fn now(shared: Arc<Shared>, parts: &Parts) -> Self {
        let head = Head {
            received_at: shared.now(),
            method: parts.method.to_string(),
            path: parts
                .uri
                .path_and_query()
                .map_or_else(String::new, ToString::to_string),
            headers: readable(&parts.headers),
        };
        let number = shared.recorder().arrive(head);
        let end = End {
            outcome: Outcome::Abandoned,
            status: None,
            challenge: false,
        };
        Self { shared, number, end }
    }

    pub(crate) fn answered(mut self, status: u16, challenge: bool) {
        self.end = End {
            outcome: Outcome::Answered,
            status: Some(status),
            challenge,
        };
    }

    pub(crate) fn dropped(mut self) {
        self.end.outcome = Outcome::Dropped;
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.shared.end(self.number, self.end);
    }
}

fn readable(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut read = BTreeMap::<String, String>::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        match read.get_mut(name.as_str()) {
            None => drop(read.insert(name.as_str().to_owned(), value.into_owned())),
            Some(values) => {
                values.push_str(", ");
                values.push_str(&value);
            }
        }
    }
    read
}
