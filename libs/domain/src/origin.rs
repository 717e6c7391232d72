//! What of an endpoint's URL is shown to those who are not its owner.

/// Scheme, host and port of a URL: its path and query often hold a token.
pub fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return "an endpoint".to_owned();
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_endpoint_only_the_origin_is_shown() {
        assert_eq!(
            origin("https://user:word@acme.example:8443/hook?key=1"),
            "https://acme.example:8443"
        );
        assert_eq!(origin("https://acme.example"), "https://acme.example");
    }
}
