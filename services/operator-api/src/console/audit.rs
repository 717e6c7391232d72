//! `/console/audit`: who did what to what, when and why.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use chrono::{DateTime, Utc};
use http_api::paging::List;
use http_api::{Params, Problem, ReadParams};
use serde_json::Value;
use store::AuditView;
use uuid::Uuid;

use super::export::{self, Column};
use super::frame::{Frame, Page, name_of, see_other, segment};
use super::resellers::{place_of_reseller, quoted, tail};
use super::times;
use crate::app::App;
use crate::audit::{self, AuditParams};
use crate::request::Viewer;

const HERE: &str = "/console/audit";
/// What restricts the list, as the API and the command line call it.
const FILTERS: [&str; 7] = [
    "actor", "action", "without", "subject", "reseller", "since", "until",
];
/// Most facts of an entry that are shown; the rest is counted.
const FACTS_MAX: usize = 24;
/// Actions that are offered to choose from, by the things that they are done to; others are found by what an entry links.
const ACTIONS: [(&str, &str); 18] = [
    ("dead-letter", "Dead letters"),
    ("dead-letter-group", "Notes on groups"),
    ("dead-letter-job", "Jobs"),
    ("lane", "Lanes"),
    ("reseller", "Resellers"),
    ("subscription", "Subscriptions"),
    ("quota", "Quotas"),
    ("secret", "Signing secrets"),
    ("replay", "Replays of resellers"),
    ("notification", "Notifications"),
    ("push", "Pushes"),
    ("mails", "Mails"),
    ("rescue", "Rescues"),
    ("broker", "The broker"),
    ("event-type", "Event types"),
    ("api-key", "API keys"),
    ("visit", "Visits"),
    ("portal-link", "Links to dashboards"),
];

/// The pages.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(HERE, get(page))
        .route("/console/audit/export", get(export))
}

/// An entry, and what its details say, one by one.
struct Entry {
    view: AuditView,
    /// The page about its subject.
    place: Option<String>,
    facts: Vec<(String, String)>,
    /// How many facts are not shown.
    more: usize,
}

impl Entry {
    fn of(view: AuditView) -> Self {
        let mut facts = Vec::new();
        tell(&mut facts, String::new(), &view.details);
        let more = facts.len().saturating_sub(FACTS_MAX);
        facts.truncate(FACTS_MAX);
        Self {
            place: place(&view.subject),
            view,
            facts,
            more,
        }
    }

    fn name(&self) -> &str {
        name_of(&self.view.actor)
    }

    fn subject(&self) -> String {
        short(&self.view.subject)
    }
}

/// Writes what a value says, one fact a line, each with the way that leads to it.
fn tell(facts: &mut Vec<(String, String)>, name: String, value: &Value) {
    let below = |key: &str| {
        if name.is_empty() {
            key.to_owned()
        } else {
            format!("{name}.{key}")
        }
    };
    match value {
        Value::Null => {}
        Value::Object(fields) if is_change(value) => {
            let of = |field: &str| fields.get(field).map_or(String::new(), plain);
            facts.push((name, format!("{} → {}", of("from"), of("to"))));
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                tell(facts, below(key), value);
            }
        }
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            let shown: Vec<_> = items.iter().take(FACTS_MAX).map(plain).collect();
            let more = items.len() - shown.len();
            let rest = if more == 0 {
                String::new()
            } else {
                format!(" and {more} more")
            };
            facts.push((name, format!("{}{rest}", shown.join(", "))));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                tell(facts, below(&(index + 1).to_string()), item);
            }
        }
        scalar => facts.push((name, plain(scalar))),
    }
}

/// Whether a value says what something was and what it is.
fn is_change(value: &Value) -> bool {
    let fields = value.as_object();
    fields.is_some_and(|fields| {
        fields.len() == 2
            && ["from", "to"]
                .iter()
                .all(|name| fields.get(*name).is_some_and(|it| !it.is_object()))
    })
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A subject; of one that has an identifier its end alone, as lists have it.
fn short(subject: &str) -> String {
    let parts = subject.split_once('/');
    let parts = parts.and_then(|(kind, name)| Some((kind, Uuid::parse_str(name).ok()?)));
    parts.map_or_else(
        || subject.to_owned(),
        |(kind, id)| format!("{kind}/…{}", tail(&id)),
    )
}

/// The page about a subject.
fn place(subject: &str) -> Option<String> {
    let (kind, name) = subject.split_once('/').unwrap_or((subject, ""));
    Some(match kind {
        "subscription" => format!("/console/subscriptions/{}", segment(name)),
        "reseller" => place_of_reseller(name),
        "lane" => format!("/console/lanes#{}", segment(name)),
        "push" | "notification" | "event" => format!("/console/explain/{}", segment(name)),
        "dead-letter" => format!("/console/dead-letters/{}", segment(name)),
        "dead-letter-job" => format!("/console/jobs/{}", segment(name)),
        "leases" | "broker" => "/console/system".to_owned(),
        "mails" => "/console/mails".to_owned(),
        "api-key" => "/console/access".to_owned(),
        _ => return None,
    })
}

#[derive(Template)]
#[template(path = "audit.html")]
struct Audit {
    frame: Frame,
    entries: Vec<Entry>,
    next: Option<String>,
}

impl Audit {
    fn actions(&self) -> &'static [(&'static str, &'static str)] {
        &ACTIONS
    }

    /// Where the list is as a file.
    fn file(&self, format: &str) -> String {
        export::link(&self.frame, "/console/audit/export", format)
    }

    fn is_filtered(&self) -> bool {
        FILTERS.iter().any(|name| !self.frame.asked(name).is_empty())
    }

    /// Whether the action that is asked for is none of those to choose from.
    fn is_other_action(&self) -> bool {
        let asked = self.frame.asked("action");
        !asked.is_empty() && !ACTIONS.iter().any(|(action, _)| *action == asked)
    }

    /// A time of the address, as the field of a form takes it: in the viewer's zone, without naming it.
    fn local(&self, name: &str) -> String {
        let asked = self.frame.asked(name);
        let at = asked.parse::<DateTime<Utc>>().ok();
        at.map_or(asked, |at| self.frame.local(at))
    }

    /// The command that shows the same; without any filter, the entries of a day.
    fn command(&self) -> String {
        let mut command = "postrider audit".to_owned();
        for name in FILTERS {
            let asked = self.frame.asked(name);
            if !asked.is_empty() {
                command.push_str(&format!(" --{name} {}", quoted(&asked)));
            }
        }
        if !self.is_filtered() {
            command.push_str(" --newer-than 1d");
        }
        command
    }

    /// This list alone, with one parameter and no other.
    fn only(&self, name: &str, value: impl AsRef<str>) -> String {
        format!("{HERE}?{name}={}", segment(value))
    }
}

/// What a file of entries has.
const COLUMNS: [Column; 7] = [
    ("id", "/id"),
    ("at", "/at"),
    ("actor", "/actor"),
    ("action", "/action"),
    ("subject", "/subject"),
    ("note", "/note"),
    ("details", "/details"),
];

/// The list as a file.
async fn export(State(app): State<Arc<App>>, _: Viewer, frame: Frame) -> Result<Response, Problem> {
    export::list(app, &frame, ("audit", &COLUMNS), audit::list).await
}

async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    mut frame: Frame,
    asked: Result<Params<AuditParams>, Problem>,
) -> Result<Response, Problem> {
    if let Some(address) = times::with_zones(&frame) {
        return Ok(see_other(&address));
    }
    let list = match times::check(&frame).and(asked) {
        Ok(Params(params)) => {
            let list = audit::list(State(app), viewer, ReadParams::of(params)).await;
            list.map(|list| list.0)
        }
        Err(problem) => Err(problem),
    };
    let list: Option<List<AuditView>> = frame.filtered(list, &FILTERS)?;
    let list = list.unwrap_or_else(|| List::new(Vec::new(), None));
    let entries = list.items.into_iter().map(Entry::of).collect();
    let status = frame.list_status();
    let page = Page(Audit {
        frame,
        entries,
        next: list.next,
    });
    Ok((status, page).into_response())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn details_are_told_one_by_one() {
        let mut facts = Vec::new();
        let details = json!({
            "endpoint": {"from": "https://a.example", "to": "https://b.example"}, "fields": ["url", "email"],
            "filter": {"lane": "push", "since": null}, "granted": 4,
        });
        tell(&mut facts, String::new(), &details);
        let facts: Vec<_> = facts
            .iter()
            .map(|(name, text)| format!("{name}: {text}"))
            .collect();
        assert_eq!(
            facts,
            [
                "endpoint: https://a.example → https://b.example",
                "fields: url, email",
                "filter.lane: push",
                "granted: 4"
            ]
        );
    }

    #[test]
    fn a_long_list_is_cut_and_the_rest_counted() {
        let mut facts = Vec::new();
        tell(&mut facts, "ids".to_owned(), &json!(vec![1; FACTS_MAX + 9]));
        assert_eq!(facts.len(), 1);
        assert!(facts[0].1.ends_with(" and 9 more"), "{facts:?}");
    }

    #[test]
    fn a_subject_with_an_identifier_is_told_by_its_end() {
        let id = "subscription/01a22a18-3dfc-7692-8ad6-36ebcb3a421a";
        assert_eq!(short(id), "subscription/…36ebcb3a421a");
        assert_eq!(short("lane/push"), "lane/push");
        assert_eq!(short("mails"), "mails");
    }

    #[test]
    fn a_subject_leads_to_its_page() {
        assert_eq!(
            place("reseller/a b/c").as_deref(),
            Some("/console/resellers/a%20b%2Fc")
        );
        assert_eq!(place("mails").as_deref(), Some("/console/mails"));
        assert_eq!(place("event-type/domain.created"), None);
    }
}
