//! `/console/dead-letters/note`: what is known of a group of dead letters, and who looks after it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use chrono::{DateTime, TimeDelta, Utc};
use http_api::{Payload, Problem, ProblemKind};

use super::{Chosen, cause};
use crate::app::App;
use crate::console::act::{ActForm, Asked};
use crate::console::frame::{Frame, done};
use crate::console::visit::{Fields, onward};
use crate::dead_letters::{self, GroupNotePayload, NoteDocument};
use crate::request::{Operator, Viewer};

/// Words of the address that say which group.
const GROUP: [&str; 3] = ["lane", "fingerprint", "target"];
/// For how long a note holds, in hours and in words.
const HOLDS: [(&str, &str); 4] = [
    ("4", "4 hours"),
    ("24", "1 day"),
    ("168", "7 days"),
    ("672", "28 days"),
];

/// Where the note on a group is changed.
pub(super) fn place(lane: &str, fingerprint: &str, target: &str) -> String {
    let group = [("lane", lane), ("fingerprint", fingerprint), ("target", target)];
    Chosen::default().link("/console/dead-letters/note", &group)
}

/// Where the note leads when it is kept: to the list that it was begun from.
fn back_to(asked: Option<&str>) -> String {
    asked.map_or_else(|| "/console/dead-letters".to_owned(), |back| onward(Some(back)))
}

/// The form, with the note that there is.
fn form(frame: &Frame, note: Option<&NoteDocument>, back: String) -> ActForm {
    let [lane, fingerprint, target] = GROUP.map(|word| frame.asked(word));
    let where_it_was = match target.as_str() {
        "" => String::new(),
        target => format!(" at {target}"),
    };
    let said = [
        format!("The group: {}{where_it_was}, in the lane {lane}.", cause(&fingerprint)),
        "It is shown with the group in place of what was noted before. Without a note and a name it is taken away.".to_owned(),
    ];
    let for_good = (String::new(), "Until it is changed".to_owned());
    let kept = note.and_then(|note| note.until).map(|until| {
        let words = until.format("As it is: until %a %-d %b, %H:%M UTC").to_string();
        (until.to_rfc3339(), words)
    });
    let holds = HOLDS.map(|(hours, words)| (hours.to_owned(), (*words).to_owned()));
    ActForm {
        id: "group".to_owned(),
        title: "Note on the group".to_owned(),
        said: said.into(),
        button: "Keep the note",
        fields: vec![
            Asked {
                name: "owner",
                label: "Who looks after it",
                value: note.and_then(|note| note.owner.clone()).unwrap_or_default(),
                ..Asked::default()
            },
            Asked {
                name: "until",
                label: "It holds for",
                value: kept.iter().map(|(at, _)| at.clone()).collect(),
                choices: kept.into_iter().chain([for_good]).chain(holds).collect(),
                ..Asked::default()
            },
        ],
        typed_note: note.and_then(|note| note.note.clone()).unwrap_or_default(),
        ..ActForm::new(frame, place(&lane, &fingerprint, &target), back)
    }
}

/// The page with the form.
pub(super) async fn ask(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    frame: Frame,
) -> Result<Response, Problem> {
    let [lane, fingerprint, target] = GROUP.map(|word| frame.asked(word));
    let chosen = Chosen::default().with("lane", &lane).with("target", &target);
    let params = chosen
        .with("fingerprint", &fingerprint)
        .params(frame.now, &[("limit", "1000")])
        .await?;
    let found = dead_letters::groups(State(app), viewer, params).await?.0;
    let group = found
        .items
        .into_iter()
        .find(|group| group.lane == lane && group.fingerprint == fingerprint && group.target == target);
    let unknown = || Problem::new(ProblemKind::NOT_FOUND, "no open dead letters are of such a group");
    let group = group.ok_or_else(unknown)?;
    let back = frame.asked("back");
    let back = back_to(Some(&*back).filter(|back| !back.is_empty()));
    Ok(form(&frame, group.note.as_ref(), back).page(frame))
}

/// Until when a note holds: for so many hours, or as long as it did.
fn until(fields: &Fields, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let typed = fields.get("until")?;
    match typed.parse::<u16>() {
        Ok(hours) => Some(now + TimeDelta::hours(hours.into())),
        // What is no time either is in the past for the operation, which says so.
        Err(_) => Some(typed.parse().unwrap_or(DateTime::UNIX_EPOCH)),
    }
}

/// Keeps the note.
pub(super) async fn put(operator: Operator, frame: Frame, fields: Fields) -> Result<Response, Problem> {
    let field = |name| fields.get(name).map(str::to_owned);
    let payload = GroupNotePayload {
        lane: Some(frame.asked("lane")),
        fingerprint: Some(frame.asked("fingerprint")),
        target: Some(frame.asked("target")),
        note: field("note"),
        owner: field("owner"),
        until: until(&fields, frame.now),
    };
    let is_empty = payload.note.is_none() && payload.owner.is_none();
    let back = back_to(fields.get("back"));
    match dead_letters::put_note(operator, Payload(payload)).await {
        Ok(_) if is_empty => Ok(done(&back, "The note on the group was taken away.")),
        Ok(_) => Ok(done(&back, "The note is shown with the group from now on.")),
        Err(problem) => form(&frame, None, back).again(frame, &fields, problem),
    }
}
