//! How the body of a message is encrypted: `aes128gcm` (RFC 8188, 8291), whose parameters are in the body, and `aesgcm`, whose parameters
//! are in headers.

use crate::Refusal;
use crate::parameters::Parameters;
use crate::wire::PushHeaders;

/// The headers of a request that are about its encryption.
#[derive(Debug, Clone, Copy, Default)]
pub struct EncryptionHeaders<'a> {
    /// `Content-Encoding`.
    pub encoding: Option<&'a str>,
    /// `Encryption`.
    pub encryption: Option<&'a str>,
    /// `Crypto-Key`.
    pub crypto_key: Option<&'a str>,
}

/// How a body is encrypted, checked, and as clients are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encryption(PushHeaders);

impl Encryption {
    /// Checks the headers of a request that has a body.
    pub fn check(headers: EncryptionHeaders<'_>) -> Result<Self, Refusal> {
        let wrong = |words: &'static str| Err(Refusal::Encryption(words));
        let encryption = headers.encryption.map(strip);
        let crypto_key = headers.crypto_key.map(strip);
        match headers.encoding {
            None => return wrong("Missing Content-Encoding header"),
            Some("aesgcm") => aesgcm(encryption.as_deref(), crypto_key.as_deref())?,
            Some("aes128gcm") => aes128gcm(encryption.as_deref(), crypto_key.as_deref())?,
            Some(_) => return wrong("Unknown Content-Encoding header"),
        }
        Ok(Self(PushHeaders {
            encoding: headers.encoding.unwrap_or_default().to_owned(),
            encryption,
            crypto_key,
        }))
    }

    /// As clients are told.
    pub fn into_headers(self) -> PushHeaders {
        self.0
    }
}

fn aesgcm(encryption: Option<&str>, crypto_key: Option<&str>) -> Result<(), Refusal> {
    let encryption = encryption.ok_or(Refusal::Encryption("Missing Encryption header"))?;
    let parsed = Parameters::parse(encryption).ok_or(Refusal::Encryption("Invalid Encryption header"))?;
    let salt = parsed
        .find("salt")
        .ok_or(Refusal::Encryption("Missing salt value in Encryption header"))?;
    if !is_base64url(salt) {
        return Err(Refusal::Encryption("Invalid salt value in Encryption header"));
    }
    let crypto_key = crypto_key.ok_or(Refusal::Encryption("Missing Crypto-Key header"))?;
    let parsed = Parameters::parse(crypto_key).ok_or(Refusal::Encryption("Invalid Crypto-Key header"))?;
    let key = parsed
        .find("dh")
        .ok_or(Refusal::Encryption("Missing dh value in Crypto-Key header"))?;
    if !is_base64url(key) {
        return Err(Refusal::Encryption("Invalid dh value in Crypto-Key header"));
    }
    Ok(())
}

fn aes128gcm(encryption: Option<&str>, crypto_key: Option<&str>) -> Result<(), Refusal> {
    if let Some(header) = encryption {
        let parsed = Parameters::parse(header).ok_or(Refusal::Encryption("Invalid Encryption header"))?;
        if parsed.find("salt").is_some() {
            return Err(Refusal::Encryption(
                "The salt of aes128gcm belongs into the body, not into the Encryption header",
            ));
        }
    }
    if let Some(header) = crypto_key {
        let parsed = Parameters::parse(header).ok_or(Refusal::Encryption("Invalid Crypto-Key header"))?;
        if parsed.find("dh").is_some() {
            return Err(Refusal::Encryption(
                "The key of aes128gcm belongs into the body, not as dh into the Crypto-Key header",
            ));
        }
    }
    Ok(())
}

fn is_base64url(text: &str) -> bool {
    let text = text.trim_end_matches('=');
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.bytes().all(allowed)
}

/// Without quotes and without the padding of base64, which clients do not take.
fn strip(header: &str) -> String {
    let mut stripped = String::with_capacity(header.len());
    for part in header.split_inclusive([',', ';']) {
        let parameter = part.trim_end_matches([',', ';']);
        let value = parameter.trim_end_matches(['=', '"', ' ', '\t']);
        stripped.extend(value.chars().filter(|character| *character != '"'));
        stripped.push_str(&part[parameter.len()..]);
    }
    stripped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(encoding: &str, encryption: &str, crypto_key: &str) -> Result<PushHeaders, String> {
        fn given(text: &str) -> Option<&str> {
            (!text.is_empty()).then_some(text)
        }
        let headers = EncryptionHeaders {
            encoding: given(encoding),
            encryption: given(encryption),
            crypto_key: given(crypto_key),
        };
        Encryption::check(headers)
            .map(Encryption::into_headers)
            .map_err(|refusal| {
                assert_eq!((refusal.status(), refusal.errno()), (400, Some(110)));
                refusal.to_string()
            })
    }

    #[test]
    fn aes128gcm_has_its_parameters_in_the_body() {
        let headers = check("aes128gcm", "", "").unwrap();
        assert_eq!(headers.encoding, "aes128gcm");
        assert_eq!((headers.encryption, headers.crypto_key), (None, None));
        let with_vapid = check("aes128gcm", "", "p256ecdsa=BA1H").unwrap();
        assert_eq!(with_vapid.crypto_key.as_deref(), Some("p256ecdsa=BA1H"));
        assert!(check("aes128gcm", "salt=abc", "").unwrap_err().contains("salt"));
        assert!(
            check("aes128gcm", "", "keyid=a;dh=abc")
                .unwrap_err()
                .contains("dh")
        );
    }

    #[test]
    fn aesgcm_has_its_parameters_in_headers() {
        let headers = check(
            "aesgcm",
            r#"keyid="http://example.org/bob/keys/123";salt="XZwpw6o37R-6qoZjw6KwAw==""#,
            r#"keyid="a1"; dh="JcqK-OLkJZlJ3sJJWstJCA";p256ecdsa="BA1H""#,
        );
        let headers = headers.unwrap();
        assert_eq!(
            headers.encryption.as_deref(),
            Some("keyid=http://example.org/bob/keys/123;salt=XZwpw6o37R-6qoZjw6KwAw")
        );
        assert_eq!(
            headers.crypto_key.as_deref(),
            Some("keyid=a1; dh=JcqK-OLkJZlJ3sJJWstJCA;p256ecdsa=BA1H")
        );
        let spaced = check(
            "aesgcm",
            "salt=\"abc==\" ;rs=4096;",
            "dh=abc= , p256ecdsa=\"BA1H=\"; ",
        )
        .unwrap();
        assert_eq!(spaced.encryption.as_deref(), Some("salt=abc;rs=4096;"));
        assert_eq!(spaced.crypto_key.as_deref(), Some("dh=abc, p256ecdsa=BA1H;"));
        for (encryption, crypto_key, part) in [
            ("", "dh=abc", "Missing Encryption"),
            ("keyid=a", "dh=abc", "Missing salt"),
            ("salt", "dh=abc", "Invalid Encryption"),
            ("salt=a+b", "dh=abc", "Invalid salt"),
            ("salt=", "dh=abc", "Invalid Encryption"),
            ("salt=abc", "", "Missing Crypto-Key"),
            ("salt=abc", "keyid=a", "Missing dh"),
            ("salt=abc", "dh=a/b", "Invalid dh"),
        ] {
            let words = check("aesgcm", encryption, crypto_key).unwrap_err();
            assert!(words.contains(part), "{encryption} {crypto_key}: {words}");
        }
    }

    #[test]
    fn any_other_encoding_is_refused() {
        assert!(
            check("", "", "")
                .unwrap_err()
                .contains("Missing Content-Encoding")
        );
        for encoding in ["gzip", "aesgcm128", "AES128GCM"] {
            assert!(
                check(encoding, "", "").unwrap_err().contains("Unknown"),
                "{encoding}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_header_is_read_or_refused(encryption in ".{0,80}", crypto_key in ".{0,80}") {
            for encoding in ["aesgcm", "aes128gcm"] {
                if let Ok(headers) = check(encoding, &encryption, &crypto_key) {
                    let clean = |text: Option<String>| text.is_none_or(|text| !text.contains('"') && !text.ends_with('='));
                    prop_assert!(clean(headers.encryption) && clean(headers.crypto_key));
                }
            }
        }
    }
}
