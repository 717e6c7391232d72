//! What is accepted, and what is not.

use super::*;
use crate::sign::{sign, signature_header};
use proptest::prelude::*;

const NOW: i64 = 1_700_000_000;

fn check(
    secrets: &[&Secret],
    id: &str,
    timestamp: &str,
    signature: &str,
    body: &[u8],
) -> Result<(), VerifyError> {
    let headers = SignedHeaders {
        id: Some(id),
        timestamp: Some(timestamp),
        signature: Some(signature),
    };
    verify(secrets, headers, body, NOW, DEFAULT_TOLERANCE)
}

#[test]
fn missing_and_empty_headers_are_named() {
    let full = SignedHeaders {
        id: Some("a"),
        timestamp: Some("1"),
        signature: Some("v1,x"),
    };
    for (headers, missing) in [
        (SignedHeaders { id: None, ..full }, HEADER_ID),
        (SignedHeaders { id: Some(""), ..full }, HEADER_ID),
        (
            SignedHeaders {
                timestamp: None,
                ..full
            },
            HEADER_TIMESTAMP,
        ),
        (
            SignedHeaders {
                signature: None,
                ..full
            },
            HEADER_SIGNATURE,
        ),
        (SignedHeaders::default(), HEADER_ID),
    ] {
        let found = verify(&[], headers, b"", 1, DEFAULT_TOLERANCE);
        assert_eq!(found, Err(VerifyError::MissingHeader(missing)));
    }
}

#[test]
fn both_ends_of_the_tolerance_are_inside() {
    let secret = Secret::generate();
    for (signed_at, wanted) in [
        (NOW - 301, Err(VerifyError::TooOld)),
        (NOW - 300, Ok(())),
        (NOW, Ok(())),
        (NOW + 300, Ok(())),
        (NOW + 301, Err(VerifyError::TooNew)),
        (0, Err(VerifyError::TooOld)),
        (i64::MAX, Err(VerifyError::TooNew)),
    ] {
        let signature = sign(&secret, "msg", signed_at, b"{}");
        let found = check(&[&secret], "msg", &signed_at.to_string(), &signature, b"{}");
        assert_eq!(found, wanted, "{signed_at}");
    }
}

#[test]
fn no_clock_and_no_tolerance_overflows() {
    for (signed_at, now, tolerance, wanted) in [
        (0, i64::MIN, Duration::ZERO, Err(VerifyError::TooNew)),
        (i64::MAX, i64::MIN, Duration::MAX, Err(VerifyError::TooNew)),
        (0, i64::MAX, Duration::from_secs(5), Err(VerifyError::TooOld)),
        (0, i64::MAX, Duration::MAX, Ok(())),
        (i64::MAX, 0, Duration::MAX, Ok(())),
    ] {
        assert_eq!(check_time(signed_at, now, tolerance), wanted);
    }
}

#[test]
fn timestamps_have_one_spelling() {
    let secret = Secret::generate();
    for text in [
        "+1700000000",
        "01700000000",
        "1700000000.0",
        "1.7e9",
        " 1700000000",
        "-1",
        "9223372036854775808",
        "١",
        "x",
    ] {
        let mut body = String::new();
        Code::of(&secret, "msg", text, b"{}").write_to(&mut body);
        let found = check(&[&secret], "msg", text, &body, b"{}");
        assert_eq!(found, Err(VerifyError::BadTimestamp), "{text}");
    }
}

#[test]
fn identifiers_with_a_full_stop_are_ambiguous() {
    assert_eq!(
        check(&[], "a.b", "1700000000", "v1,", b""),
        Err(VerifyError::AmbiguousId)
    );
}

#[test]
fn any_secret_that_is_still_valid_will_do() {
    let (old, new, foreign) = (Secret::generate(), Secret::generate(), Secret::generate());
    let time = NOW.to_string();
    let header = signature_header(&[&new, &old], "msg", NOW, b"{}");
    for known in [vec![&old], vec![&new], vec![&foreign, &old]] {
        assert_eq!(check(&known, "msg", &time, &header, b"{}"), Ok(()));
    }
    for known in [vec![], vec![&foreign]] {
        assert_eq!(
            check(&known, "msg", &time, &header, b"{}"),
            Err(VerifyError::NoMatch)
        );
    }
}

#[test]
fn other_versions_and_rubbish_are_passed_over() {
    let secret = Secret::generate();
    let good = sign(&secret, "msg", NOW, b"{}");
    let code = good.trim_start_matches("v1,").to_owned();
    let time = NOW.to_string();
    for signature in [
        format!("v1a,{code} {good}"),
        format!("v1,AAAA  , x v1, {good}"),
        format!("{good} v1,{}", "A".repeat(100)),
    ] {
        assert_eq!(
            check(&[&secret], "msg", &time, &signature, b"{}"),
            Ok(()),
            "{signature}"
        );
    }
    for signature in [
        code.clone(),
        format!("v2,{code}"),
        format!("V1,{code}"),
        format!("v1 {code}"),
        format!("v1,{}", code.trim_end_matches('=')),
        format!("v1,{code}="),
        format!("v1,{code},"),
        format!("v1,AAAA{code}"),
        code.to_lowercase(),
    ] {
        let found = check(&[&secret], "msg", &time, &signature, b"{}");
        assert_eq!(found, Err(VerifyError::NoMatch), "{signature}");
    }
}

proptest! {
    #[test]
    fn what_was_signed_is_accepted(id in "[^.]{1,40}", body in prop::collection::vec(any::<u8>(), 0..200), shift in -300i64..=300) {
        let (secret, time) = (Secret::generate(), NOW + shift);
        let signature = sign(&secret, &id, time, &body);
        prop_assert_eq!(check(&[&secret], &id, &time.to_string(), &signature, &body), Ok(()));
    }

    #[test]
    fn one_changed_bit_is_found(mut body in prop::collection::vec(any::<u8>(), 1..100), at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let secret = Secret::generate();
        let signature = sign(&secret, "msg", NOW, &body);
        let at = at.index(body.len());
        body[at] ^= 1 << bit;
        let found = check(&[&secret], "msg", &NOW.to_string(), &signature, &body);
        prop_assert_eq!(found, Err(VerifyError::NoMatch));
    }

    #[test]
    fn another_id_or_time_is_found(id in "[^.]{1,20}", other in "[^.]{1,20}", shift in 1i64..300) {
        let secret = Secret::generate();
        let signature = sign(&secret, &id, NOW, b"{}");
        let later = (NOW + shift).to_string();
        prop_assert_eq!(check(&[&secret], &id, &later, &signature, b"{}"), Err(VerifyError::NoMatch));
        if id != other {
            let found = check(&[&secret], &other, &NOW.to_string(), &signature, b"{}");
            prop_assert_eq!(found, Err(VerifyError::NoMatch));
        }
    }

    #[test]
    fn no_headers_make_it_panic(id in ".*", timestamp in "[0-9+. e-]{0,25}", signature in "[v1a,=A-Z ]{0,150}") {
        let _ = check(&[&Secret::generate()], &id, &timestamp, &signature, b"{}");
    }
}
