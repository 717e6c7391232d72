//! One attempt to sign in: what is sent to the provider, and what its answer has to fit.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use url::{Url, form_urlencoded};

use crate::discovery::Discovery;
use crate::provider::Client;

/// The secrets of one attempt, each of 256 random bits. They are kept by the browser that made it, and by nothing else.
#[derive(Clone, PartialEq, Eq)]
pub struct Attempt {
    state: String,
    pub(crate) nonce: String,
    pub(crate) verifier: String,
    /// Within how many seconds the person has to have shown who it is.
    pub max_age: Option<u32>,
    /// Where it leads; the caller's own.
    pub next: String,
}

/// Why an answer is not one to this attempt.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttemptError {
    /// It was begun by another browser, is of another provider, or was made up.
    #[error("the answer does not belong to a sign-in that this browser has begun")]
    Foreign,
    /// The provider did not let the person in.
    #[error("the provider refused to sign in: {0}")]
    Refused(String),
    /// There is nothing in it.
    #[error("the answer of the provider has no code")]
    NoCode,
}

impl Attempt {
    /// A new one.
    pub fn new(max_age: Option<u32>, next: impl Into<String>) -> Self {
        let random = || URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
        Self {
            state: random(),
            nonce: random(),
            verifier: random(),
            max_age,
            next: next.into(),
        }
    }

    /// As the value of a cookie.
    pub fn written(&self) -> String {
        let max_age = self
            .max_age
            .map_or_else(String::new, |seconds| seconds.to_string());
        let next = URL_SAFE_NO_PAD.encode(&self.next);
        format!("{}.{}.{}.{max_age}.{next}", self.state, self.nonce, self.verifier)
    }

    /// Of what [`Self::written`] made; none of anything else.
    pub fn read(written: &str) -> Option<Self> {
        let mut parts = written.split('.');
        let secret = |part: &str| {
            let decoded = URL_SAFE_NO_PAD.decode(part).ok()?;
            (decoded.len() == 32).then(|| part.to_owned())
        };
        let (state, nonce, verifier) = (
            secret(parts.next()?)?,
            secret(parts.next()?)?,
            secret(parts.next()?)?,
        );
        let max_age = match parts.next()? {
            "" => None,
            seconds => Some(seconds.parse().ok()?),
        };
        let next = String::from_utf8(URL_SAFE_NO_PAD.decode(parts.next()?).ok()?).ok()?;
        parts.next().is_none().then_some(Self {
            state,
            nonce,
            verifier,
            max_age,
            next,
        })
    }

    /// Where the browser is sent to.
    pub(crate) fn address(&self, discovery: &Discovery, client: &Client) -> Url {
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, self.verifier.as_bytes()));
        let mut address = discovery.authorization_endpoint.clone();
        let mut query = address.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("scope", "openid profile email")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", &client.redirect_uri)
            .append_pair("state", &self.state)
            .append_pair("nonce", &self.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        if let Some(seconds) = self.max_age {
            query.append_pair("max_age", &seconds.to_string());
        }
        drop(query);
        address
    }

    /// The code in the query of the provider's answer.
    pub(crate) fn code(&self, query: &str, discovery: &Discovery) -> Result<String, AttemptError> {
        let only = |name: &str| {
            let mut found = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
            let first = found.next().map(|(_, value)| value.into_owned());
            first.filter(|_| found.next().is_none())
        };
        let is_ours = only("state").is_some_and(|state| same(state.as_bytes(), self.state.as_bytes()));
        // An answer that another provider was made to give would bring that one's code here.
        let issuer = only("iss");
        let is_of_issuer = match &issuer {
            Some(issuer) => *issuer == discovery.issuer,
            None => !discovery.names_issuer,
        };
        if !is_ours || !is_of_issuer {
            return Err(AttemptError::Foreign);
        }
        if let Some(error) = only("error") {
            return Err(AttemptError::Refused(shown(&error)));
        }
        only("code")
            .filter(|code| !code.is_empty())
            .ok_or(AttemptError::NoCode)
    }

    /// The form that the code is exchanged with, but for the client's secret.
    pub(crate) fn form<'a>(&'a self, code: &'a str, client: &'a Client) -> Vec<(&'static str, &'a str)> {
        vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &client.redirect_uri),
            ("client_id", &client.id),
            ("code_verifier", &self.verifier),
        ]
    }
}

/// Compares in a time that does not depend on where the texts differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// An error of the provider as a person may read it: its code is a word.
pub(crate) fn shown(error: &str) -> String {
    let kept = error.chars().filter(|character| !character.is_control());
    kept.take(100).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn discovery(names_issuer: bool) -> Discovery {
        let url = |text: &str| Url::parse(text).unwrap();
        Discovery {
            issuer: "https://id.example".to_owned(),
            authorization_endpoint: url("https://id.example/authorize?tenant=house"),
            token_endpoint: url("https://id.example/token"),
            jwks_uri: url("https://id.example/jwks"),
            secret_in_body: false,
            names_issuer,
        }
    }

    fn client() -> Client {
        Client {
            id: "postrider".to_owned(),
            secret: None,
            redirect_uri: "https://console.example/console/sign-in/return".to_owned(),
        }
    }

    #[test]
    fn an_attempt_is_kept_in_a_cookie_and_read_again() {
        for max_age in [None, Some(300)] {
            let attempt = Attempt::new(max_age, "/console/jobs?a=b.c");
            let written = attempt.written();
            assert!(
                written
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            );
            assert!(Attempt::read(&written) == Some(attempt));
        }
        let written = Attempt::new(None, "/").written();
        for other in [
            "",
            "a.b.c..",
            &written[1..],
            &format!("{written}.a"),
            &format!("{written}!"),
        ] {
            assert!(Attempt::read(other).is_none(), "{other}");
        }
    }

    #[test]
    fn the_challenge_is_the_digest_of_the_verifier() {
        // The example of RFC 7636, appendix B.
        let attempt = Attempt {
            verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned(),
            ..Attempt::new(Some(300), "/")
        };
        let address = attempt.address(&discovery(false), &client());
        let query: BTreeMap<_, _> = address.query_pairs().into_owned().collect();
        assert_eq!(
            query["code_challenge"],
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
        for (name, value) in [
            ("tenant", "house"),
            ("code_challenge_method", "S256"),
            ("response_type", "code"),
            ("client_id", "postrider"),
            ("redirect_uri", "https://console.example/console/sign-in/return"),
            ("max_age", "300"),
        ] {
            assert_eq!(query[name], value);
        }
        assert_eq!(
            (&query["state"], &query["nonce"]),
            (&attempt.state, &attempt.nonce)
        );
        assert!(!address.as_str().contains(&attempt.verifier));
    }

    #[test]
    fn only_an_answer_to_this_attempt_has_a_code() {
        let attempt = Attempt::new(None, "/");
        let state = &attempt.state;
        let code = |query: String| attempt.code(&query, &discovery(false));
        assert_eq!(code(format!("code=abc&state={state}")), Ok("abc".to_owned()));
        assert_eq!(
            code(format!("code=abc&state={state}&iss=https%3A%2F%2Fid.example")),
            Ok("abc".to_owned())
        );
        for foreign in [
            "code=abc".to_owned(),
            "code=abc&state=other".to_owned(),
            format!("code=abc&state={state}&state={state}"),
            format!("code=abc&state={state}&iss=https://evil.example"),
            format!("error=access_denied&state=x{state}"),
        ] {
            assert_eq!(code(foreign.clone()), Err(AttemptError::Foreign), "{foreign}");
        }
        let refused = code(format!("error=access_denied&state={state}"));
        assert_eq!(refused, Err(AttemptError::Refused("access_denied".to_owned())));
        for none in [
            format!("state={state}"),
            format!("code=&state={state}"),
            format!("code=a&code=b&state={state}"),
        ] {
            assert_eq!(code(none), Err(AttemptError::NoCode));
        }
    }

    #[test]
    fn a_provider_that_names_itself_in_answers_has_to() {
        let attempt = Attempt::new(None, "/");
        let query = format!("code=abc&state={}", attempt.state);
        assert_eq!(attempt.code(&query, &discovery(true)), Err(AttemptError::Foreign));
    }
}
