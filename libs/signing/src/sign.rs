//! Making signatures.

use crate::content::Code;
use crate::secret::Secret;

/// Characters of one signature with its version.
const SIGNATURE_LENGTH: usize = "v1,".len() + 44;

/// The signature of a message: `v1,` and the base64 of HMAC-SHA256 over `{id}.{timestamp}.{body}`.
///
/// `timestamp` is the time of the attempt in seconds since 1970, and `id` must hold no full stop: it would be ambiguous where
/// the identifier ends, and receivers built with [`verify`](crate::verify) refuse it.
///
/// ```
/// let secret = signing::Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// let signature = signing::sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, br#"{"test": 2432232314}"#);
/// assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
/// # Ok::<(), signing::SecretError>(())
/// ```
pub fn sign(secret: &Secret, id: &str, timestamp: i64, body: &[u8]) -> String {
    signature_header(&[secret], id, timestamp, body)
}

/// The value of the header `webhook-signature`: one signature for each secret, with a blank between them.
///
/// While a secret is being replaced both are valid; a receiver that knows only one of them finds its signature among these.
pub fn signature_header(secrets: &[&Secret], id: &str, timestamp: i64, body: &[u8]) -> String {
    let timestamp = timestamp.to_string();
    let mut header = String::with_capacity(secrets.len() * (SIGNATURE_LENGTH + 1));
    for secret in secrets {
        if !header.is_empty() {
            header.push(' ');
        }
        Code::of(secret, id, &timestamp, body).write_to(&mut header);
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_secret_gets_its_signature_in_the_order_given() {
        let (old, new) = (Secret::generate(), Secret::generate());
        let header = signature_header(&[&new, &old], "msg_1", 5, b"{}");
        let wanted = [sign(&new, "msg_1", 5, b"{}"), sign(&old, "msg_1", 5, b"{}")];
        assert_eq!(header, wanted.join(" "));
        assert_eq!(wanted[0].len(), SIGNATURE_LENGTH);
    }

    #[test]
    fn without_secrets_there_is_nothing_to_say() {
        assert_eq!(signature_header(&[], "msg_1", 5, b"{}"), "");
    }
}
