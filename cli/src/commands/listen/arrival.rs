//! One request as it is shown.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

use crate::{diagnosis, output, pretty};
use signature_diagnosis::Diagnosis;

/// Headers that say nothing about the notification. Programs get them all the same.
const DULL: [&str; 6] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "host",
    "transfer-encoding",
];

/// A request and what is thought of it.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) number: u64,
    pub(super) at: DateTime<Utc>,
    /// With the query.
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) diagnosis: Diagnosis,
    /// What is wrong with a body whose signature is right.
    pub(super) bad_body: Option<signing::BodyError>,
    /// `webhook-id`, and the type in the body; empty when there is none.
    pub(super) id: String,
    pub(super) event_type: String,
}

/// What was done about it.
#[derive(Debug)]
pub(super) struct Reaction {
    pub(super) status: u16,
    /// Whether it was a verification challenge.
    pub(super) challenge: bool,
    /// Where it was handed on to, and why that failed if it did.
    pub(super) forwarded: Option<(String, Option<String>)>,
}

impl Arrival {
    /// Whether the signature is right and the body is a notification.
    pub(super) fn is_accepted(&self) -> bool {
        self.diagnosis.verdict.is_ok() && self.bad_body.is_none()
    }

    pub(super) fn verdict(&self) -> &'static str {
        match self.bad_body {
            Some(_) => "bad_body",
            None => diagnosis::verdict(&self.diagnosis),
        }
    }

    /// For people.
    pub(super) fn text(&self, reaction: &Reaction) -> String {
        let verdict = if self.is_accepted() {
            "verified".to_owned()
        } else {
            format!("NOT VERIFIED ({})", self.verdict())
        };
        let or_dash = |text: &str| {
            if text.is_empty() {
                "-".to_owned()
            } else {
                output::harmless(text)
            }
        };
        let mut blocks = vec![format!(
            "{}  {verdict}  {}  {}  POST {}  {}",
            self.at.format("%H:%M:%S%.3fZ"),
            or_dash(&self.event_type),
            or_dash(&self.id),
            output::harmless(&self.path),
            reaction.text(),
        )];
        blocks.extend(self.bad_body.map(|error| {
            format!("  why: the signature is right, but {error}\n  do:  tell the one who signed it; Postrider sends no such body")
        }));
        blocks.push(diagnosis::lines(&self.diagnosis.causes));
        let headers: Vec<String> = self
            .headers()
            .into_iter()
            .filter(|(name, _)| !DULL.contains(&name.as_str()))
            .map(|(name, value)| format!("    {name}: {}", output::harmless(&value)))
            .collect();
        blocks.push(headers.join("\n"));
        blocks.push(match self.body.len() {
            0 => "    (no body)".to_owned(),
            _ => pretty::indented(&pretty::json(&String::from_utf8_lossy(&self.body))),
        });
        blocks.retain(|block| !block.is_empty());
        blocks.join("\n")
    }

    /// For programs.
    pub(super) fn json(&self, reaction: &Reaction) -> Value {
        let mut line = json!({
            "number": self.number,
            "receivedAt": self.at.to_rfc3339_opts(SecondsFormat::Millis, true),
            "path": self.path,
            "verdict": self.verdict(),
            "secret": self.diagnosis.verdict.ok().map(|signed| signed.secret + 1),
            "causes": diagnosis::causes(&self.diagnosis.causes),
            "id": self.id,
            "type": self.event_type,
            "headers": self.headers(),
            "body": String::from_utf8_lossy(&self.body),
            "status": reaction.status,
            "challenge": reaction.challenge,
        });
        if std::str::from_utf8(&self.body).is_err() {
            line["bodyBase64"] = STANDARD.encode(&self.body).into();
        }
        if let Some((url, error)) = &reaction.forwarded {
            line["forwarded"] = json!({"url": url, "error": error});
        }
        line
    }

    /// By name; values of one that came repeatedly are joined with a comma.
    fn headers(&self) -> BTreeMap<String, String> {
        let mut read = BTreeMap::<String, String>::new();
        for (name, value) in &self.headers {
            let value = String::from_utf8_lossy(value.as_bytes());
            read.entry(name.to_string())
                .and_modify(|values| {
                    values.push_str(", ");
                    values.push_str(&value);
                })
                .or_insert_with(|| value.clone().into_owned());
        }
        read
    }
}

impl Reaction {
    fn text(&self) -> String {
        let challenge = if self.challenge { "  challenge met" } else { "" };
        match &self.forwarded {
            None => format!("answered {}{challenge}", self.status),
            Some((url, None)) => format!("{url} answered {}", self.status),
            Some((_, Some(error))) => format!("answered {}: {}", self.status, output::harmless(error)),
        }
    }
}
