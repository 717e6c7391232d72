//! Signature headers: a message is believed exactly when one of its signatures is, to the letter, what a plain HMAC of
//! another library gives, its time is within the tolerance and its id unambiguous.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use signing::{Secret, SignedHeaders, verify};
use zeroize::Zeroizing;

const NOW: i64 = 1_795_262_400;

/// Checks the property.
pub fn check(input: &[u8]) {
    let _ = believed(&mut Unstructured::new(input));
}

fn believed(input: &mut Unstructured<'_>) -> Result<()> {
    let secrets = (0..input.int_in_range(0..=3)?)
        .map(|_| secret(input))
        .collect::<Result<Vec<_>>>()?;
    let stranger = secret(input)?;
    let timestamp = timestamp(input)?;
    let id = match input.int_in_range(0..=3)? {
        0 => input.arbitrary::<&str>()?.to_owned(),
        _ => "msg_1".to_owned(),
    };
    let tolerance = input.int_in_range(0..=1_000u64)?;
    let header = header(input, &secrets)?;
    let body = input.peek_bytes(input.len()).unwrap_or_default();
    let header = header.replace("{body}", &STANDARD.encode(body));
    let header = sign_places(&header, &secrets, &stranger, (&id, &timestamp), body);
    let headers = SignedHeaders {
        id: Some(&id),
        timestamp: Some(&timestamp),
        signature: Some(&header),
    };
    let references: Vec<&Secret> = secrets.iter().collect();
    let verdict = verify(&references, headers, body, NOW, Duration::from_secs(tolerance));
    let expected = plain(&secrets, (&id, &timestamp), &header, body, tolerance);
    assert_eq!(verdict.is_ok(), expected, "{verdict:?} {headers:?}");
    for headers in [
        SignedHeaders { id: None, ..headers },
        SignedHeaders {
            timestamp: None,
            ..headers
        },
        SignedHeaders {
            signature: None,
            ..headers
        },
    ] {
        assert!(verify(&references, headers, body, NOW, Duration::MAX).is_err());
    }
    Ok(())
}

fn secret(input: &mut Unstructured<'_>) -> Result<Secret> {
    let length = input.int_in_range(24..=64usize)?;
    let fill = input.arbitrary::<u8>()?;
    Ok(Secret::from_bytes(Zeroizing::new(vec![fill; length])).expect("24 to 64 bytes are a secret"))
}

fn timestamp(input: &mut Unstructured<'_>) -> Result<String> {
    Ok(match input.int_in_range(0..=3)? {
        0 => input.arbitrary::<&str>()?.to_owned(),
        1 => input.arbitrary::<i64>()?.to_string(),
        _ => (NOW + input.int_in_range(-1_100..=1_100i64)?).to_string(),
    })
}

/// Parts of a header: places for signatures, and any text.
fn header(input: &mut Unstructured<'_>, secrets: &[Secret]) -> Result<String> {
    let mut parts = Vec::new();
    for _ in 0..input.int_in_range(0..=4)? {
        parts.push(match input.int_in_range(0..=6)? {
            0 if !secrets.is_empty() => format!("{{good{}}}", input.choose_index(secrets.len())?),
            1 => "{strange}".to_owned(),
            2 if !secrets.is_empty() => format!("v1a,{{code{}}}", input.choose_index(secrets.len())?),
            3 if !secrets.is_empty() => format!("v1,{{code{}}}=", input.choose_index(secrets.len())?),
            4 => "v1,{body}".to_owned(),
            5 => format!("v1,{}", input.arbitrary::<&str>()?),
            _ => input.arbitrary::<&str>()?.to_owned(),
        });
    }
    Ok(parts.join(*input.choose(&[" ", " ", " ", ",", "\t", "  "])?))
}

fn sign_places(
    header: &str,
    secrets: &[Secret],
    stranger: &Secret,
    signed: (&str, &str),
    body: &[u8],
) -> String {
    let mut header = header.replace("{strange}", &format!("v1,{}", code(stranger, signed, body)));
    for (place, secret) in secrets.iter().enumerate() {
        let code = code(secret, signed, body);
        header = header.replace(&format!("{{good{place}}}"), &format!("v1,{code}"));
        header = header.replace(&format!("{{code{place}}}"), &code);
    }
    header
}

fn code(secret: &Secret, (id, timestamp): (&str, &str), body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose_bytes());
    let content = [id.as_bytes(), timestamp.as_bytes(), body].join(&b'.');
    STANDARD.encode(hmac::sign(&key, &content))
}

fn plain(secrets: &[Secret], signed: (&str, &str), header: &str, body: &[u8], tolerance: u64) -> bool {
    let (id, timestamp) = signed;
    let at = timestamp
        .parse::<i64>()
        .ok()
        .filter(|at| at.to_string() == timestamp && *at >= 0);
    let in_time = at.is_some_and(|at| at.abs_diff(NOW) <= tolerance);
    let matches = secrets.iter().any(|secret| {
        let wanted = format!("v1,{}", code(secret, signed, body));
        header.split(' ').any(|part| part == wanted)
    });
    !id.is_empty() && !id.contains('.') && in_time && matches
}
