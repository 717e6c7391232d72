//! What is said of messages, right ones and wrong ones.

mod accidents;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use signing::{idempotency_key, sign, signature_header};

use super::accident::{BodyAccident, ContentAccident, KeyAccident, SecretAccident, SignatureAccident};
use super::*;

const NOW: i64 = 1_795_254_700;
const SIGNED_AT: &str = "1795254696";
const ID: &str = "order-4711-created";
const BODY: &str = r#"{"id":"order-4711-created","type":"domain.created","timestamp":"2026-11-21T09:51:36.518Z","data":{"owner":"Zoë <zoe@example.org>","domain":{"name":"example.org","price":1.50},"path":"a/b"}}"#;
/// Bytes whose base64 has every character in which the alphabets differ, and needs padding.
const KEY: [u8; 32] = [0xfb; 32];

fn secret() -> String {
    format!("whsec_{}", STANDARD.encode(KEY))
}

fn signature(body: &[u8]) -> String {
    sign(&Secret::parse(&secret()).unwrap(), ID, 1_795_254_696, body)
}

/// A message that arrived, as the tests change it.
struct Message {
    secrets: Vec<String>,
    id: Option<String>,
    timestamp: Option<String>,
    signature: Option<String>,
    key: Option<String>,
    length: Option<u64>,
    body: Vec<u8>,
}

impl Message {
    /// One that is right.
    fn right() -> Self {
        Self {
            secrets: vec![secret()],
            id: Some(ID.to_owned()),
            timestamp: Some(SIGNED_AT.to_owned()),
            signature: Some(signature(BODY.as_bytes())),
            key: None,
            length: None,
            body: BODY.as_bytes().to_vec(),
        }
    }

    fn with_body(body: impl Into<Vec<u8>>) -> Self {
        Self {
            body: body.into(),
            ..Self::right()
        }
    }

    fn with_secret(secret: impl Into<String>) -> Self {
        Self {
            secrets: vec![secret.into()],
            ..Self::right()
        }
    }

    fn with_signature(signature: impl Into<String>) -> Self {
        Self {
            signature: Some(signature.into()),
            ..Self::right()
        }
    }

    fn at(&self, now: i64) -> Diagnosis {
        let secrets: Vec<&str> = self.secrets.iter().map(String::as_str).collect();
        diagnose(&Evidence {
            secrets: &secrets,
            headers: SignedHeaders {
                id: self.id.as_deref(),
                timestamp: self.timestamp.as_deref(),
                signature: self.signature.as_deref(),
            },
            idempotency_key: self.key.as_deref(),
            content_length: self.length,
            body: &self.body,
            now,
            tolerance: Duration::from_secs(300),
        })
    }

    fn causes(&self) -> Vec<Cause> {
        let diagnosis = self.at(NOW);
        assert!(diagnosis.verdict.is_err(), "{:?}", diagnosis.causes);
        diagnosis.causes
    }
}

#[test]
fn a_right_message_has_no_cause_and_tells_its_secret() {
    let diagnosis = Message::right().at(NOW);
    assert_eq!(diagnosis.verdict, Ok(Signed { secret: 0, age: 4 }));
    assert_eq!(diagnosis.causes, []);
    let other = Secret::generate().reveal().to_string();
    let both = Message {
        secrets: vec!["whsec_???".to_owned(), other, secret()],
        ..Message::right()
    };
    let diagnosis = both.at(NOW);
    assert_eq!(diagnosis.verdict, Ok(Signed { secret: 2, age: 4 }));
    let error = signing::SecretError::Base64;
    assert_eq!(diagnosis.causes, [Cause::MalformedSecret { place: 0, error }]);
}

#[test]
fn every_missing_header_is_named() {
    let message = Message {
        id: None,
        signature: Some(String::new()),
        ..Message::right()
    };
    assert_eq!(
        message.causes(),
        [
            Cause::MissingHeader("webhook-id"),
            Cause::MissingHeader("webhook-signature")
        ]
    );
}

#[test]
fn a_clock_is_told_by_how_much_it_is_off() {
    let old = Message::right().at(1_795_254_696 + 421);
    assert_eq!(old.verdict, Err(VerifyError::TooOld));
    assert_eq!(
        old.causes[0].to_string(),
        "the message was signed 7 min 1 s ago, which is 2 min 1 s more than the 300 s that are tolerated; everything else \
         is right"
    );
    let new = Message::right().at(1_795_254_696 - 301);
    assert_eq!((new.verdict, new.causes.len()), (Err(VerifyError::TooNew), 1));
    assert!(
        new.causes[0]
            .to_string()
            .contains("5 min 1 s in the future, which is 1 s more"),
        "{}",
        new.causes[0]
    );
    let both = Message::with_body(format!("{BODY}\n")).at(NOW + 86_400 * 3);
    assert!(both.causes[0].to_string().contains("does not match either"));
    assert_eq!(both.causes[1], Cause::Body(vec![BodyAccident::BlanksAdded]));
    let millis = Message {
        timestamp: Some(format!("{SIGNED_AT}000")),
        ..Message::right()
    };
    assert!(millis.at(NOW).causes[0].mend().contains("milliseconds"));
}

#[test]
fn the_idempotency_key_tells_a_wrong_secret_from_an_altered_body() {
    let other = Secret::generate().reveal().to_string();
    let key = Some(idempotency_key(BODY.as_bytes()));
    let wrong_secret = Message {
        key: key.clone(),
        ..Message::with_secret(&other)
    };
    assert_eq!(wrong_secret.causes(), [Cause::WrongSecret { tried: 1 }]);
    let altered = Message {
        key: key.clone(),
        ..Message::with_body(BODY.replace("example.org", "example.com"))
    };
    assert_eq!(altered.causes(), [Cause::Altered]);
    let both = Message {
        key,
        secrets: vec![other],
        ..Message::with_body(format!("{BODY}\n"))
    };
    assert_eq!(
        both.causes(),
        [
            Cause::Body(vec![BodyAccident::BlanksAdded]),
            Cause::WrongSecretToo { tried: 1 }
        ]
    );
    let said = both.causes()[1].to_string();
    assert!(!said.contains("the body is the one that was sent"), "{said}");
    let unknown = Message::with_body(BODY.replace("example.org", "example.com"));
    assert_eq!(unknown.causes(), [Cause::Unknown { tried: 1 }]);
}

#[test]
fn what_can_be_seen_of_a_body_is_said() {
    assert_eq!(Message::with_body("").causes(), [Cause::EmptyBody]);
    let cut = Message {
        length: Some(BODY.len() as u64),
        ..Message::with_body(&BODY[..50])
    };
    let (announced, found) = (BODY.len() as u64, 50);
    assert_eq!(cut.causes(), [Cause::Length { announced, found }]);
    let replaced = BODY.replace('ë', "\u{fffd}");
    assert_eq!(Message::with_body(replaced).causes(), [Cause::Replaced]);
    // A number that was read and written again: what it was before cannot be known.
    let rewritten = BODY.replace("1.50", "1.5").replace("\":", "\": ");
    assert_eq!(Message::with_body(rewritten).causes(), [Cause::Rewritten]);
    let other = BODY.replace("order-4711", "order-4712");
    assert_eq!(Message::with_body(other).causes()[0], Cause::OtherId);
}

#[test]
fn a_changed_header_is_told_from_a_wrong_secret() {
    let mut message = Message::right();
    message.id = Some("order-9999-created".to_owned());
    assert_eq!(message.causes(), [Cause::OtherId]);
    let signed_at: i64 = SIGNED_AT.parse().unwrap();
    for later in [1, -40, 300] {
        let mut message = Message::right();
        message.timestamp = Some((signed_at - later).to_string());
        let diagnosis = message.at(signed_at - later);
        assert_eq!(diagnosis.causes, [Cause::OtherTimestamp { later }]);
    }
}

#[test]
fn malformed_secrets_are_named_before_guesses() {
    let message = Message {
        secrets: vec![
            "whsec_c2hvcnQ=".to_owned(),
            Secret::generate().reveal().to_string(),
        ],
        ..Message::right()
    };
    let error = signing::SecretError::TooShort(5);
    assert_eq!(
        message.causes(),
        [
            Cause::MalformedSecret { place: 0, error },
            Cause::Unknown { tried: 1 }
        ]
    );
    let none = Message {
        secrets: Vec::new(),
        ..Message::right()
    };
    assert_eq!(none.causes()[0], Cause::NoSecret);
}

#[test]
fn one_of_several_signatures_is_enough() {
    let (old, new) = (Secret::parse(&secret()).unwrap(), Secret::generate());
    let header = signature_header(&[&new, &old], ID, 1_795_254_696, BODY.as_bytes());
    assert!(Message::with_signature(&header).at(NOW).verdict.is_ok());
    let changed = Message {
        body: format!("{BODY}\n").into_bytes(),
        ..Message::with_signature(header)
    };
    assert_eq!(changed.causes(), [Cause::Body(vec![BodyAccident::BlanksAdded])]);
}

#[test]
fn nothing_said_repeats_a_secret_or_a_body() {
    let messages = [
        Message::with_secret(&secret()[..20]),
        Message::with_secret(STANDARD.encode(KEY)),
        Message::with_body(format!("{BODY}\n")),
        Message::with_body("hidden"),
    ];
    for cause in messages.iter().flat_map(Message::causes) {
        let said = format!("{cause} {cause:?} {} {}", cause.mend(), cause.code());
        for hidden in ["+/v7", "whsec_+", "hidden", "example.org", &ID[..10]] {
            assert!(!said.contains(hidden), "{said}");
        }
    }
}

proptest! {
    #[test]
    fn the_verdict_is_that_of_verify_and_a_refusal_has_a_cause(
        body in ".{0,60}", id in "[a-z.]{0,3}", timestamp in "[0-9]{0,11}|x", header in "(v1,)?[A-Za-z0-9+/=, ]{0,60}",
    ) {
        let secret = Secret::parse(&secret()).unwrap();
        let headers = SignedHeaders { id: Some(&id), timestamp: Some(&timestamp), signature: Some(&header) };
        let tolerance = Duration::from_secs(300);
        let wanted = verify(&[&secret], headers, body.as_bytes(), NOW, tolerance);
        let found = Message {
            id: Some(id.clone()), timestamp: Some(timestamp.clone()), signature: Some(header.clone()),
            ..Message::with_body(body)
        }
        .at(NOW);
        prop_assert_eq!(found.verdict.map(|_| ()), wanted);
        prop_assert!(wanted.is_ok() || !found.causes.is_empty());
    }
}
