//! Who may change the registration of a client over HTTP: who was given its secret, an HMAC-SHA256 of its identifier.

use ring::hmac;
use uuid::Uuid;

use crate::KeyError;
use crate::fernet::list;

/// The keys of these secrets. The first makes them, each is taken.
#[derive(Clone)]
pub struct AuthKeys(Vec<hmac::Key>);

impl std::fmt::Debug for AuthKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AuthKeys").field(&self.0.len()).finish()
    }
}

impl AuthKeys {
    /// Reads keys: `[key,key]`. A key is the text as it is written.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let keys: Vec<_> = list(text)
            .map(|key| hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()))
            .collect();
        if keys.is_empty() {
            return Err(KeyError::Empty);
        }
        Ok(Self(keys))
    }

    /// The secret of a client.
    pub fn secret(&self, uaid: Uuid) -> String {
        let key = self
            .0
            .first()
            .map(|key| hmac::sign(key, identifier(uaid).as_bytes()));
        key.map(hex::encode).unwrap_or_default()
    }

    /// Whether the header `Authorization` has the secret of this client.
    pub fn allow(&self, header: &str, uaid: Uuid) -> bool {
        let Some((scheme, secret)) = header.trim().split_once(' ') else {
            return false;
        };
        // Clients on Android say `webpush`.
        if !scheme.eq_ignore_ascii_case("bearer") && !scheme.eq_ignore_ascii_case("webpush") {
            return false;
        }
        let Ok(secret) = hex::decode(secret.trim()) else {
            return false;
        };
        let verified = |key| hmac::verify(key, identifier(uaid).as_bytes(), &secret).is_ok();
        self.0.iter().any(verified)
    }
}

fn identifier(uaid: Uuid) -> String {
    uaid.simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_of_the_client_is_taken() {
        let keys = AuthKeys::parse(r#"["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB="]"#).unwrap();
        let (uaid, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let secret = keys.secret(uaid);
        assert_eq!(secret.len(), 64);
        for header in [
            format!("bearer {secret}"),
            format!("Bearer {secret}"),
            format!("webpush {secret}"),
        ] {
            assert!(keys.allow(&header, uaid), "{header}");
            assert!(!keys.allow(&header, other), "{header}");
        }
        let other = keys.secret(other);
        for header in [
            String::new(),
            secret.clone(),
            format!("basic {secret}"),
            format!("bearer {other}"),
            "bearer x".to_owned(),
        ] {
            assert!(!keys.allow(&header, uaid), "{header}");
        }
    }

    /// Clients keep theirs for years: the HMAC-SHA256, under the text of the key, of the identifier in lower case without dashes.
    #[test]
    fn a_secret_is_the_one_that_the_contract_describes() {
        let secret = AuthKeys::parse("[one]").unwrap().secret(Uuid::from_u128(1));
        assert_eq!(
            secret,
            "b6a2c48a587f846068f58105cd01a79f418dbd170e1278141275a048688f8a63"
        );
    }

    #[test]
    fn keys_are_replaced_without_losing_a_client() {
        let old = AuthKeys::parse("[one]").unwrap();
        let both = AuthKeys::parse("[two,one]").unwrap();
        let uaid = Uuid::from_u128(1);
        assert!(both.allow(&format!("bearer {}", old.secret(uaid)), uaid));
        assert_ne!(both.secret(uaid), old.secret(uaid));
        assert_eq!(AuthKeys::parse("[]").unwrap_err(), KeyError::Empty);
    }
}
