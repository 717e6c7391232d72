//! The file of vectors is up to date, and this crate agrees with every line of it.

use std::path::PathBuf;

use signing::{Secret, idempotency_key, signature_header};

use crate::vector::{SecretVector, Vectors};
use crate::{cases, messages, notifications};

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../sdks/vectors.json")
}

pub(crate) fn text() -> String {
    std::fs::read_to_string(path()).expect("sdks/vectors.json exists")
}

fn read() -> Vectors {
    serde_json::from_str(&text()).expect("sdks/vectors.json has the documented format")
}

fn made() -> String {
    let vectors = Vectors {
        format: 2,
        about: "Vectors for the signatures of Postrider's webhooks. See README.md in this folder.".to_owned(),
        secrets: cases::secrets(),
        sign: cases::sign(),
        verify: messages::verify(),
        notifications: notifications::all(),
    };
    let mut text = serde_json::to_string_pretty(&vectors).expect("vectors can be written as JSON");
    text.push('\n');
    text
}

/// Regenerate with `UPDATE_VECTORS=1 cargo test -p signing vectors_file`.
#[test]
fn vectors_file_is_up_to_date() {
    let made = made();
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        std::fs::write(path(), &made).expect("the folder can be written to");
    }
    assert_eq!(text(), made, "regenerate it with UPDATE_VECTORS=1");
}

#[test]
fn every_secret_is_read_as_the_file_says() {
    for wanted in read().secrets {
        assert_eq!(SecretVector::of(&wanted.name, &wanted.secret), wanted);
        assert!(
            wanted.key_hex.is_some() != wanted.error.is_some(),
            "{}",
            wanted.name
        );
    }
}

#[test]
fn every_signature_of_the_file_is_made() {
    for vector in read().sign {
        let secrets: Vec<_> = vector
            .secrets
            .iter()
            .map(|text| Secret::parse(text).unwrap())
            .collect();
        let body = vector.body.bytes();
        let secrets: Vec<_> = secrets.iter().collect();
        let signature = signature_header(&secrets, &vector.id, vector.timestamp, &body);
        assert_eq!(signature, vector.signature, "{}", vector.name);
        assert_eq!(idempotency_key(&body), vector.idempotency_key, "{}", vector.name);
    }
}

#[test]
fn every_message_of_the_file_gets_its_verdict() {
    for vector in read().verify {
        assert_eq!(vector.verdict(), vector.result, "{}", vector.name);
    }
}

#[test]
fn every_notification_of_the_file_is_read_or_refused() {
    for vector in read().notifications {
        assert_eq!(vector.outcome(), vector.wanted(), "{}", vector.name);
        let is_read = vector.notification.is_some();
        assert_eq!(is_read, vector.result == "ok", "{}", vector.name);
    }
}

#[test]
fn no_two_vectors_of_a_section_have_one_name() {
    let Vectors {
        secrets,
        sign,
        verify,
        notifications,
        ..
    } = read();
    for mut names in [
        secrets.into_iter().map(|vector| vector.name).collect::<Vec<_>>(),
        sign.into_iter().map(|vector| vector.name).collect(),
        verify.into_iter().map(|vector| vector.name).collect(),
        notifications.into_iter().map(|vector| vector.name).collect(),
    ] {
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    }
}

#[test]
fn the_public_vector_is_in_the_file_as_it_was_published() {
    let vectors = read();
    let public = vectors
        .sign
        .iter()
        .find(|vector| vector.id == "msg_p5jXN8AQM9LWM0D4loKWxJek");
    let public = public.expect("it is there");
    assert_eq!(public.secrets, [cases::PUBLIC_SECRET]);
    assert_eq!(public.timestamp, 1_614_265_330);
    assert_eq!(public.body.bytes(), br#"{"test": 2432232314}"#);
    assert_eq!(
        public.signature,
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    );
}

#[test]
fn every_kind_of_verdict_is_in_the_file() {
    let found: std::collections::BTreeSet<_> =
        read().verify.into_iter().map(|vector| vector.result).collect();
    let wanted = [
        "ambiguous_id",
        "bad_timestamp",
        "missing_header",
        "no_match",
        "ok",
        "too_new",
        "too_old",
    ];
    assert_eq!(found, wanted.map(str::to_owned).into());
}
