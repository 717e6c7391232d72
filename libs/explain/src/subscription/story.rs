//! The story of a subscription: its states, and who paused it, let it go on and set its limits.

use std::iter;

use chrono::TimeDelta;
use serde_json::Value;
use store::AuditView;
use store::webhook::StateEntry;

use super::Describer;
use crate::explanation::{Line, sentence};
use crate::reseller::Sentence;
use crate::words::number;

/// How far apart the times of an act and of the state that it led to may be.
pub const SAME_TIME: TimeDelta = TimeDelta::seconds(1);

impl Describer<'_> {
    pub(super) fn lines(&self) -> Vec<Line> {
        let view = &self.facts.view;
        let text = format!(
            "Made by {}; it sends {} to {}.",
            view.reseller,
            view.event_types.join(", "),
            view.url
        );
        let made = Sentence::new("made", text)
            .with("reseller", &view.reseller)
            .with("eventTypes", &view.event_types)
            .with("url", &view.url);
        let mut lines = vec![Line::new(view.created_at, made)];
        let mut states: Vec<&StateEntry> = self.facts.states.iter().collect();
        states.sort_by_key(|entry| (entry.at, entry.id));
        let before = iter::once(None).chain(states.iter().map(|entry| Some(*entry)));
        lines.extend(states.iter().zip(before).map(|(entry, before)| {
            let act = self.act_of(entry, before);
            let text = sentence(&format!("{}: {}", entry.state, why(entry, before, act)));
            let said = Sentence::new("state", text)
                .with("state", entry.state.to_string())
                .with("paused", entry.paused)
                .with("held", entry.held)
                .with("by", act.map(|act| &act.actor))
                .with("subject", act.map(|act| &act.subject))
                .with("note", act.and_then(|act| act.note.as_ref()));
            Line::new(entry.at, said)
        }));
        let limits = self.facts.acts.iter();
        lines.extend(limits.filter_map(|act| Some(Line::new(act.at, self.limits_set(act)?))));
        let failing = |at| Line::new(at, Sentence::new("failing", "Every attempt has failed since."));
        lines.extend(view.failing_since.map(failing));
        lines.sort_by_key(|line| line.at);
        lines
    }

    /// What an operator did by which a pause of it began or ended, if that is still in the audit log.
    fn act_of(&self, entry: &StateEntry, before: Option<&StateEntry>) -> Option<&AuditView> {
        let before = before.filter(|before| before.held != entry.held)?;
        let did = if before.held { ".resume" } else { ".pause" };
        let apart = |act: &AuditView| (act.at - entry.at).abs();
        let acts = self.facts.acts.iter();
        acts.filter(|act| act.action.ends_with(did) && apart(act) <= SAME_TIME)
            .min_by_key(|act| apart(act))
    }

    /// What an act changed in its limits; nothing of another act.
    fn limits_set(&self, act: &AuditView) -> Option<Sentence> {
        let rules = &self.context.rules;
        // What stayed as it was may be there as null.
        let change_of = |name: &str| act.details.get(name).filter(|change| change.is_object());
        let changed = |name: &str, what: &str, default: Option<u32>| {
            let change = change_of(name)?;
            // Where there was, or is, none of its own, the default holds.
            let limit = |side: &str| {
                let own = change.get(side).and_then(Value::as_u64);
                own.or(default.map(u64::from))
                    .map_or_else(|| "no limit".to_owned(), number)
            };
            Some(format!("{what} from {} to {}", limit("from"), limit("to")))
        };
        let changes = [
            changed("dailyQuota", "its daily quota", Some(rules.daily_quota)),
            changed(
                "requestsPerSecond",
                "its attempts a second",
                rules.requests_per_second,
            ),
        ];
        let changes: Vec<String> = changes.into_iter().flatten().collect();
        if changes.is_empty() {
            return None;
        }
        let text = format!("{} changed {}{}", act.actor, changes.join(" and "), noted(act));
        let said = Sentence::new("limits", sentence(&text))
            .with("by", &act.actor)
            .with("note", &act.note)
            .with("dailyQuota", change_of("dailyQuota"))
            .with("requestsPerSecond", change_of("requestsPerSecond"));
        Some(said)
    }
}

/// Why a subscription came to have a state, and what holds it back besides. What has only begun or ended a pause keeps the reason that the
/// state had before it, which is told already. `act` is what an operator did by which a pause began or ended.
fn why(entry: &StateEntry, before: Option<&StateEntry>, act: Option<&AuditView>) -> String {
    let is_same = |before: &&StateEntry| (before.state, before.reason) == (entry.state, entry.reason);
    let own = if entry.paused {
        "; paused by its reseller"
    } else {
        ""
    };
    let held = if entry.held { "; paused by an operator" } else { "" };
    let operator = act.map_or("an operator", |act| act.actor.as_str());
    let of_reseller = act.is_some_and(|act| act.subject.starts_with("reseller/"));
    let what = if of_reseller { "all of its reseller" } else { "it" };
    let note = act.map_or_else(String::new, noted);
    match before.filter(is_same) {
        Some(before) if before.paused && !entry.paused => format!("its reseller let it go on{held}"),
        Some(before) if before.held && !entry.held => format!("{operator} let {what} go on{note}{own}"),
        Some(before) if !before.paused && entry.paused => format!("its reseller paused it{held}"),
        Some(before) if !before.held && entry.held => format!("{operator} paused {what}{note}{own}"),
        _ => format!("{}{own}{held}", entry.reason.said()),
    }
}

/// Why an act was done, as the end of a sentence.
fn noted(act: &AuditView) -> String {
    let note = act.note.as_deref().unwrap_or_default().trim_end_matches('.');
    if note.is_empty() {
        String::new()
    } else {
        format!(": {note}")
    }
}
