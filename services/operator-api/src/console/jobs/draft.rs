//! A job as it was typed: what it is about and how it goes, from an address or from a form.

use chrono::{DateTime, Utc};
use http_api::{FieldProblem, Problem};
use serde_json::{Value, json};
use url::form_urlencoded;
use uuid::Uuid;

use super::ids::identifiers;
use crate::console::dead_letters::Chosen;
use crate::console::frame::Frame;
use crate::console::visit::Fields;
use crate::note;

/// Fields of a job that hold a number, as the API calls them.
pub(super) const NUMBERS: [&str; 4] = ["perSecond", "limit", "canary", "pauseAbove"];
/// Most identifiers in an address: as many as a page of the list has at most.
const IDS_IN_ADDRESS: usize = 200;

/// A job as it was typed.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// `replay` or `discard`.
    pub(super) action: String,
    /// Dead letters that were chosen one by one; if there are none, the filter counts.
    pub(super) ids: Vec<String>,
    /// Whether it comes from a list in which they are chosen: without any of them it is about nothing, not about the filter.
    pub(super) from_list: bool,
    pub(super) chosen: Chosen,
    /// Whether a filter that restricts nothing is meant to.
    pub(super) all: bool,
    pub(super) numbers: Vec<(&'static str, String)>,
    /// Which come first: `newest`, or `oldest` where it is empty.
    pub(super) order: String,
    pub(super) note: String,
    /// The identifier that the job gets, from the form: sent twice, it makes one job.
    pub(super) job: Option<Uuid>,
    /// Whether it was typed into the form, so that nothing is suggested any more.
    pub(super) is_typed: bool,
}

impl Draft {
    pub(super) fn asked(frame: &Frame) -> Self {
        let query = frame.address.split_once('?').map_or("", |(_, query)| query);
        let pairs = form_urlencoded::parse(query.as_bytes()).into_owned();
        let own: Vec<_> = NUMBERS
            .into_iter()
            .chain(["action", "id", "chosen", "all", "note", "order"])
            .collect();
        Self {
            action: frame.asked("action"),
            ids: pairs.filter(|(name, _)| name == "id").map(|(_, id)| id).collect(),
            from_list: !frame.asked("chosen").is_empty(),
            chosen: Chosen::asked(frame, &own),
            all: frame.asked("all") == "1",
            numbers: NUMBERS.map(|name| (name, frame.asked(name))).into(),
            order: frame.asked("order"),
            note: frame.asked("note"),
            job: None,
            is_typed: false,
        }
    }

    pub(super) fn written(fields: &Fields) -> Self {
        let field = |name: &str| fields.get(name).unwrap_or_default().to_owned();
        Self {
            action: field("action"),
            ids: [
                fields.all("id"),
                identifiers(fields.get("ids").unwrap_or_default()),
            ]
            .concat(),
            from_list: fields.get("chosen").is_some(),
            chosen: Chosen::written(|name| fields.all(name).into_iter().next()),
            all: fields.get("all") == Some("1"),
            numbers: NUMBERS.map(|name| (name, field(name))).into(),
            order: field("order"),
            note: field("note"),
            job: field("job").parse().ok(),
            is_typed: true,
        }
    }

    /// The same from a form that chooses and has no numbers, so that they are suggested.
    pub(super) fn untyped(self) -> Self {
        Self {
            is_typed: false,
            ..self
        }
    }

    /// Refuses what is none of the acts.
    pub(super) fn checked_action(&self) -> Result<(), Problem> {
        match &*self.action {
            "replay" | "discard" => Ok(()),
            _ => Err(Problem::query("action", "must be replay or discard")),
        }
    }

    /// Refuses what says nothing of which dead letters are meant: left out by mistake, it would be about all of them.
    pub(super) fn meant(&self) -> Result<(), Problem> {
        let (field, detail) = match (self.ids.is_empty(), self.from_list) {
            (true, true) => (
                "id",
                "is needed: go back to the list and select one dead letter at least",
            ),
            (true, false) if self.chosen.is_empty() && !self.all => (
                "all",
                "must be 1 if every open dead letter is meant; otherwise give a filter or identifiers",
            ),
            _ => return Ok(()),
        };
        Err(Problem::fields(vec![FieldProblem::new(field, detail)]))
    }

    /// Where its form stands.
    pub(super) fn address(&self) -> String {
        let ids = self.ids.iter().map(|id| ("id", id.as_str()));
        let own = [
            ("action", self.action.as_str()),
            ("chosen", if self.from_list { "ids" } else { "" }),
            ("all", if self.all { "1" } else { "" }),
        ];
        let pairs: Vec<_> = own.into_iter().chain(ids).collect();
        self.chosen.link("/console/jobs/new", &pairs)
    }

    /// Where a person comes back to once it has shown who it is: its form, or the list if it is about more than an address holds.
    pub(super) fn place(&self) -> String {
        if self.ids.len() <= IDS_IN_ADDRESS {
            self.typed_address()
        } else {
            "/console/dead-letters/list".to_owned()
        }
    }

    /// Where its form stands, with the numbers and the order that were typed into it.
    fn typed_address(&self) -> String {
        let typed = self.numbers.iter().map(|(name, typed)| (*name, typed.as_str()));
        let typed = typed.chain([("order", self.order.as_str())]);
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(typed.filter(|(_, value)| !value.is_empty()))
            .finish();
        match query.is_empty() {
            true => self.address(),
            false => format!("{}&{query}", self.address()),
        }
    }

    /// How many of those that match it looks at.
    pub(super) fn about(&self, matching: u64) -> u64 {
        let limit = self.number("limit").parse().unwrap_or(u64::MAX);
        matching.min(limit)
    }

    /// A number as it was typed.
    pub(super) fn number(&self, name: &str) -> &str {
        let found = self.numbers.iter().find(|(key, _)| *key == name);
        found.map_or("", |(_, value)| value)
    }

    /// The body of the request that only counts.
    pub(super) fn body(&self, now: DateTime<Utc>) -> Result<Value, Problem> {
        self.meant()?;
        let mut body = json!({"action": self.action});
        if self.ids.is_empty() {
            body["filter"] = self.chosen.body(now);
        } else {
            body["ids"] = json!(self.ids);
        }
        Ok(body)
    }

    /// The body of the request that makes the job, with all that was typed.
    pub(super) fn whole_body(&self, now: DateTime<Utc>) -> Result<Value, Problem> {
        let mut body = self.body(now)?;
        let note = if self.action == "discard" {
            note::required(Some(&self.note)).map(Some)
        } else {
            note::optional(Some(&self.note))
        };
        let mut wrong = Vec::new();
        match note {
            Ok(Some(note)) => body["note"] = json!(note),
            Ok(None) => {}
            Err(problem) => wrong.extend_from_slice(problem.errors()),
        }
        if let Some(job) = self.job {
            body["id"] = json!(job);
        }
        if !self.order.is_empty() {
            body["order"] = json!(self.order);
        }
        for (name, typed) in self.numbers.iter().filter(|(_, typed)| !typed.is_empty()) {
            match typed.parse::<i64>() {
                Ok(number) => body[*name] = json!(number),
                Err(_) => wrong.push(FieldProblem::new(*name, "must be a number")),
            }
        }
        if wrong.is_empty() {
            Ok(body)
        } else {
            Err(Problem::fields(wrong))
        }
    }
}
