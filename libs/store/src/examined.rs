//! Lists that are found by looking at a bounded number of rows.

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// A part of a list that was found by looking at a bounded number of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined<T> {
    /// What is in it.
    pub items: Vec<T>,
    /// How many rows were looked at for it.
    pub examined: u64,
    /// Where the next part begins, if there may be more.
    pub next: Option<(DateTime<Utc>, Uuid)>,
}

/// A row that was looked at: its place in the list, and whether it matches.
pub(crate) struct Looked {
    pub(crate) at: DateTime<Utc>,
    pub(crate) id: Uuid,
    pub(crate) matches: bool,
}

impl Looked {
    pub(crate) fn place(&self) -> (DateTime<Utc>, Uuid) {
        (self.at, self.id)
    }
}

impl Examined<Uuid> {
    /// Those that match, of rows that were looked at in the order of the list, `depth` at most.
    pub(crate) fn stretch(looked: &[Looked], depth: u32, limit: u32) -> Self {
        let mut matching: Vec<&Looked> = looked
            .iter()
            .filter(|one| one.matches)
            .take(limit as usize + 1)
            .collect();
        let next = if matching.len() > limit as usize {
            matching.truncate(limit as usize);
            matching.last().map(|one| one.place())
        } else {
            let is_cut = looked.len() >= depth as usize;
            looked.last().filter(|_| is_cut).map(Looked::place)
        };
        Self {
            items: matching.into_iter().map(|one| one.id).collect(),
            examined: looked.len() as u64,
            next,
        }
    }
}
