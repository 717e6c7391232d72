//! What a run tells: a short table when it has passed; everything that leads to the cause when it has failed.

mod story;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;

use crate::run::{InjectionResult, Round};
use crate::verdict::{Tally, Violation};

/// Violations that are printed; all of them are in the file.
const PRINTED: usize = 20;
/// Items whose story is printed.
const STORIES: usize = 5;

/// The table of a round.
pub fn table(round: &Round) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["", "pushes", "notifications"]);
    let (pushes, notifications) = (&round.verdict.pushes, &round.verdict.notifications);
    let mut row = |name: &str, of: fn(&Tally) -> usize| {
        table.add_row([
            name.to_owned(),
            of(pushes).to_string(),
            of(notifications).to_string(),
        ]);
    };
    row("stored", |tally| tally.stored);
    row("… of which no caller had an answer", |tally| tally.unanswered);
    row("sent", |tally| tally.sent);
    row("failed", |tally| tally.failed);
    row("given up", |tally| tally.given_up);
    row("waiting for the quota of another day", |tally| tally.over_quota);
    row("attempts", |tally| tally.attempts);
    row("… whose claim ran out", |tally| tally.lost);
    row("… without an answer", |tally| tally.without_answer);
    row("requests that came", |tally| tally.arrivals);
    row("duplicates, their outcome having been unknown", |tally| {
        tally.duplicates
    });
    row("sent again on request", |tally| tally.asked_for);
    let mut text = format!("{table}\n");
    let history = &round.history;
    let pace = &round.verdict.pace;
    let gap = pace.smallest_gap.map_or(0.0, |gap| gap.as_secs_f64() * 1_000.0);
    let _ = writeln!(
        text,
        "handed in: {} pushes with {} requests, {} events with {} requests; events stored: {}\n\
         send starts: {} in {} terms, the smallest gap {gap:.6} ms, {} in the hands of a frozen leader\n\
         web push: {} messages with {} requests to user agents that were greeted {} times; {} shown, {} of them once more, {} late of their topic\n\
         healed in {:.1} s, drained in {:.1} s\n\
         faults: {}",
        history.pushes.tried,
        history.pushes.requests,
        history.events.tried,
        history.events.requests,
        round.rows.events.len(),
        pace.starts,
        pace.terms,
        pace.late,
        round.verdict.webpush.answered,
        history.webpush.requests,
        history.webpush.hellos,
        round.verdict.webpush.shown,
        round.verdict.webpush.again,
        round.verdict.webpush.stale,
        round.healing.as_secs_f64(),
        round.draining.as_secs_f64(),
        kinds(round),
    );
    text
}

/// How often each kind happened, and how often it had no effect.
fn kinds(round: &Round) -> String {
    let mut kinds: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for one in &round.injections {
        let counts = kinds.entry(one.planned.fault.kind()).or_default();
        counts[usize::from(one.result != InjectionResult::Done)] += 1;
    }
    let texts = kinds.into_iter().map(|(kind, [done, nothing])| match nothing {
        0 => format!("{kind} {done}"),
        _ => format!("{kind} {done} (+{nothing} without effect)"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// Everything about a round that has failed, for the file; the beginning of it is printed.
pub fn failure(round: &Round) -> String {
    let mut text = format!("FAILED: seed {}\n\n", round.plan.seed);
    text.push_str("what happened, in seconds from the beginning of the faults:\n");
    for one in &round.injections {
        let late = match &one.result {
            InjectionResult::Done => String::new(),
            InjectionResult::Nothing => " (without effect)".to_owned(),
            InjectionResult::Failed(why) => format!(" (could not be brought about: {why})"),
        };
        let _ = writeln!(
            text,
            "  {:>8.3}  {}{late}",
            one.at.as_secs_f64(),
            one.planned.fault
        );
    }
    let violations = &round.verdict.violations;
    let _ = writeln!(text, "\n{} violations:", violations.len());
    write_violations(&mut text, violations);
    let mut told = BTreeSet::new();
    for violation in violations {
        if told.len() < STORIES && told.insert(violation.subject.as_str()) {
            text.push_str(&story::of(round, &violation.subject));
        }
    }
    let _ = write!(
        text,
        "\n{}\nlogs, plan and everything else: {}\n",
        table(round),
        round.folder.display()
    );
    text
}

fn write_violations(text: &mut String, violations: &[Violation]) {
    for violation in violations.iter().take(PRINTED) {
        let _ = writeln!(text, "  {violation}");
    }
    if violations.len() > PRINTED {
        let mut checks: BTreeMap<&str, usize> = BTreeMap::new();
        for violation in violations {
            *checks.entry(violation.check).or_default() += 1;
        }
        let _ = writeln!(text, "  … of all: {checks:?}, in violations.txt");
    }
}

/// Writes all violations and the report into the folder of the round.
pub fn keep(round: &Round, folder: &Path) -> std::io::Result<()> {
    let all = round
        .verdict
        .violations
        .iter()
        .map(|violation| format!("{violation}\n"));
    std::fs::write(folder.join("violations.txt"), all.collect::<String>())?;
    std::fs::write(folder.join("report.txt"), failure(round))
}
