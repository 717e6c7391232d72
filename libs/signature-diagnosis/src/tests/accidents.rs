//! Every accident is made to happen and has to be found.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::*;

#[test]
fn accidents_of_secrets_are_found() {
    let encoded = STANDARD.encode(KEY);
    for (text, wanted) in [
        (format!("\"{}\"", secret()), SecretAccident::Quoted),
        (secret().replacen("+/", "+/\n ", 1), SecretAccident::Blanks),
        (encoded, SecretAccident::NoPrefix),
        (format!("whsec_{}", URL_SAFE.encode(KEY)), SecretAccident::UrlSafe),
        (
            format!("whsec_{}", STANDARD_NO_PAD.encode(KEY)),
            SecretAccident::NoPadding,
        ),
        (format!("whsec_{}", hex::encode(KEY)), SecretAccident::Hexadecimal),
        (hex::encode(KEY), SecretAccident::Hexadecimal),
    ] {
        let accident = wanted;
        let causes = Message::with_secret(&text).causes();
        assert_eq!(causes, [Cause::Secret { place: 0, accident }], "{text:?}");
    }
}

#[test]
fn accidents_of_signatures_are_found() {
    let right = signature(BODY.as_bytes());
    let code = STANDARD.decode(&right[3..]).unwrap();
    for (header, wanted) in [
        (
            format!("v1,{}", hex::encode(&code)),
            SignatureAccident::Hexadecimal,
        ),
        (hex::encode(&code).to_uppercase(), SignatureAccident::Hexadecimal),
        (right[3..].to_owned(), SignatureAccident::NoVersion),
        (right.replace("v1,", "v1="), SignatureAccident::NoVersion),
        (right.replace("v1,", "v2,"), SignatureAccident::NoVersion),
        (
            format!("v1,{}", STANDARD_NO_PAD.encode(&code)),
            SignatureAccident::UrlSafe,
        ),
        (format!("v1,AAAA,{right}"), SignatureAccident::Separator),
    ] {
        let causes = Message::with_signature(&header).causes();
        assert!(causes.contains(&Cause::Signature(wanted)), "{header}: {causes:?}");
    }
    let none = Message::with_signature("v1a,abc v9,def").causes();
    assert_eq!(none[0], Cause::NoSignatures);
}

fn keyed(key: &[u8], content: &str) -> Message {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(content.as_bytes());
    let code: [u8; 32] = mac.finalize().into_bytes().into();
    Message::with_signature(format!("v1,{}", STANDARD.encode(code)))
}

#[test]
fn what_the_signer_did_otherwise_is_found() {
    let content = format!("{ID}.{SIGNED_AT}.{BODY}");
    let text = secret();
    let whole = keyed(text.as_bytes(), &content).causes();
    assert_eq!(whole, [Cause::Key(KeyAccident::WholeText)]);
    let rest = keyed(&text.as_bytes()[6..], &content).causes();
    assert_eq!(rest, [Cause::Key(KeyAccident::TextAfterPrefix)]);
    for (content, wanted) in [
        (BODY.to_owned(), ContentAccident::BodyAlone),
        (format!("{SIGNED_AT}.{BODY}"), ContentAccident::NoId),
        (format!("{SIGNED_AT}.{ID}.{BODY}"), ContentAccident::Swapped),
    ] {
        assert_eq!(keyed(&KEY, &content).causes(), [Cause::Content(wanted)]);
    }
}

#[test]
fn accidents_of_bodies_are_found() {
    use BodyAccident as Accident;
    let utf_16: Vec<u8> = BODY.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let latin_1: String = BODY.bytes().map(char::from).collect();
    for (body, wanted) in [
        (format!("{BODY}\n").into_bytes(), vec![Accident::BlanksAdded]),
        (
            format!("\r\n {BODY}\r\n").into_bytes(),
            vec![Accident::BlanksAdded],
        ),
        (format!("\u{feff}{BODY}").into_bytes(), vec![Accident::MarkAdded]),
        (
            format!("\u{feff}{BODY}\r\n").into_bytes(),
            vec![Accident::BlanksAdded, Accident::MarkAdded],
        ),
        (latin_1.into_bytes(), vec![Accident::ReadAsLatin1]),
        (
            [&[0xff, 0xfe], utf_16.as_slice()].concat(),
            vec![Accident::WrittenAsUtf16],
        ),
        (utf_16, vec![Accident::WrittenAsUtf16]),
        (serde_json::to_vec(BODY).unwrap(), vec![Accident::Quoted]),
        (STANDARD.encode(BODY).into_bytes(), vec![Accident::Base64]),
        (
            BODY.replace("\":", "\": ").replace(",\"", ", \"").into_bytes(),
            vec![Accident::Respaced],
        ),
        (
            BODY.replace('ë', "\\u00eb").into_bytes(),
            vec![Accident::Respaced],
        ),
    ] {
        let shown = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(
            Message::with_body(body).causes(),
            [Cause::Body(wanted)],
            "{shown}"
        );
    }
}

/// The signature of one body with another that came of it.
fn became(sent: &str, arrived: &str) -> Vec<Cause> {
    Message {
        signature: Some(signature(sent.as_bytes())),
        ..Message::with_body(arrived)
    }
    .causes()
}

#[test]
fn line_ends_that_changed_are_found() {
    use BodyAccident as Accident;
    let found = |accidents: &[Accident]| [Cause::Body(accidents.to_vec())];
    assert_eq!(became("{\n}", "{\r\n}"), found(&[Accident::LinesBecameCrLf]));
    assert_eq!(became("{\r\n}", "{\n}"), found(&[Accident::LinesBecameLf]));
    assert_eq!(became("{}\n", "{}"), found(&[Accident::NewlineRemoved]));
}

#[test]
fn json_that_was_written_again_is_found_whichever_library_wrote_it() {
    let sent = r#"{"id":"order-4711-created","type":"domain.created","timestamp":"t","data":{"a": 1, "b": "\u00e9"}}"#;
    let sorted =
        r#"{"data":{"a":1,"b":"é"},"id":"order-4711-created","timestamp":"t","type":"domain.created"}"#;
    assert_eq!(became(sent, sorted), [Cause::Body(vec![BodyAccident::Reordered])]);
    let go = r#"{"id":"order-4711-created","type":"a.b","timestamp":"t","data":{"mail":"\u003ca\u003e"}}"#;
    let plain = go.replace("\\u003c", "<").replace("\\u003e", ">");
    assert_eq!(became(go, &plain), [Cause::Body(vec![BodyAccident::Reescaped])]);
}
