//! Who sends (RFC 8292): a signed statement that names this service and is good for a day at most.
//!
//! Three spellings are in use: `vapid t=…,k=…`, and `bearer` or `webpush` with the key in `Crypto-Key: p256ecdsa=…`. A key may be padded
//! and in either alphabet of base64, as senders have written it for years.

use chrono::{DateTime, TimeDelta, Utc};
use ring::digest::{self, SHA256_OUTPUT_LEN};
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde::Deserialize;

use crate::base64url;
use crate::parameters::Parameters;

/// An uncompressed point of P-256.
const POINT: usize = 65;
/// The first byte of one.
const UNCOMPRESSED: u8 = 4;
/// The furthest expiry.
const LONGEST: TimeDelta = TimeDelta::hours(24);
/// By how much the clock of a sender may be behind.
const LEEWAY: TimeDelta = TimeDelta::seconds(60);
/// The longest header that is looked at.
const HEADER_MAX: usize = 4096;

/// Why a sender has not shown who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VapidError {
    /// The scheme of `Authorization` is none of the three.
    #[error("Unknown auth scheme: use Authorization: vapid t=…,k=…")]
    UnknownScheme,
    /// There is no token.
    #[error("Missing VAPID token")]
    MissingToken,
    /// There is no key, in `k` or in `Crypto-Key`.
    #[error("Missing VAPID public key")]
    MissingKey,
    /// The key is not one.
    #[error("Invalid VAPID public key: it must be 65 bytes of an uncompressed P-256 point in base64url")]
    InvalidKey,
    /// The token is not a JWT signed with ES256.
    #[error("Invalid VAPID token: it must be a JWT with the header alg ES256 and the claims aud and exp")]
    InvalidToken,
    /// The signature is not one of the key.
    #[error("Invalid VAPID signature")]
    Signature,
    /// The audience is another service.
    #[error("Invalid VAPID audience: aud must be the origin of the endpoint")]
    Audience,
    /// The token has expired.
    #[error("The VAPID token has expired")]
    Expired,
    /// The token would be good for too long.
    #[error("The VAPID token expires too late: exp must be at most 24 hours ahead")]
    TooLong,
    /// The endpoint is for another key.
    #[error("VAPID public key mismatch: this endpoint was made for another key")]
    KeyMismatch,
}

/// The public key of a sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VapidKey([u8; POINT]);

impl VapidKey {
    /// Reads a key in base64.
    pub fn parse(text: &str) -> Result<Self, VapidError> {
        let bytes = base64url::decode_any(text.trim()).ok_or(VapidError::InvalidKey)?;
        let point: [u8; POINT] = bytes.try_into().map_err(|_| VapidError::InvalidKey)?;
        if point.first() != Some(&UNCOMPRESSED) {
            return Err(VapidError::InvalidKey);
        }
        Ok(Self(point))
    }

    /// The point.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// What a sender has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vapid {
    /// Its key.
    pub key: VapidKey,
    /// How it can be reached.
    pub subject: Option<String>,
    /// Until when the statement is good.
    pub expires_at: DateTime<Utc>,
}

impl Vapid {
    /// Checks the headers `Authorization` and `Crypto-Key` of a request at `now`; `audience` is the origin of the endpoint.
    pub fn check(
        authorization: &str,
        crypto_key: Option<&str>,
        audience: &str,
        now: DateTime<Utc>,
    ) -> Result<Self, VapidError> {
        if authorization.len() > HEADER_MAX {
            return Err(VapidError::InvalidToken);
        }
        let (token, key) = token_and_key(authorization, crypto_key)?;
        let key = VapidKey::parse(key)?;
        let claims = verify(token, &key)?;
        if !claims.audience.names(audience) {
            return Err(VapidError::Audience);
        }
        let expires_at = claims.expires_at().ok_or(VapidError::InvalidToken)?;
        let vapid = Self {
            key,
            subject: claims.subject,
            expires_at,
        };
        vapid.check_expiry(now)?;
        Ok(vapid)
    }

    /// What the two headers are remembered by when they were good. They may be long; this is not.
    pub fn digest(authorization: &str, crypto_key: Option<&str>) -> [u8; SHA256_OUTPUT_LEN] {
        let mut both = digest::Context::new(&digest::SHA256);
        both.update(authorization.as_bytes());
        // No header has this byte.
        both.update(&[0]);
        both.update(crypto_key.unwrap_or_default().as_bytes());
        let mut digest = [0; SHA256_OUTPUT_LEN];
        digest.copy_from_slice(both.finish().as_ref());
        digest
    }

    /// Checks again at `now` what alone changes with time, for who remembers that the rest was checked.
    pub fn check_expiry(&self, now: DateTime<Utc>) -> Result<(), VapidError> {
        // Nothing is added to a time that a sender writes: it may be the last one that there is.
        if self.expires_at < now - LEEWAY {
            return Err(VapidError::Expired);
        }
        if self.expires_at > now + LONGEST {
            return Err(VapidError::TooLong);
        }
        Ok(())
    }
}

fn token_and_key<'a>(
    authorization: &'a str,
    crypto_key: Option<&'a str>,
) -> Result<(&'a str, &'a str), VapidError> {
    let authorization = authorization.trim();
    let (scheme, rest) = authorization
        .split_once(char::is_whitespace)
        .unwrap_or((authorization, ""));
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("vapid") {
        let parameters = Parameters::parse(rest).ok_or(VapidError::MissingToken)?;
        let token = parameters.find("t").ok_or(VapidError::MissingToken)?;
        return Ok((token, parameters.find("k").ok_or(VapidError::MissingKey)?));
    }
    if !scheme.eq_ignore_ascii_case("bearer") && !scheme.eq_ignore_ascii_case("webpush") {
        return Err(VapidError::UnknownScheme);
    }
    if rest.is_empty() {
        return Err(VapidError::MissingToken);
    }
    let parameters = crypto_key.and_then(Parameters::parse);
    let key = parameters.and_then(|parameters| parameters.find("p256ecdsa"));
    Ok((rest, key.ok_or(VapidError::MissingKey)?))
}

#[derive(Deserialize)]
struct Header {
    alg: String,
}

#[derive(Deserialize)]
struct Claims {
    #[serde(rename = "aud")]
    audience: Audience,
    #[serde(rename = "exp")]
    expires: serde_json::Number,
    #[serde(rename = "sub", default)]
    subject: Option<String>,
}

impl Claims {
    fn expires_at(&self) -> Option<DateTime<Utc>> {
        // A number of seconds, which may have a fraction (RFC 7519).
        #[allow(
            clippy::cast_possible_truncation,
            reason = "a float is cut to the range of i64, and then refused"
        )]
        let seconds = self
            .expires
            .as_i64()
            .or_else(|| self.expires.as_f64().map(|seconds| seconds as i64))?;
        DateTime::from_timestamp(seconds, 0)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Audience {
    fn names(&self, wanted: &str) -> bool {
        let same = |text: &str| text.trim_end_matches('/').eq_ignore_ascii_case(wanted);
        match self {
            Self::One(audience) => same(audience),
            Self::Several(audiences) => audiences.iter().any(|audience| same(audience)),
        }
    }
}

fn verify(token: &str, key: &VapidKey) -> Result<Claims, VapidError> {
    let (signed, signature) = token.rsplit_once('.').ok_or(VapidError::InvalidToken)?;
    let (header, claims) = signed.split_once('.').ok_or(VapidError::InvalidToken)?;
    let part = |text| base64url::decode(text).ok_or(VapidError::InvalidToken);
    let header: Header = serde_json::from_slice(&part(header)?).map_err(|_| VapidError::InvalidToken)?;
    if header.alg != "ES256" {
        return Err(VapidError::InvalidToken);
    }
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.as_bytes())
        .verify(signed.as_bytes(), &part(signature)?)
        .map_err(|_| VapidError::Signature)?;
    serde_json::from_slice(&part(claims)?).map_err(|_| VapidError::InvalidToken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};

    use super::*;

    /// Of RFC 8292, section 2.4.
    const T: &str = "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3NjgsInN1YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjvW2L9OkSSHzvoD1oA";
    const K: &str = "BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs";
    const AUDIENCE: &str = "https://push.example.net";

    fn expiry() -> DateTime<Utc> {
        DateTime::from_timestamp(1_453_523_768, 0).unwrap()
    }

    fn hours(hours: i64) -> DateTime<Utc> {
        expiry() - TimeDelta::hours(hours)
    }

    struct Sender(EcdsaKeyPair);

    impl Sender {
        fn new() -> Self {
            let random = SystemRandom::new();
            let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
            let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random);
            Self(pair.unwrap())
        }

        fn key(&self) -> String {
            base64url::encode(self.0.public_key().as_ref())
        }

        fn token(&self, header: &str, claims: &str) -> String {
            let encode = |text: &str| base64url::encode(text.as_bytes());
            let signed = format!("{}.{}", encode(header), encode(claims));
            let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
            format!("{signed}.{}", base64url::encode(signature.as_ref()))
        }

        fn check(&self, header: &str, claims: &str) -> Result<Vapid, VapidError> {
            let authorization = format!("vapid t={},k={}", self.token(header, claims), self.key());
            Vapid::check(&authorization, None, AUDIENCE, hours(1))
        }
    }

    #[test]
    fn the_example_of_the_standard_is_taken_until_it_expires() {
        let header = format!("vapid t={T}, k={K}");
        let vapid = Vapid::check(&header, None, AUDIENCE, hours(1)).unwrap();
        assert_eq!(vapid.subject.as_deref(), Some("mailto:push@example.com"));
        assert_eq!(vapid.expires_at, expiry());
        assert_eq!(vapid.key, VapidKey::parse(K).unwrap());
        let late = Vapid::check(&header, None, AUDIENCE, hours(-1));
        assert_eq!(late, Err(VapidError::Expired));
        let early = Vapid::check(&header, None, AUDIENCE, hours(25));
        assert_eq!(early, Err(VapidError::TooLong));
        let elsewhere = Vapid::check(&header, None, "https://push.example.com", hours(1));
        assert_eq!(elsewhere, Err(VapidError::Audience));
        assert!(Vapid::check(&header, None, AUDIENCE, hours(24)).is_ok());
        for (ahead, again) in [
            (25, Err(VapidError::TooLong)),
            (24, Ok(())),
            (-1, Err(VapidError::Expired)),
        ] {
            assert_eq!(vapid.check_expiry(hours(ahead)), again, "{ahead} h");
        }
        let behind = expiry() + TimeDelta::seconds(60);
        assert!(Vapid::check(&header, None, AUDIENCE, behind).is_ok());
    }

    #[test]
    fn every_spelling_is_taken() {
        for (authorization, crypto_key) in [
            (format!("vapid t={T},k={K}"), None),
            (format!("VAPID k={K}, t={T}"), None),
            (format!("vapid t=\"{T}\",k=\"{K}=\""), None),
            (format!("vapid t={T}, k={K},"), None),
            (format!("bearer {T}"), Some(format!("p256ecdsa={K}"))),
            (format!("Bearer {T}"), Some(format!("dh=abc,p256ecdsa=\"{K}\""))),
            (format!("WebPush {T}"), Some(format!("dh=abc;p256ecdsa={K}="))),
            (format!("WebPush {T}"), Some(format!("dh=abc;, p256ecdsa={K};"))),
            (
                format!("vapid t={T},k={}", K.replace('-', "+").replace('_', "/")),
                None,
            ),
        ] {
            let checked = Vapid::check(&authorization, crypto_key.as_deref(), AUDIENCE, hours(1));
            assert!(checked.is_ok(), "{authorization} {crypto_key:?}: {checked:?}");
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let short = base64url::encode(&[4; 64]);
        let compressed = base64url::encode(&[2; 65]);
        for (authorization, crypto_key, expected) in [
            (String::new(), None, VapidError::UnknownScheme),
            (format!("basic {T}"), None, VapidError::UnknownScheme),
            ("vapid".to_owned(), None, VapidError::MissingToken),
            (format!("vapid k={K}"), None, VapidError::MissingToken),
            (format!("vapid t={T}"), None, VapidError::MissingKey),
            ("bearer".to_owned(), Some(K), VapidError::MissingToken),
            (format!("bearer {T}"), None, VapidError::MissingKey),
            (format!("bearer {T}"), Some("dh=abc"), VapidError::MissingKey),
            (format!("vapid t={T},k={short}"), None, VapidError::InvalidKey),
            (
                format!("vapid t={T},k={compressed}"),
                None,
                VapidError::InvalidKey,
            ),
            (format!("vapid t={T},k=%%"), None, VapidError::InvalidKey),
            (format!("vapid t=abc,k={K}"), None, VapidError::InvalidToken),
            (format!("vapid t=a.b.c,k={K}"), None, VapidError::InvalidToken),
            (format!("vapid t={T}A,k={K}"), None, VapidError::Signature),
            (
                format!("vapid t={},k={K}", "a".repeat(5000)),
                None,
                VapidError::InvalidToken,
            ),
        ] {
            let checked = Vapid::check(&authorization, crypto_key, AUDIENCE, hours(1));
            assert_eq!(checked, Err(expected), "{authorization}");
        }
        let another = Sender::new().key();
        let checked = Vapid::check(&format!("vapid t={T},k={another}"), None, AUDIENCE, hours(1));
        assert_eq!(checked, Err(VapidError::Signature));
    }

    #[test]
    fn claims_are_those_of_the_standard() {
        let (sender, header) = (Sender::new(), r#"{"typ":"JWT","alg":"ES256"}"#);
        let good = |claims: &str| sender.check(header, claims).map(|vapid| vapid.subject);
        let exp = expiry().timestamp();
        assert_eq!(good(&format!(r#"{{"aud":"{AUDIENCE}","exp":{exp}}}"#)), Ok(None));
        assert_eq!(
            good(&format!(
                r#"{{"aud":["https://a","{AUDIENCE}"],"exp":{exp}.5,"sub":"mailto:a"}}"#
            )),
            Ok(Some("mailto:a".to_owned()))
        );
        for (exp, expected) in [
            (DateTime::<Utc>::MAX_UTC.timestamp(), VapidError::TooLong),
            (DateTime::<Utc>::MIN_UTC.timestamp(), VapidError::Expired),
        ] {
            let claims = format!(r#"{{"aud":"{AUDIENCE}","exp":{exp}}}"#);
            assert_eq!(good(&claims), Err(expected), "{claims}");
        }
        for claims in [
            format!(r#"{{"aud":"{AUDIENCE}"}}"#),
            format!(r#"{{"exp":{exp}}}"#),
            format!(r#"{{"aud":"{AUDIENCE}","exp":"{exp}"}}"#),
            format!(r#"{{"aud":"{AUDIENCE}","exp":"@"}}"#),
            format!(r#"{{"aud":"{AUDIENCE}","exp":1e300}}"#),
            "[]".to_owned(),
        ] {
            assert_eq!(good(&claims), Err(VapidError::InvalidToken), "{claims}");
        }
        let claims = format!(r#"{{"aud":"{AUDIENCE}","exp":{exp}}}"#);
        for header in [r#"{"alg":"none"}"#, r#"{"alg":"HS256"}"#, r#"{"typ":"JWT"}"#, "x"] {
            assert_eq!(
                sender.check(header, &claims),
                Err(VapidError::InvalidToken),
                "{header}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_headers_are_taken_or_refused(authorization in ".{0,120}", crypto_key in ".{0,60}") {
            prop_assert!(Vapid::check(&authorization, Some(&crypto_key), AUDIENCE, hours(1)).is_err());
        }

        #[test]
        fn what_was_changed_is_refused(place in any::<prop::sample::Index>(), with in "[A-Za-z0-9_.-]") {
            let mut token = T.to_owned();
            let place = place.index(T.len());
            token.replace_range(place..=place, &with);
            prop_assume!(token != T);
            let checked = Vapid::check(&format!("vapid t={token},k={K}"), None, AUDIENCE, hours(1));
            prop_assert!(checked.is_err());
        }
    }
}
