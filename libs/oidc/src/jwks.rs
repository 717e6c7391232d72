//! The keys that a provider publishes, and signatures judged by them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256, RsaParameters,
    RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

use crate::error::{DocumentError, TokenError};

/// Most keys that are kept of a set. Providers publish a handful.
const KEYS_MAX: usize = 64;
/// Largest modulus, in bytes: 8192 bits, the most that is verified.
const MODULUS_MAX_BYTES: usize = 1024;
/// Bytes of a coordinate on P-256.
const COORDINATE_BYTES: usize = 32;

/// What tokens may be signed with. There is deliberately no `none` and nothing with a shared secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Rs256,
    Ps256,
    Es256,
}

impl Algorithm {
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::Rs256,
            "PS256" => Self::Ps256,
            "ES256" => Self::Es256,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
            Self::Es256 => "ES256",
        }
    }
}

/// The public keys of a provider that are of use here.
#[derive(Debug, Clone, Default)]
pub struct Jwks(Vec<Key>);

#[derive(Debug, Clone)]
struct Key {
    id: Option<String>,
    /// The only algorithm that it is for, when it says so.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Debug, Clone)]
enum Material {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// An uncompressed point.
    P256(Vec<u8>),
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Entry {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    n: Option<String>,
    e: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Jwks {
    /// Reads a key set. Keys of other kinds and for other uses are left out, as the specification wants it.
    pub fn read(document: &[u8]) -> Result<Self, DocumentError> {
        let set: Set =
            serde_json::from_slice(document).map_err(|error| DocumentError::Unreadable("key set", error))?;
        let entries = set
            .keys
            .into_iter()
            .filter_map(|key| serde_json::from_value(key).ok());
        let keys: Vec<Key> = entries.filter_map(key).take(KEYS_MAX).collect();
        if keys.is_empty() {
            return Err(DocumentError::NoKeys);
        }
        Ok(Self(keys))
    }

    /// Judges a signature by the key that a token names, or by the only one that fits when it names none.
    pub(crate) fn verify(
        &self,
        algorithm: Algorithm,
        kid: Option<&str>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), TokenError> {
        let fitting = || self.0.iter().filter(|key| key.fits(algorithm));
        let mut candidates = fitting()
            .filter(|key| kid.is_none() || key.id.as_deref() == kid)
            .peekable();
        if candidates.peek().is_none() {
            return Err(TokenError::UnknownKey);
        }
        if kid.is_none() && fitting().count() > 1 {
            return Err(TokenError::Malformed(
                "it names no key, and the provider has several",
            ));
        }
        if candidates.any(|key| key.verifies(algorithm, message, signature)) {
            return Ok(());
        }
        Err(TokenError::Signature)
    }
}

impl Key {
    fn fits(&self, algorithm: Algorithm) -> bool {
        let kind = match self.material {
            Material::Rsa { .. } => matches!(algorithm, Algorithm::Rs256 | Algorithm::Ps256),
            Material::P256(_) => algorithm == Algorithm::Es256,
        };
        let meant = self.algorithm.as_deref();
        kind && meant.is_none_or(|meant| meant == algorithm.name())
    }

    fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let rsa = |parameters: &RsaParameters| match &self.material {
            Material::Rsa { n, e } => RsaPublicKeyComponents { n, e }
                .verify(parameters, message, signature)
                .is_ok(),
            Material::P256(_) => false,
        };
        match algorithm {
            Algorithm::Rs256 => rsa(&RSA_PKCS1_2048_8192_SHA256),
            Algorithm::Ps256 => rsa(&RSA_PSS_2048_8192_SHA256),
            Algorithm::Es256 => match &self.material {
                Material::P256(point) => {
                    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
                    key.verify(message, signature).is_ok()
                }
                Material::Rsa { .. } => false,
            },
        }
    }
}

fn key(entry: Entry) -> Option<Key> {
    let is_for_signatures = entry.purpose.is_none_or(|purpose| purpose == "sig")
        && entry
            .key_ops
            .is_none_or(|ops| ops.iter().any(|op| op == "verify"));
    if !is_for_signatures {
        return None;
    }
    let material = match entry.kty.as_str() {
        "RSA" => Material::Rsa {
            n: number(&entry.n?)?,
            e: number(&entry.e?)?,
        },
        "EC" if entry.crv.as_deref() == Some("P-256") => {
            let coordinate = |text: String| decoded(&text).filter(|bytes| bytes.len() == COORDINATE_BYTES);
            // What stands before an uncompressed point.
            let mut point = vec![4];
            point.extend(coordinate(entry.x?)?);
            point.extend(coordinate(entry.y?)?);
            Material::P256(point)
        }
        _ => return None,
    };
    Some(Key {
        id: entry.kid,
        algorithm: entry.alg,
        material,
    })
}

/// An unsigned number. Some providers write the zero that makes it positive in other encodings.
fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = decoded(text)?;
    let first = bytes.iter().position(|byte| *byte != 0)?;
    let number = bytes[first..].to_vec();
    (number.len() <= MODULUS_MAX_BYTES).then_some(number)
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(keys: &Value) -> Result<Jwks, DocumentError> {
        Jwks::read(json!({ "keys": keys }).to_string().as_bytes())
    }

    #[test]
    fn keys_of_other_kinds_and_uses_are_left_out() {
        let rsa = json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"});
        let others = json!([
            {"kty": "oct", "k": "c2VjcmV0"},
            {"kty": "OKP", "crv": "Ed25519", "x": "AA"},
            {"kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"},
            {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
            {"kty": "RSA", "use": "enc", "n": "AQAB", "e": "AQAB"},
            {"kty": "RSA", "key_ops": ["sign"], "n": "AQAB", "e": "AQAB"},
            {"kty": "RSA", "n": "AQAB"},
            {"kty": "RSA", "n": "AAAA", "e": "AQAB"},
            {"kty": 7},
            "nonsense",
            rsa,
        ]);
        assert_eq!(read(&others).unwrap().0.len(), 1);
    }

    #[test]
    fn a_set_without_a_usable_key_is_an_error() {
        assert!(matches!(read(&json!([])), Err(DocumentError::NoKeys)));
        assert!(matches!(Jwks::read(b"{}"), Err(DocumentError::Unreadable(..))));
    }

    #[test]
    fn no_more_keys_are_kept_than_a_provider_has() {
        let many = vec![json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"}); 1_000];
        assert_eq!(read(&json!(many)).unwrap().0.len(), KEYS_MAX);
    }
}
