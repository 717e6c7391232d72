//! Checks the configured URL once, so that no send can fail because of it. Its errors never show the URL, which may
//! hold credentials.

use std::str::FromStr;

use reqwest::Url;

/// Why the client could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SwrveError {
    /// `swrve.url` cannot be parsed.
    #[error("swrve.url is not a URL")]
    UrlSyntax(#[source] <Url as FromStr>::Err),
    /// `swrve.url` has another scheme than http and https.
    #[error("swrve.url must begin with http:// or https://, not with {scheme}:")]
    UrlScheme {
        /// The scheme it has.
        scheme: String,
    },
    /// `swrve.url` is not a mere base: the path of the API could not be appended.
    #[error("swrve.url must end with its path: it has a query or a fragment")]
    UrlSuffix,
    /// A timeout of nothing would make every send fail.
    #[error("the timeout of a send is zero")]
    ZeroTimeout,
    /// The HTTP client could not be set up, for example because the system's certificates are unreadable.
    #[error("the HTTP client could not be set up")]
    Client(#[source] reqwest::Error),
}

/// `{base}/push`, with the base's path kept and a trailing slash tolerated.
pub(crate) fn push_endpoint(base: &str) -> Result<Url, SwrveError> {
    let mut url: Url = base.parse().map_err(SwrveError::UrlSyntax)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(SwrveError::UrlScheme {
            scheme: url.scheme().to_owned(),
        });
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(SwrveError::UrlSuffix);
    }
    url.path_segments_mut()
        .expect("invariant: http and https URLs have a path")
        .pop_if_empty()
        .push("push");
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn push_is_appended_to_whatever_path_the_base_has() {
        for (base, endpoint) in [
            ("http://swrve.test", "http://swrve.test/push"),
            ("http://swrve.test/", "http://swrve.test/push"),
            (
                "https://swrve.test:8443/api/1",
                "https://swrve.test:8443/api/1/push",
            ),
            ("https://swrve.test/api/1/", "https://swrve.test/api/1/push"),
        ] {
            assert_eq!(push_endpoint(base).unwrap().as_str(), endpoint);
        }
    }

    #[test]
    fn a_base_that_is_no_http_url_is_named_without_being_shown() {
        let secret = "hunter2";
        for (base, wanted) in [
            ("swrve.test/api", "swrve.url is not a URL"),
            ("", "swrve.url is not a URL"),
            ("http://", "swrve.url is not a URL"),
            (
                "ftp://user:hunter2@swrve.test",
                "swrve.url must begin with http:// or https://, not with ftp:",
            ),
            (
                "http://user:hunter2@swrve.test/?a=b",
                "swrve.url must end with its path: it has a query or a fragment",
            ),
            (
                "http://user:hunter2@swrve.test/#a",
                "swrve.url must end with its path: it has a query or a fragment",
            ),
        ] {
            let error = push_endpoint(base).unwrap_err();
            assert_eq!(error.to_string(), wanted, "{base}");
            assert!(!format!("{error:?}").contains(secret));
        }
    }
}
