//! The three headers of a signed message, independent of any HTTP library.

/// Names the message; the same for every attempt.
pub const HEADER_ID: &str = "webhook-id";
/// When the attempt was made, in seconds since 1970.
pub const HEADER_TIMESTAMP: &str = "webhook-timestamp";
/// The signatures, with a blank between them.
pub const HEADER_SIGNATURE: &str = "webhook-signature";

/// What the headers of a message say; `None` for one that is missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SignedHeaders<'a> {
    /// Of [`HEADER_ID`].
    pub id: Option<&'a str>,
    /// Of [`HEADER_TIMESTAMP`].
    pub timestamp: Option<&'a str>,
    /// Of [`HEADER_SIGNATURE`].
    pub signature: Option<&'a str>,
}

impl<'a> SignedHeaders<'a> {
    /// Asks `header` for each of them by its name in lower case.
    ///
    /// ```
    /// let headers = std::collections::HashMap::from([("webhook-id", "msg_1"), ("webhook-timestamp", "1614265330")]);
    /// let read = signing::SignedHeaders::read(|name| headers.get(name).copied());
    /// assert_eq!((read.id, read.signature), (Some("msg_1"), None));
    /// ```
    pub fn read(mut header: impl FnMut(&'static str) -> Option<&'a str>) -> Self {
        Self {
            id: header(HEADER_ID),
            timestamp: header(HEADER_TIMESTAMP),
            signature: header(HEADER_SIGNATURE),
        }
    }
}
