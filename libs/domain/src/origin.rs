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

/// The same with the path, by which endpoints on one host are told apart; for those of the house, who may see it. Without the query.
pub fn endpoint(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let place = rest.split(['?', '#']).next().unwrap_or_default();
    let path = place.find('/').map_or("", |slash| &place[slash..]);
    format!("{}{path}", origin(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_told_from_others_on_its_host_without_its_query() {
        assert_eq!(
            endpoint("https://user:word@acme.example:8443/hooks/1?key=1"),
            "https://acme.example:8443/hooks/1"
        );
        assert_eq!(endpoint("https://acme.example?key=/1"), "https://acme.example");
        assert_eq!(endpoint("nothing"), "an endpoint");
    }

    #[test]
    fn of_an_endpoint_only_the_origin_is_shown() {
        assert_eq!(
            origin("https://user:word@acme.example:8443/hook?key=1"),
            "https://acme.example:8443"
        );
        assert_eq!(origin("https://acme.example"), "https://acme.example");
    }
}
