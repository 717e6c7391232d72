//! The ID token: a statement of the provider about who signed in, and whether it is one to believe.
//!
//! The order matters: nothing that a token says is looked at before its signature is verified, but what it takes to verify it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::claims::Claims;
use crate::error::TokenError;
use crate::jwks::{Algorithm, Jwks};

/// How far the clocks of the provider and ours may lie apart.
pub(crate) const LEEWAY: TimeDelta = TimeDelta::seconds(60);
/// Longest token that is read.
const TOKEN_MAX_BYTES: usize = 64 * 1024;
/// Longest subject: the bound that the specification sets, in characters.
const SUBJECT_MAX_CHARS: usize = 255;

/// What a token has to say.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// Of this issuer.
    pub issuer: &'a str,
    /// For this client.
    pub client_id: &'a str,
    /// As the answer to the request with this nonce.
    pub nonce: &'a str,
    /// Of a person who showed who it is within this time, when that was asked for.
    pub max_age: Option<TimeDelta>,
    /// The present time.
    pub now: DateTime<Utc>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that have to be understood. None is.
    crit: Option<Value>,
}

/// Verifies an ID token in compact form.
pub fn verify(token: &str, keys: &Jwks, expected: &Expected<'_>) -> Result<Claims, TokenError> {
    if token.len() > TOKEN_MAX_BYTES {
        return Err(TokenError::Malformed("it is longer than 64 KiB"));
    }
    let (signed, signature) = token
        .rsplit_once('.')
        .ok_or(TokenError::Malformed("it has no three parts"))?;
    let (header, payload) = signed
        .split_once('.')
        .ok_or(TokenError::Malformed("it has no three parts"))?;
    if payload.contains('.') {
        return Err(TokenError::Malformed("it has no three parts"));
    }
    let header: Header = json(header, "its header is not readable")?;
    if header.crit.is_some() {
        return Err(TokenError::Malformed(
            "it has extensions that have to be understood",
        ));
    }
    let Some(algorithm) = Algorithm::of(&header.alg) else {
        return Err(TokenError::Algorithm(header.alg.chars().take(20).collect()));
    };
    let signature = decoded(signature, "its signature is not readable")?;
    keys.verify(algorithm, header.kid.as_deref(), signed.as_bytes(), &signature)?;
    let claims: Map<String, Value> = json(payload, "its claims are not readable")?;
    check(claims, expected)
}

fn json<T: for<'de> Deserialize<'de>>(part: &str, fault: &'static str) -> Result<T, TokenError> {
    serde_json::from_slice(&decoded(part, fault)?).map_err(|_| TokenError::Malformed(fault))
}

fn decoded(part: &str, fault: &'static str) -> Result<Vec<u8>, TokenError> {
    URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| TokenError::Malformed(fault))
}

fn wrong<T>(name: &'static str, fault: &'static str) -> Result<T, TokenError> {
    Err(TokenError::Claim { name, fault })
}

fn check(claims: Map<String, Value>, expected: &Expected<'_>) -> Result<Claims, TokenError> {
    if text(&claims, "iss")? != expected.issuer {
        return wrong("iss", "names another issuer");
    }
    audience(&claims, expected.client_id)?;
    let now = expected.now;
    if now >= needed_time(&claims, "exp")? + LEEWAY {
        return wrong("exp", "lies in the past");
    }
    let issued_at = needed_time(&claims, "iat")?;
    if issued_at > now + LEEWAY {
        return wrong("iat", "lies in the future");
    }
    if time(&claims, "nbf")?.is_some_and(|from| from > now + LEEWAY) {
        return wrong("nbf", "lies in the future");
    }
    if text(&claims, "nonce")? != expected.nonce {
        return wrong("nonce", "belongs to another sign-in");
    }
    let authenticated_at = time(&claims, "auth_time")?;
    if authenticated_at.is_some_and(|at| at > now + LEEWAY) {
        return wrong("auth_time", "lies in the future");
    }
    if let Some(max_age) = expected.max_age {
        match authenticated_at {
            None => return wrong("auth_time", "is missing, although max_age was asked for"),
            Some(at) if now - at > max_age + LEEWAY => return wrong("auth_time", "lies too far back"),
            Some(_) => {}
        }
    }
    let subject = text(&claims, "sub")?.to_owned();
    if subject.is_empty() || subject.chars().count() > SUBJECT_MAX_CHARS || subject.contains(char::is_control)
    {
        return wrong("sub", "is not 1 to 255 characters that can be seen");
    }
    Ok(Claims {
        issuer: expected.issuer.to_owned(),
        subject,
        authenticated_at,
        issued_at,
        all: claims,
    })
}

/// The token is for this client, alone or as the one that it was issued to.
fn audience(claims: &Map<String, Value>, client_id: &str) -> Result<(), TokenError> {
    let (is_for_us, is_for_others) = match claims.get("aud") {
        Some(Value::String(one)) => (one == client_id, false),
        Some(Value::Array(several)) => (
            several.iter().any(|one| one == client_id),
            several.iter().any(|one| one != client_id),
        ),
        _ => return wrong("aud", "is missing"),
    };
    if !is_for_us {
        return wrong("aud", "names another client");
    }
    match claims.get("azp") {
        Some(party) if party != client_id => wrong("azp", "names another client"),
        None if is_for_others => wrong("azp", "is missing, although there are several audiences"),
        _ => Ok(()),
    }
}

fn text<'a>(claims: &'a Map<String, Value>, name: &'static str) -> Result<&'a str, TokenError> {
    match claims.get(name) {
        Some(Value::String(text)) => Ok(text),
        Some(_) => wrong(name, "is no text"),
        None => wrong(name, "is missing"),
    }
}

fn needed_time(claims: &Map<String, Value>, name: &'static str) -> Result<DateTime<Utc>, TokenError> {
    time(claims, name)?.map_or_else(|| wrong(name, "is missing"), Ok)
}

/// Seconds since 1970, perhaps with a fraction, which is left out.
fn time(claims: &Map<String, Value>, name: &'static str) -> Result<Option<DateTime<Utc>>, TokenError> {
    let Some(said) = claims.get(name).filter(|said| !said.is_null()) else {
        return Ok(None);
    };
    #[expect(clippy::cast_possible_truncation, reason = "within what is checked before")]
    let whole = |seconds: f64| {
        (0.0..=253_402_300_799.0)
            .contains(&seconds)
            .then_some(seconds as i64)
    };
    let seconds = said.as_i64().or_else(|| said.as_f64().and_then(whole));
    let at = seconds
        .filter(|seconds| (0..=253_402_300_799).contains(seconds))
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    at.map_or_else(|| wrong(name, "is no time"), |at| Ok(Some(at)))
}
