//! `PUT /dead-letters/groups/note`: what is known of a group of dead letters, and who looks after it.

use chrono::{DateTime, Utc};
use http::StatusCode;
use http_api::{FieldCode, FieldProblem, Payload, Problem, ProblemKind};
use serde::Deserialize;
use store::{DeadLetterGroupKey, DeadLetterLane};
use utoipa::ToSchema;

use super::filter::names;
use crate::note;
use crate::request::{Operator, can_be_asked};

/// Longest name of an owner, fingerprint and target, in bytes.
const TEXT_MAX_BYTES: usize = 1_000;

/// What is to be noted of a group.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
#[schema(as = NewDeadLetterGroupNote)]
pub(crate) struct GroupNotePayload {
    /// `push` or `reseller`.
    #[schema(value_type = String, example = "reseller")]
    pub(crate) lane: Option<String>,
    /// What the failures have in common, as a group says it.
    #[schema(value_type = String, example = "delivery/http/503/html")]
    pub(crate) fingerprint: Option<String>,
    /// Where they were, as a group says it; empty or missing when the group's is empty.
    #[schema(example = "https://hooks.acme.example")]
    pub(crate) target: Option<String>,
    /// What is known of it; at most 2,000 bytes.
    #[schema(max_length = 2_000, example = "acme moves its endpoint until Friday.")]
    pub(crate) note: Option<String>,
    /// Who looks after it; at most 1,000 bytes.
    #[schema(max_length = 1_000, example = "ada")]
    pub(crate) owner: Option<String>,
    /// The time until which this holds; for good when missing.
    pub(crate) until: Option<DateTime<Utc>>,
}

/// Notes what is known of a group of dead letters and who looks after it, in place of what was noted before.
///
/// Without `note` and `owner` the note is taken away. Groups show it until `until`.
#[utoipa::path(
    put, path = "/dead-letters/groups/note", tag = "dead letters", operation_id = "noteDeadLetterGroup",
    security(("apiKey" = [])),
    request_body(content = GroupNotePayload, example = json!({
        "lane": "reseller", "fingerprint": "delivery/http/503/html", "target": "https://hooks.acme.example",
        "note": "acme moves its endpoint", "owner": "ada", "until": "2099-12-04T17:00:00Z"
    })),
    responses((status = 204, description = "It is noted."))
)]
pub(crate) async fn put_note(
    operator: Operator,
    Payload(payload): Payload<GroupNotePayload>,
) -> Result<StatusCode, Problem> {
    let note = note::optional(payload.note.as_deref());
    let rest = read(&payload, operator.app.now()).map_err(Problem::fields);
    let (note, (group, owner)) = note::with(note, rest)?;
    let act = operator.act(note);
    let noting = operator
        .app
        .store
        .note_dead_letter_group(&group, (owner, payload.until), &act);
    if http_api::by(operator.deadline, ("the note", "kept"), noting).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    let detail = "no dead letter has this lane, fingerprint and target; GET /dead-letters/groups shows those that there are";
    Err(Problem::new(ProblemKind::CONFLICT, detail))
}

fn read(
    payload: &GroupNotePayload,
    now: DateTime<Utc>,
) -> Result<(DeadLetterGroupKey, Option<&str>), Vec<FieldProblem>> {
    let mut wrong = Vec::new();
    let lane = payload.lane.as_deref().unwrap_or_default().parse().ok();
    if lane.is_none() {
        let lanes = names(&DeadLetterLane::ALL, DeadLetterLane::as_str);
        wrong.push(
            FieldProblem::new("lane", format!("must be one of {lanes}")).coded(FieldCode::UnknownValue),
        );
    }
    let mut text = |name, given: Option<&str>| {
        let text = given.unwrap_or_default();
        if text.len() > TEXT_MAX_BYTES || text.contains('\0') {
            let detail = format!("must be at most {TEXT_MAX_BYTES} bytes, without the character U+0000");
            wrong.push(FieldProblem::new(name, detail).at_most(TEXT_MAX_BYTES));
        }
        text.to_owned()
    };
    let fingerprint = text("fingerprint", payload.fingerprint.as_deref());
    let target = text("target", payload.target.as_deref());
    let owner = payload
        .owner
        .as_deref()
        .map(str::trim)
        .filter(|owner| !owner.is_empty());
    text("owner", owner);
    if fingerprint.is_empty() {
        wrong.push(
            FieldProblem::new("fingerprint", "is needed, as a group says it").coded(FieldCode::Missing),
        );
    }
    if payload
        .until
        .is_some_and(|until| until <= now || !can_be_asked(until))
    {
        let detail = "must be a time that is still to come";
        wrong.push(FieldProblem::new("until", detail).coded(FieldCode::OutOfRange));
    }
    match lane {
        Some(lane) if wrong.is_empty() => {
            let group = DeadLetterGroupKey {
                lane,
                fingerprint,
                target,
            };
            Ok((group, owner))
        }
        _ => Err(wrong),
    }
}
