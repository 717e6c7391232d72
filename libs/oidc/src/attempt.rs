//! One attempt to sign in: what is sent to the provider, and what its answer has to fit.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use ring::digest::{SHA256, digest};
use ring::hmac;
use url::{Url, form_urlencoded};

use crate::discovery::Discovery;
use crate::provider::Client;

/// How long an attempt may take: what a browser kept for longer is no attempt any more, whatever its cookie says of itself.
pub(crate) const ATTEMPT_LASTS: TimeDelta = TimeDelta::minutes(10);
/// How far the clocks of two of our own processes may lie apart: one may begin what another ends.
const CLOCKS_APART: TimeDelta = TimeDelta::seconds(60);

/// What seals the cookies of attempts, so that a browser can be given none that was not begun here.
pub struct Seal(hmac::Key);

impl Seal {
    /// One that all who know this secret share; it is used for nothing else, since it is made for this.
    pub fn of(secret: &[u8]) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let own = hmac::sign(&secret, b"postrider: the cookie of a sign-in");
        Self(hmac::Key::new(hmac::HMAC_SHA256, own.as_ref()))
    }

    /// A text with its seal.
    pub fn set(&self, text: &str) -> String {
        let seal = URL_SAFE_NO_PAD.encode(hmac::sign(&self.0, text.as_bytes()));
        format!("{text}.{seal}")
    }

    fn broken<'s>(&self, sealed: &'s str) -> Option<&'s str> {
        let (text, seal) = sealed.rsplit_once('.')?;
        let seal = URL_SAFE_NO_PAD.decode(seal).ok()?;
        hmac::verify(&self.0, text.as_bytes(), &seal).ok()?;
        Some(text)
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seal").finish_non_exhaustive()
    }
}

/// The secrets of one attempt, each of 256 random bits. They are kept by the browser that made it, and by nothing else.
#[derive(Clone, PartialEq, Eq)]
pub struct Attempt {
    state: String,
    pub(crate) nonce: String,
    pub(crate) verifier: String,
    /// When it was begun, in whole seconds.
    pub(crate) begun_at: DateTime<Utc>,
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
    pub fn new(max_age: Option<u32>, next: impl Into<String>, now: DateTime<Utc>) -> Self {
        let random = || URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>());
        Self {
            state: random(),
            nonce: random(),
            verifier: random(),
            begun_at: DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now),
            max_age,
            next: next.into(),
        }
    }

    /// As the value of a cookie.
    pub fn written(&self, seal: &Seal) -> String {
        let max_age = self
            .max_age
            .map_or_else(String::new, |seconds| seconds.to_string());
        let next = URL_SAFE_NO_PAD.encode(&self.next);
        let (state, nonce, verifier, begun) = (
            &self.state,
            &self.nonce,
            &self.verifier,
            self.begun_at.timestamp(),
        );
        seal.set(&format!("{state}.{nonce}.{verifier}.{begun}.{max_age}.{next}"))
    }

    /// Of what [`Self::written`] made with this seal within the last ten minutes; none of anything else.
    pub fn read(sealed: &str, seal: &Seal, now: DateTime<Utc>) -> Option<Self> {
        Self::of(seal.broken(sealed)?).filter(|attempt| {
            let age = now - attempt.begun_at;
            age <= ATTEMPT_LASTS && age >= -CLOCKS_APART
        })
    }

    fn of(written: &str) -> Option<Self> {
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
        let begun_at = DateTime::from_timestamp(parts.next()?.parse().ok()?, 0)?;
        let max_age = match parts.next()? {
            "" => None,
            seconds => Some(seconds.parse().ok()?),
        };
        let next = String::from_utf8(URL_SAFE_NO_PAD.decode(parts.next()?).ok()?).ok()?;
        parts.next().is_none().then_some(Self {
            state,
            nonce,
            verifier,
            begun_at,
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

    const NOW: DateTime<Utc> = DateTime::UNIX_EPOCH;

    #[test]
    fn an_attempt_is_kept_in_a_cookie_and_read_again() {
        let seal = Seal::of(b"one");
        for max_age in [None, Some(300)] {
            let attempt = Attempt::new(max_age, "/console/jobs?a=b.c", NOW);
            let written = attempt.written(&seal);
            assert!(
                written
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            );
            assert!(Attempt::read(&written, &seal, NOW) == Some(attempt));
        }
        let written = Attempt::new(None, "/", NOW).written(&seal);
        for other in [
            "",
            "a.b.c..",
            &written[1..],
            &format!("{written}.a"),
            &format!("{written}!"),
        ] {
            assert!(Attempt::read(other, &seal, NOW).is_none(), "{other}");
        }
    }

    #[test]
    fn an_attempt_that_was_changed_or_made_elsewhere_is_none() {
        let (ours, theirs) = (Seal::of(b"ours"), Seal::of(b"theirs"));
        let written = Attempt::new(None, "/console", NOW).written(&ours);
        assert!(Attempt::read(&written, &theirs, NOW).is_none());
        let (unsealed, _) = written.rsplit_once('.').unwrap();
        assert!(Attempt::read(unsealed, &ours, NOW).is_none());
        for at in 0..written.len() {
            let mut changed = written.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(Attempt::read(&changed, &ours, NOW).is_none(), "{changed}");
        }
    }

    #[test]
    fn an_attempt_is_over_after_ten_minutes_whatever_its_cookie_says() {
        let seal = Seal::of(b"one");
        let written = Attempt::new(None, "/console", NOW).written(&seal);
        let read = |after| Attempt::read(&written, &seal, NOW + after);
        assert!(read(ATTEMPT_LASTS).is_some());
        assert!(read(ATTEMPT_LASTS + TimeDelta::seconds(1)).is_none());
        assert!(read(-CLOCKS_APART).is_some());
        assert!(
            read(-CLOCKS_APART - TimeDelta::seconds(1)).is_none(),
            "it was begun in the future"
        );
    }

    #[test]
    fn the_challenge_is_the_digest_of_the_verifier() {
        // The example of RFC 7636, appendix B.
        let attempt = Attempt {
            verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned(),
            ..Attempt::new(Some(300), "/", NOW)
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
        let attempt = Attempt::new(None, "/", NOW);
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
        let attempt = Attempt::new(None, "/", NOW);
        let query = format!("code=abc&state={}", attempt.state);
        assert_eq!(attempt.code(&query, &discovery(true)), Err(AttemptError::Foreign));
    }
}
