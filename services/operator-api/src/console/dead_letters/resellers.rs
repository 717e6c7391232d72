//! `/console/dead-letters/resellers`: whose the dead letters are, with what goes wrong there most often.

use std::cmp::Reverse;
use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::IntoResponse;
use chrono::{DateTime, Utc};
use http_api::Problem;

use super::groups::{Order, named, order};
use super::written::Written;
use super::{AGES, Chosen, FIELDS};
use crate::app::App;
use crate::console::frame::{Frame, Page};
use crate::dead_letters::{self, ResellerDocument, ResellersDocument};
use crate::request::Viewer;

#[derive(Template)]
#[template(path = "dead_letters_resellers.html")]
struct Resellers {
    frame: Frame,
    chosen: Chosen,
    ages: [(&'static str, &'static str, i64); 4],
    rows: Vec<Row>,
    /// How many resellers there are, those that are not shown included.
    total: u64,
}

/// The dead letters of one reseller.
struct Row {
    /// Names the row, the same for as long as it is there.
    id: String,
    it: ResellerDocument,
    /// How many were written in each of the last 24 hours.
    hours: Written,
    /// The filter that is about this reseller alone.
    chosen: Chosen,
}

impl Resellers {
    fn tabs(&self) -> [(String, &'static str, bool); 4] {
        super::tabs(&self.chosen, "reseller")
    }

    fn order(&self) -> String {
        self.frame.asked("order")
    }

    /// Whether of any that is shown not all were counted.
    fn is_at_least(&self) -> bool {
        self.rows.iter().any(|row| row.it.at_least)
    }

    fn is_short(&self) -> bool {
        self.total > self.rows.len() as u64
    }
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    viewer: Viewer,
    mut frame: Frame,
) -> Result<impl IntoResponse, Problem> {
    let order = order(&frame)?;
    let chosen = Chosen::asked(&frame, &["order"]);
    let found = found(app, viewer, &chosen, frame.now).await;
    let found = frame.filtered(found, &FIELDS)?.unwrap_or_default();
    let rows = found.items.into_iter().map(|mut it| Row {
        id: named(&it.reseller_id),
        chosen: chosen.with("reseller", &it.reseller_id),
        hours: Written::of(std::mem::take(&mut it.hours)),
        it,
    });
    let mut rows: Vec<_> = rows.collect();
    match order {
        Order::Largest => {}
        Order::Latest => rows.sort_by_key(|row| Reverse(row.it.last_seen)),
        Order::Growing => rows.sort_by_key(|row| Reverse(row.hours.lately())),
    }
    let status = frame.list_status();
    let page = Page(Resellers {
        rows,
        chosen,
        ages: AGES,
        total: found.total,
        frame,
    });
    Ok((status, page))
}

async fn found(
    app: Arc<App>,
    viewer: Viewer,
    chosen: &Chosen,
    now: DateTime<Utc>,
) -> Result<ResellersDocument, Problem> {
    let params = chosen.params(now, &[]).await?;
    Ok(dead_letters::resellers(State(app), viewer, params).await?.0)
}
