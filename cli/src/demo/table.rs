//! What became of each kind of push, as a table.

use std::collections::BTreeMap;

use super::case::{Ended, Posted};
use crate::ingest::Answer;
use crate::output::{self, Column, Table};

/// One row per case.
pub(crate) fn of(cases: &[Ended]) -> Table {
    let mut table = empty("push");
    for ended in cases {
        let Posted { case, answers } = &ended.posted;
        table.add_row([
            case.kind.to_owned(),
            answers.len().to_string(),
            answered(answers),
            counted(ended.pushes.iter().map(|push| push.status.to_string())),
            attempts(ended),
            remark(ended),
        ]);
    }
    table
}

/// A table of what was handed in, without rows.
pub(crate) fn empty(what: &'static str) -> Table {
    output::table([
        Column::prose(what),
        Column::whole("posted").spare(1),
        Column::prose("answer").spare(2),
        Column::prose("status"),
        Column::whole("attempts").spare(3),
        Column::prose("what the API says of it"),
    ])
}

/// What was answered, and how often.
pub(crate) fn answered(answers: &[Answer]) -> String {
    counted(answers.iter().map(|answer| match answer {
        Answer::Accepted { replayed: false, .. } => "202".to_owned(),
        Answer::Accepted { replayed: true, .. } => "202 replayed".to_owned(),
        Answer::Refused { status, .. } => status.to_string(),
    }))
}

/// The different texts, with the number of each that does not speak for all or stand alone.
pub(crate) fn counted(texts: impl Iterator<Item = String>) -> String {
    let mut counts = BTreeMap::<String, usize>::new();
    for text in texts {
        *counts.entry(text).or_default() += 1;
    }
    if counts.len() <= 1 {
        return counts.into_keys().next().unwrap_or_default();
    }
    let parts: Vec<_> = counts
        .into_iter()
        .map(|(text, count)| {
            if count == 1 {
                text
            } else {
                format!("{count} x {text}")
            }
        })
        .collect();
    parts.join(", ")
}

fn attempts(ended: &Ended) -> String {
    let attempts = ended.pushes.iter().map(|push| push.attempts);
    match (attempts.clone().min(), attempts.max()) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => String::new(),
    }
}

/// The first push speaks for all.
fn remark(ended: &Ended) -> String {
    if let Some(push) = ended.pushes.first() {
        return push.explanation.clone();
    }
    why_not(&ended.posted.answers, &ended.unseen)
}

/// Why there is nothing to be said of what was handed in.
pub(crate) fn why_not(answers: &[Answer], unseen: &[String]) -> String {
    let refused = answers.iter().find_map(|answer| match answer {
        Answer::Refused { problem, .. } => Some(problem.to_string()),
        Answer::Accepted { .. } => None,
    });
    refused.or_else(|| unseen.first().cloned()).unwrap_or_default()
}
