//! `sign` and `verify`: what goes wrong on the way, and what is said of it.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use super::SECRET;
use crate::postrider::{Finished, postrider};

const BODY: &str = r#"{"test": 2432232314}"#;
const HEXADECIMAL: &str = "whsec_31f290f6bf06298aab4f08d43c3f082cf648a362da2da4b0";

/// A body and a secret that are not quite the right ones, and what is said of them.
const ACCIDENTS: [(&str, &str, &str, &str); 8] = [
    (
        r#"{"test":2432232314}"#,
        SECRET,
        "reserialised_body",
        "other blanks",
    ),
    ("{\"test\": 2432232314}\n", SECRET, "altered_body", "a line end"),
    (
        "\u{feff}{\"test\": 2432232314}",
        SECRET,
        "altered_body",
        "byte order mark",
    ),
    ("", SECRET, "altered_body", "empty"),
    (
        r#"{"test": 2}"#,
        SECRET,
        "wrong_secret_or_altered_body",
        "either the secret",
    ),
    (BODY, HEXADECIMAL, "malformed_secret", "hexadecimal"),
    (
        BODY,
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "malformed_secret",
        "lacks whsec_",
    ),
    (
        BODY,
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        "malformed_secret",
        "not base64",
    ),
];

fn file(folder: &TempDir, name: &str, content: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, content).expect("it can be written");
    path
}

fn verify(path: &Path, arguments: &str) -> Finished {
    postrider(&format!("verify --at recorded {arguments}"))
        .arg("--request")
        .arg(path.to_str().expect("text"))
        .run()
}

/// A request with this body and the signature of the public vector.
fn request(body: &[u8]) -> Vec<u8> {
    let head = "POST /hook HTTP/1.1\r\nWebhook-Id: msg_p5jXN8AQM9LWM0D4loKWxJek\r\nwebhook-timestamp: 1614265330\r\n\
                webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=\r\n\r\n";
    [head.as_bytes(), body].concat()
}

#[test]
fn signatures_are_those_of_the_public_vector() {
    let folder = tempfile::tempdir().expect("a folder");
    let body = file(&folder, "body", BODY.as_bytes());
    let call = |options: &str| {
        postrider(&format!(
            "sign --id msg_p5jXN8AQM9LWM0D4loKWxJek --timestamp 1614265330 {options}"
        ))
        .arg(body.to_str().expect("text"))
        .env("SIGNING_SECRET", SECRET)
        .run()
    };
    let wanted = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    assert_eq!(call("--signature-only").stdout, format!("{wanted}\n"));
    let headers = call("").stdout;
    assert!(
        headers.contains(&format!("\nwebhook-signature: {wanted}\n")),
        "{headers}"
    );
    let document: Value = serde_json::from_str(&call("--json").stdout).expect("JSON");
    assert_eq!(document["webhook-signature"], wanted);
    let nameless = postrider("sign")
        .arg(body.to_str().expect("text"))
        .env("SIGNING_SECRET", SECRET)
        .run();
    assert!(nameless.stderr.contains("give one with --id"), "{nameless:?}");
}

#[test]
fn a_right_request_is_verified_and_its_secret_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let saved = file(&folder, "request", &request(BODY.as_bytes()));
    let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let secrets = file(
        &folder,
        "secrets",
        format!("# old\n{other}\n\n{SECRET}\n").as_bytes(),
    );
    let found = verify(&saved, &format!("--secrets-file {}", secrets.display()));
    assert_eq!(found.code, Some(0), "{found:?}");
    assert_eq!(
        found.stdout,
        "verified: msg_p5jXN8AQM9LWM0D4loKWxJek, signed 2021-02-25T15:02:10Z, with secret 2 of 2\n"
    );
    let stale = postrider(&format!("verify --secret {SECRET} --request {}", saved.display())).run();
    assert_eq!(stale.code, Some(1));
    assert!(
        stale
            .stdout
            .starts_with("NOT VERIFIED (too_old)\n  why: the message was signed "),
        "{stale:?}"
    );
    assert!(stale.stdout.contains("everything else is right"), "{stale:?}");
}

#[test]
fn it_is_said_why_a_request_is_not_verified() {
    let folder = tempfile::tempdir().expect("a folder");
    for (body, secret, code, part) in ACCIDENTS {
        let saved = file(&folder, "request", &request(body.as_bytes()));
        let found = verify(&saved, &format!("--json --secret {secret}"));
        assert_eq!(found.code, Some(1), "{found:?}");
        let document: Value = serde_json::from_str(&found.stdout).expect("JSON");
        let cause = &document["causes"][0];
        assert_eq!(
            (&document["verdict"], &cause["code"]),
            (&"no_match".into(), &code.into()),
            "{body}"
        );
        assert!(
            cause["text"].as_str().is_some_and(|text| text.contains(part)),
            "{cause}"
        );
        assert!(!found.stdout.contains("MfKQ"), "{}", found.stdout);
    }
}

#[test]
fn headers_are_taken_from_the_command_line_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let body = file(&folder, "body", BODY.as_bytes());
    let call = |signature: &str| {
        postrider(&format!("verify --at recorded --secret {SECRET}"))
            .arg(body.to_str().expect("text"))
            .arg("-H")
            .arg("HTTP_WEBHOOK_ID: msg_p5jXN8AQM9LWM0D4loKWxJek")
            .arg("-H")
            .arg("webhook-timestamp: 1614265330")
            .arg("-H")
            .arg(signature)
            .run()
    };
    assert_eq!(
        call("webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=").code,
        Some(0)
    );
    let bare = call("webhook-signature: g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    assert!(bare.stdout.contains("does not stand after \"v1,\""), "{bare:?}");
    let none = call("x-other: 1");
    assert!(
        none.stdout.starts_with("NOT VERIFIED (missing_header)"),
        "{none:?}"
    );
}
