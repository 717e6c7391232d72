//! Which of the filters of an empty list leaves out most. A page asks for its list without each of them, and nothing is counted further than
//! a part of a list goes. A live page that asks for itself does not try them once more: it keeps what it was told when it was opened, or when its
//! filters were changed.

use std::cmp::Reverse;

use askama::Template;
use askama::filters::HtmlSafe;
use axum::extract::Query;
use explain::words;
use http::Uri;
use serde::de::DeserializeOwned;

use crate::frame::Frame;

/// Most filters that are tried: each costs what the list costs.
const TRIED_MAX: usize = 4;

/// A filter of a list.
#[derive(Debug, Clone, Copy)]
pub struct Filter {
    label: &'static str,
    names: &'static [&'static str],
}

impl Filter {
    /// A filter whose field is called so and sets these parameters.
    pub const fn new(label: &'static str, names: &'static [&'static str]) -> Self {
        Self { label, names }
    }

    pub(crate) fn label(&self) -> &'static str {
        self.label
    }

    /// Whether it sets this parameter.
    pub(crate) fn sets(&self, name: &str) -> bool {
        self.names.contains(&name)
    }
}

/// A filter that is set, and what the list has without it.
#[derive(Debug, Clone)]
pub struct Without {
    filter: Filter,
    address: String,
    /// How many there are, and whether there are more; nothing as long as it was not asked for.
    found: Option<(u64, bool)>,
}

impl Without {
    /// How many rows are looked for: enough to tell much from little.
    pub const LOOKED_FOR: u32 = 25;

    /// The page without it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What the page would be asked with; nothing where that cannot be read.
    pub fn params<T: DeserializeOwned>(&self) -> Option<T> {
        let uri: Uri = self.address.parse().ok()?;
        Query::try_from_uri(&uri).ok().map(|Query(params)| params)
    }

    /// Takes what was found: how many of [`Without::LOOKED_FOR`], and whether there are more.
    pub fn found(&mut self, count: usize, has_more: bool) {
        self.found = Some((count as u64, has_more));
    }

    fn label(&self) -> &'static str {
        self.filter.label
    }

    /// How many there are without it.
    fn count(&self) -> String {
        let (count, has_more) = self.found.unwrap_or_default();
        let are = if count == 1 && !has_more { "is" } else { "are" };
        let or_more = if has_more { " or more" } else { "" };
        format!("{are} {}{or_more}", words::number(count))
    }
}

/// The filters of a list that are set, and what it has without each. As a part of a page it says which leaves out most, each with a link that clears it.
#[derive(Debug, Clone, Template)]
#[template(path = "leaving_out.html")]
pub struct LeavingOut {
    without: Vec<Without>,
    /// Whether the page keeps what it was told.
    is_tick: bool,
}

impl HtmlSafe for LeavingOut {}

impl LeavingOut {
    /// Those of these filters that the address of a page sets.
    pub fn of(frame: &Frame, filters: &[Filter]) -> Self {
        let is_set = |filter: &&Filter| filter.names.iter().any(|name| !frame.asked(name).is_empty());
        let without = filters.iter().filter(is_set).map(|filter| Without {
            filter: *filter,
            address: frame.without(filter.names),
            found: None,
        });
        Self {
            without: without.collect(),
            is_tick: frame.is_tick,
        }
    }

    /// How many of them are set.
    pub fn set(&self) -> usize {
        self.without.len()
    }

    /// Those to ask for the list without, one after the other; none for a page that asks for itself.
    pub fn to_try(&mut self) -> impl Iterator<Item = &mut Without> {
        let tried = if self.is_tick { 0 } else { TRIED_MAX };
        self.without.iter_mut().take(tried)
    }

    /// Those without which there are rows: the one that leaves out most first.
    fn telling(&self) -> Vec<&Without> {
        let has_rows = |one: &&Without| one.found.is_some_and(|(count, _)| count > 0);
        let mut telling: Vec<_> = self.without.iter().filter(has_rows).collect();
        telling.sort_by_key(|one| Reverse(one.found.map(|(count, has_more)| (has_more, count))));
        telling
    }

    fn tells(&self) -> bool {
        !self.telling().is_empty() || self.is_by_several()
    }

    /// What the first of those that tell something does.
    fn how_much(&self) -> &'static str {
        match (self.set(), self.telling().len()) {
            (1, _) => "leaves out all",
            (_, 1) => "leaves them out",
            _ => "leaves out most",
        }
    }

    /// Whether there is nothing without any of several.
    fn is_by_several(&self) -> bool {
        self.set() > 1 && self.without.iter().all(|one| one.found == Some((0, false)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use chrono::DateTime;
    use http::{HeaderMap, HeaderValue};
    use serde::Deserialize;

    use super::*;
    use crate::assets::Assets;
    use crate::frame::TICK;

    const FILTERS: [Filter; 3] = [
        Filter::new("Status", &["status"]),
        Filter::new("Event type", &["eventType"]),
        Filter::new("Time", &["since", "until"]),
    ];

    fn leaving_out(query: &str) -> LeavingOut {
        asked_for_with(query, &HeaderMap::new())
    }

    fn asked_for_with(query: &str, headers: &HeaderMap) -> LeavingOut {
        static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets::new("/x", &[]));
        let address = format!("/x/list?{query}");
        let frame = Frame::new(
            ("/x", &*ASSETS),
            String::new(),
            headers,
            address,
            DateTime::UNIX_EPOCH,
        );
        LeavingOut::of(&frame, &FILTERS)
    }

    #[test]
    fn the_filter_without_which_there_is_most_comes_first_and_each_is_cleared_by_itself() {
        let mut list = leaving_out("status=FAILED&since=1&until=2&cursor=3&eventType=a%26b");
        for (one, (count, has_more)) in list.to_try().zip([(2, false), (0, false), (25, true)]) {
            one.found(count, has_more);
        }
        let said = list.render().expect("a page");
        let time = said.find("Time</strong> leaves out most: without it there are 25 or more.");
        let status = said.find("Without <strong>Status</strong> there are 2.");
        assert!(time.is_some() && time < status, "{said}");
        assert!(
            said.contains("/x/list?status=FAILED&#38;eventType=a%26b") && said.contains("Clear Time"),
            "{said}"
        );
        assert!(!said.contains("Event type"), "{said}");
    }

    #[test]
    fn filters_that_leave_all_out_together_alone_are_told_so() {
        for (query, tried, is_told) in [
            ("status=FAILED&since=1", 2, true),
            ("status=FAILED&since=1", 1, false),
            ("status=FAILED", 1, false),
            ("limit=25", 0, false),
        ] {
            let mut list = leaving_out(query);
            list.to_try().take(tried).for_each(|one| one.found(0, false));
            let said = list.render().expect("a page");
            assert_eq!(said.contains("None of the 2 filters alone"), is_told, "{said}");
            assert_eq!(said.trim().is_empty(), !is_told, "{said}");
        }
    }

    #[test]
    fn a_live_page_that_asks_for_itself_keeps_what_it_was_told() {
        let tick = HeaderMap::from_iter([(TICK, HeaderValue::from_static("1"))]);
        for (query, kept) in [("status=FAILED&since=1", 1), ("limit=25", 0)] {
            let mut list = asked_for_with(query, &tick);
            assert_eq!(list.to_try().count(), 0, "nothing is asked for");
            let said = list.render().expect("a page");
            let place = "<div id=\"leaving-out\" data-stays></div>";
            assert_eq!(said.matches(place).count(), kept, "{said}");
        }
        let mut opened = leaving_out("status=FAILED");
        assert_eq!(opened.to_try().count(), 1);
        opened.to_try().for_each(|one| one.found(2, false));
        let said = opened.render().expect("a page");
        assert!(
            said.contains("<div id=\"leaving-out\"><p") && !said.contains("data-stays"),
            "{said}"
        );
    }

    #[test]
    fn the_page_is_asked_with_the_other_filters() {
        #[derive(Deserialize)]
        struct Params {
            status: Option<String>,
            since: Option<u32>,
        }
        let mut list = leaving_out("status=FAILED&since=1");
        let asked: Vec<_> = list.to_try().filter_map(|one| one.params::<Params>()).collect();
        let asked: Vec<_> = asked.iter().map(|it| (it.status.as_deref(), it.since)).collect();
        assert_eq!(asked, [(None, Some(1)), (Some("FAILED"), None)]);
    }
}
