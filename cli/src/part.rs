//! Which part of a list a command asks for, and the pages that it comes in: the same options wherever a list comes in parts.

use std::mem;

use clap::Args;
use serde_json::{Map, Value};

use crate::api::Api;
use crate::shown;

/// As many entries as an API gives at once.
const PAGE_MAX: u64 = 200;
/// Most pages in a row in which nothing is found: a filter may thin out any of them to nothing.
const EMPTY_MAX: u32 = 20;

/// Which part of a list.
#[derive(Debug, Clone, Args)]
pub(crate) struct Part {
    /// How many; more than 200 are asked for page by page.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Where the previous part ended.
    #[arg(long)]
    cursor: Option<String>,
}

impl Part {
    /// This part of the list at `path`.
    pub(crate) fn of<'a>(&self, api: &'a Api, path: &'a str, mut query: Map<String, Value>) -> Pages<'a> {
        let cursor = self.cursor.clone().map(Value::from);
        query.extend(cursor.map(|cursor| ("cursor".to_owned(), cursor)));
        Pages::new(api, path, query, self.limit)
    }
}

/// A part of a list that is asked for page by page. A page in which nothing was found is followed by the next one; one that a filter has
/// thinned out only where more is asked for than a page has.
pub(crate) struct Pages<'a> {
    api: &'a Api,
    path: &'a str,
    query: Map<String, Value>,
    left: u64,
    is_long: bool,
    empty: u32,
    examined: Option<u64>,
    is_over: bool,
}

impl<'a> Pages<'a> {
    /// The first `limit` entries from where `query` begins.
    pub(crate) fn new(api: &'a Api, path: &'a str, query: Map<String, Value>, limit: u64) -> Self {
        Self {
            api,
            path,
            query,
            left: limit,
            is_long: limit > PAGE_MAX,
            empty: 0,
            examined: None,
            is_over: false,
        }
    }

    /// How many entries are asked for beside those that came.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// The next page as it came, but that `examined` counts those before it, too.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        if self.is_over {
            return Ok(None);
        }
        let limit = self.left.min(PAGE_MAX);
        self.query.insert("limit".to_owned(), limit.into());
        let mut page: Value = self.api.get(self.path, &self.query).await?;
        if let Some(more) = page["examined"].as_u64() {
            let examined = self.examined.unwrap_or(0) + more;
            self.examined = Some(examined);
            page["examined"] = examined.into();
        }
        let found = shown::items(&page["items"]).len() as u64;
        self.left = self.left.saturating_sub(found);
        self.empty = if found == 0 { self.empty + 1 } else { 0 };
        let is_enough = self.left == 0 || (found > 0 && !self.is_long) || self.empty == EMPTY_MAX;
        match page["next"].as_str() {
            Some(next) if !is_enough => {
                self.query.insert("cursor".to_owned(), next.into());
            }
            _ => self.is_over = true,
        }
        Ok(Some(page))
    }

    /// All of it as one document: the last page with the entries of all.
    pub(crate) async fn whole(mut self) -> anyhow::Result<Value> {
        let mut whole = Value::Null;
        while let Some(mut page) = self.next().await? {
            if let (Some(Value::Array(all)), Some(Value::Array(more))) =
                (whole.get_mut("items"), page.get_mut("items"))
            {
                all.append(more);
                *more = mem::take(all);
            }
            whole = page;
        }
        Ok(whole)
    }
}
