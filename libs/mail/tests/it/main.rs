//! What mails say, and how they reach a mail server.

#![allow(
    clippy::unwrap_used,
    reason = "what the tests are built of fails like the tests themselves"
)]

mod sending;
mod settings;
mod wording;

use chrono::{DateTime, Utc};
use domain::email::EmailKind;
use mail::StoredMail;
use serde_json::{Value, json};
use uuid::Uuid;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// A letter with the facts that every kind has, and `data` besides.
fn letter(kind: EmailKind, data: &Value) -> StoredMail {
    let mut all = json!({
        "url": "https://hooks.example.org/postrider?tenant=7",
        "description": "Billing <main>",
        "resellerId": "acme",
    });
    for (name, value) in data.as_object().unwrap() {
        all[name] = value.clone();
    }
    StoredMail {
        id: Uuid::from_u128(0x0193_4c5e_0000_7000_8000_0000_0000_0001),
        kind,
        subscription_id: Uuid::from_u128(0x0193_4c5e_0000_7000_8000_0000_0000_0002),
        recipient: "ops@example.org".to_owned(),
        data: all,
        occurrences: 1,
        created_at: at("2026-11-21T08:45:10Z"),
    }
}

fn change(state: &str, previous: &str, reason: &str) -> StoredMail {
    let data = json!({ "state": state, "previous": previous, "reason": reason });
    letter(EmailKind::StateChanged, &data)
}
