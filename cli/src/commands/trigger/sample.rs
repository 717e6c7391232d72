//! A notification as Postrider would send it, made of the catalogue and of what is to be different.

use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use event_schema::PayloadSchema;
use reqwest::Url;
use serde_json::{Value, json};
use signing::{Secret, idempotency_key, signature_header};
use uuid::Uuid;

use crate::catalogue::{Catalogue, EventType};
use crate::portal::{Portal, PortalArgs};
use crate::{file, output};

use super::edit::Edit;

const TEST: &str = "postrider.test";
const VERIFICATION: &str = "postrider.verification";
const USER_AGENT: &str = concat!("postrider/", env!("CARGO_PKG_VERSION"));
/// Longest identifier of an event.
const ID_MAX: usize = 128;

/// What kind of notification it is to be.
pub(super) struct Wanted<'a> {
    pub(super) event_type: &'a str,
    pub(super) variant: Option<&'a str>,
    /// A file.
    pub(super) data: Option<&'a str>,
    pub(super) edits: &'a [Edit],
    pub(super) id: Option<&'a str>,
    /// When it happened and is signed.
    pub(super) at: DateTime<Utc>,
}

/// A request that can be sent.
pub(super) struct Sample {
    pub(super) id: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
    /// Of a verification challenge.
    pub(super) challenge: Option<String>,
}

impl Sample {
    /// Makes and signs it; asks the portal only for what is not built in.
    pub(super) async fn make(
        wanted: Wanted<'_>,
        secrets: &[Secret],
        portal: &PortalArgs,
    ) -> anyhow::Result<Self> {
        let id = match wanted.id {
            Some(id) => checked(id)?.to_owned(),
            None => Uuid::now_v7().to_string(),
        };
        let data = data(&wanted, portal).await?;
        let challenge = data["challenge"]
            .as_str()
            .filter(|_| wanted.event_type == VERIFICATION);
        let body = domain::event::body(&id, wanted.event_type, wanted.at, &data.to_string());
        Ok(Self {
            challenge: challenge.map(str::to_owned),
            headers: signed_headers(secrets, &id, wanted.at, &body),
            id,
            body,
        })
    }

    /// For programs: as `postrider listen` has a request that came.
    pub(super) fn document(&self, event_type: &str, to: &Url) -> Value {
        let headers: serde_json::Map<String, Value> = self
            .headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
            .collect();
        json!({
            "method": "POST", "url": to.as_str(), "id": self.id, "type": event_type, "headers": headers, "body": self.body,
        })
    }
}

/// What Postrider sends with a body.
pub(in crate::commands) fn signed_headers(
    secrets: &[Secret],
    id: &str,
    at: DateTime<Utc>,
    body: &str,
) -> Vec<(&'static str, String)> {
    let secrets: Vec<&Secret> = secrets.iter().collect();
    let timestamp = at.timestamp();
    vec![
        ("content-type", "application/json".to_owned()),
        ("user-agent", USER_AGENT.to_owned()),
        (signing::HEADER_ID, id.to_owned()),
        (signing::HEADER_TIMESTAMP, timestamp.to_string()),
        (
            signing::HEADER_SIGNATURE,
            signature_header(&secrets, id, timestamp, body.as_bytes()),
        ),
        ("event-id", id.to_owned()),
        ("idempotency-key", idempotency_key(body.as_bytes())),
    ]
}

/// The identifier becomes a header and a part of what is signed.
fn checked(id: &str) -> anyhow::Result<&str> {
    let is_fit = |character: char| character.is_ascii_alphanumeric() || "-_:".contains(character);
    if id.is_empty() || id.len() > ID_MAX || !id.chars().all(is_fit) {
        bail!(
            "--id {id:?} is no identifier of an event: write 1 to {ID_MAX} letters, digits, -, _ or : (a full stop would make \
             it ambiguous what is signed)"
        );
    }
    Ok(id)
}

async fn data(wanted: &Wanted<'_>, portal: &PortalArgs) -> anyhow::Result<Value> {
    let built_in = match wanted.event_type {
        TEST => Some(json!({"message": "This is a test event."})),
        VERIFICATION => Some(json!({"challenge": challenge()})),
        _ => None,
    };
    let known = match &built_in {
        Some(_) => None,
        None => Some(event_type(wanted.event_type, portal).await?),
    };
    if let (Some(variant), Some(_)) = (wanted.variant, &built_in) {
        bail!(
            "{} has no variants, so none is called {variant:?}; leave --variant out",
            wanted.event_type
        );
    }
    let mut data = match (wanted.data, built_in, &known) {
        (Some(path), ..) => object_of(path)?,
        (None, Some(data), _) => data,
        (None, None, Some(known)) => known.data(wanted.variant)?.clone(),
        (None, None, None) => json!({}),
    };
    for edit in wanted.edits {
        edit.apply(&mut data)?;
    }
    if let Some(known) = &known {
        remark(known, wanted.edits, &data);
    }
    Ok(data)
}

/// 256 bits in hexadecimal, as Postrider makes challenges.
fn challenge() -> String {
    let (first, second): (u128, u128) = (rand::random(), rand::random());
    format!("{first:032x}{second:032x}")
}

async fn event_type(name: &str, portal: &PortalArgs) -> anyhow::Result<EventType> {
    let catalogue = Catalogue::built_in()?;
    match catalogue.find(name) {
        Ok(found) => Ok(found.clone()),
        Err(unknown) if !portal.has_key() => Err(unknown),
        Err(_) => Portal::connect(portal)?.catalogue().await?.find(name).cloned(),
    }
}

fn object_of(path: &str) -> anyhow::Result<Value> {
    let text = file::read(path)?;
    let data: Value = serde_json::from_str(&text).with_context(|| format!("{path} is not JSON"))?;
    if !data.is_object() {
        bail!(
            "{path} holds JSON, but no object; the data of a notification is an object, such as {{\"domain\": {{…}}}}"
        );
    }
    Ok(data)
}

/// A developer who tests an endpoint may send what Postrider never would, but is told.
fn remark(known: &EventType, edits: &[Edit], data: &Value) {
    let names: Vec<&str> = known
        .attributes
        .iter()
        .map(|attribute| attribute.name.as_str())
        .collect();
    for edit in edits {
        let attribute = edit.attribute();
        let is_known = names
            .iter()
            .any(|name| *name == attribute || name.starts_with(&format!("{attribute}.")));
        if !is_known {
            let question = domain::nearest::question(&attribute, names.iter().copied());
            let name = output::harmless(&edit.path());
            output::note(format_args!(
                "note: the catalogue has no attribute {name} of {}{question}",
                known.name
            ));
        }
    }
    let schema = known
        .schema
        .as_ref()
        .and_then(|schema| PayloadSchema::compile_stored(schema).ok());
    for violation in schema.iter().flat_map(|schema| schema.violations(data)) {
        output::note(format_args!(
            "note: Postrider would never send this data: data{} {}",
            output::harmless(&violation.pointer),
            output::harmless(&violation.detail)
        ));
    }
}
