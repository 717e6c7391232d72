//! The discovery document: where the provider's endpoints are.

use serde::Deserialize;
use url::{Host, Url};

use crate::error::DocumentError;

/// Where the endpoints of a provider are, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovery {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: Url,
    pub(crate) token_endpoint: Url,
    pub(crate) jwks_uri: Url,
    /// Whether the secret goes into the body of a request, because the provider reads no header.
    pub(crate) secret_in_body: bool,
    /// Whether answers name their issuer, which then has to be there.
    pub(crate) names_issuer: bool,
}

#[derive(Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    response_types_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

impl Discovery {
    /// Reads the document of this issuer.
    pub fn read(document: &[u8], issuer: &str) -> Result<Self, DocumentError> {
        let read: Document = serde_json::from_slice(document)
            .map_err(|error| DocumentError::Unreadable("discovery document", error))?;
        if read.issuer != issuer {
            return Err(DocumentError::OtherIssuer {
                expected: issuer.to_owned(),
                found: read.issuer,
            });
        }
        let on_loopback = url_of(issuer).is_some_and(|url| is_loopback(&url));
        let endpoint = |name, text: String| {
            let url = url_of(&text).filter(|url| is_safe(url, on_loopback));
            url.ok_or(DocumentError::Endpoint { name, found: text })
        };
        let lacks = |offered: &Option<Vec<String>>, needed: &str| {
            offered
                .as_ref()
                .is_some_and(|offered| !offered.iter().any(|one| one == needed))
        };
        if lacks(&read.response_types_supported, "code") {
            return Err(DocumentError::Lacks("the authorization code flow"));
        }
        if lacks(&read.code_challenge_methods_supported, "S256") {
            return Err(DocumentError::Lacks("PKCE with S256"));
        }
        let methods = &read.token_endpoint_auth_methods_supported;
        Ok(Self {
            authorization_endpoint: endpoint("authorization_endpoint", read.authorization_endpoint)?,
            token_endpoint: endpoint("token_endpoint", read.token_endpoint)?,
            jwks_uri: endpoint("jwks_uri", read.jwks_uri)?,
            // What is not said means that the header is read.
            secret_in_body: lacks(methods, "client_secret_basic") && !lacks(methods, "client_secret_post"),
            names_issuer: read.authorization_response_iss_parameter_supported,
            issuer: read.issuer,
        })
    }

    /// Where the document of an issuer is.
    pub(crate) fn address(issuer: &str) -> Option<Url> {
        url_of(&format!(
            "{}/.well-known/openid-configuration",
            issuer.trim_end_matches('/')
        ))
    }
}

/// Whether an issuer may be asked: over https, or over http on this machine, for development and tests.
pub fn is_acceptable_issuer(issuer: &str) -> bool {
    url_of(issuer).is_some_and(|url| is_safe(&url, true) && url.query().is_none())
}

fn url_of(text: &str) -> Option<Url> {
    Url::parse(text).ok()
}

fn is_safe(url: &Url, on_loopback: bool) -> bool {
    let secure = url.scheme() == "https" || (url.scheme() == "http" && on_loopback && is_loopback(url));
    secure
        && url.has_host()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ISSUER: &str = "https://id.example/house";

    fn document() -> Value {
        json!({
            "issuer": ISSUER,
            "authorization_endpoint": "https://id.example/authorize?tenant=house",
            "token_endpoint": "https://api.id.example/token",
            "jwks_uri": "https://keys.example/jwks",
        })
    }

    fn read(change: impl FnOnce(&mut Value)) -> Result<Discovery, DocumentError> {
        let mut document = document();
        change(&mut document);
        Discovery::read(document.to_string().as_bytes(), ISSUER)
    }

    #[test]
    fn endpoints_are_of_the_document_and_may_be_on_other_hosts() {
        let discovery = read(|_| ()).unwrap();
        assert_eq!(discovery.token_endpoint.as_str(), "https://api.id.example/token");
        assert!(!discovery.secret_in_body && !discovery.names_issuer);
    }

    #[test]
    fn the_secret_goes_where_the_provider_reads_it() {
        let with = |methods: Value| {
            read(|document| document["token_endpoint_auth_methods_supported"] = methods)
                .unwrap()
                .secret_in_body
        };
        assert!(with(json!(["client_secret_post"])));
        assert!(!with(json!(["client_secret_post", "client_secret_basic"])));
        assert!(!with(json!(["private_key_jwt"])));
    }

    #[test]
    fn another_issuer_is_refused_even_by_one_slash() {
        for other in [
            "https://id.example/house/",
            "https://id.example/House",
            "https://evil.example",
        ] {
            let error = read(|document| document["issuer"] = other.into()).unwrap_err();
            assert!(matches!(error, DocumentError::OtherIssuer { .. }), "{other}");
        }
    }

    #[test]
    fn endpoints_without_https_are_refused() {
        for bad in [
            "http://id.example/token",
            "http://localhost/token",
            "ftp://id.example/",
            "https://user@id.example/token",
            "https://id.example/token#a",
            "javascript:alert(1)",
            "/token",
            "",
        ] {
            for name in ["authorization_endpoint", "token_endpoint", "jwks_uri"] {
                let error = read(|document| document[name] = bad.into()).unwrap_err();
                assert!(matches!(error, DocumentError::Endpoint { .. }), "{name}: {bad}");
            }
        }
    }

    #[test]
    fn an_issuer_on_this_machine_may_have_http_endpoints_on_it_alone() {
        let issuer = "http://127.0.0.1:9000";
        let with = |token: &str| {
            let document = json!({
                "issuer": issuer,
                "authorization_endpoint": "http://127.0.0.1:9000/authorize",
                "token_endpoint": token,
                "jwks_uri": "http://localhost:9000/jwks",
            });
            Discovery::read(document.to_string().as_bytes(), issuer)
        };
        assert!(with("http://[::1]:9000/token").is_ok());
        assert!(with("http://id.example/token").is_err());
    }

    #[test]
    fn what_is_needed_has_to_be_offered_where_offers_are_listed() {
        let without_code = read(|document| document["response_types_supported"] = json!(["id_token"]));
        assert!(matches!(without_code, Err(DocumentError::Lacks(_))));
        let without_s256 = read(|document| document["code_challenge_methods_supported"] = json!(["plain"]));
        assert!(matches!(without_s256, Err(DocumentError::Lacks(_))));
    }

    #[test]
    fn issuers_are_https_or_on_this_machine() {
        for good in [
            ISSUER,
            "https://id.example",
            "http://localhost:1",
            "http://[::1]:1/a",
        ] {
            assert!(is_acceptable_issuer(good), "{good}");
        }
        for bad in [
            "http://id.example",
            "https://id.example?a=b",
            "https://id.example#a",
            "id.example",
            "",
        ] {
            assert!(!is_acceptable_issuer(bad), "{bad}");
        }
    }
}
