//! A text that must not be printed.
//!
//! It deliberately does not protect the memory it lives in: the aim is that no log line, error or debug output shows it.

use std::fmt;

const HIDDEN: &str = "***";

/// A secret text. `Debug` and `Display` print `***`; [`Secret::expose`] is the only way to its content.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself, for the call that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// A URL's scheme, host and path, to tell two servers apart in a log. User, password and query are left out; when it is not
    /// certain where they end, all but the scheme is.
    pub fn masked_url(&self) -> String {
        let Some((scheme, rest)) = self.0.split_once("://") else {
            return HIDDEN.to_owned();
        };
        // A password may hold characters that should have been escaped, so the last `@` counts, and a `?` or `#` before it makes
        // the borders uncertain.
        let (credentials, location) = match rest.rsplit_once('@') {
            Some((credentials, _)) if credentials.contains(['?', '#']) => {
                return format!("{scheme}://{HIDDEN}");
            }
            Some((_, location)) => ("***@", location),
            None => ("", rest),
        };
        let location = location.split(['?', '#']).next().unwrap_or_default();
        format!("{scheme}://{credentials}{location}")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}
