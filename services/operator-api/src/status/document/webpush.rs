//! Web Push in the status: its nodes, what is done in a second, and what is stored.

use serde::Serialize;
use utoipa::ToSchema;

use super::tenths;
use crate::status::facts::Tables;

/// Web Push: who is connected where, what is done in a second, and what is stored.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebpushStatus)]
pub(crate) struct WebpushDocument {
    /// User agents that are connected, as the nodes counted them last.
    pub(crate) connections: u64,
    /// How long ago the node counted that did so longest ago; nodes report every few seconds. Null without a node.
    pub(crate) counted_seconds_ago: Option<u64>,
    pub(crate) nodes: Vec<WebpushNodeDocument>,
    /// Messages that user agents acknowledged at once, in a second.
    pub(crate) direct_per_second: f64,
    /// Messages that were stored, in a second.
    pub(crate) stored_per_second: f64,
    /// Messages that could not be stored, in a second.
    pub(crate) failed_per_second: f64,
    /// Connections that begin in a second.
    pub(crate) opened_per_second: f64,
    /// What is stored, the oldest month first, those left out that hold nothing.
    pub(crate) months: Vec<WebpushMonthDocument>,
}

/// A node that user agents are connected to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebpushNodeStatus)]
pub(crate) struct WebpushNodeDocument {
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) connections: u64,
    /// How long ago it counted them.
    pub(crate) counted_seconds_ago: u64,
}

/// What a month holds. Above 10,000 a number is the database's estimate.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebpushMonthStatus)]
pub(crate) struct WebpushMonthDocument {
    #[schema(example = "2026-11")]
    pub(crate) month: String,
    /// User agents that read it.
    pub(crate) user_agents: u64,
    /// Messages in it, expired ones included.
    pub(crate) messages: u64,
}

/// Nothing where neither a node runs nor a user agent is stored.
pub(super) fn webpush(tables: &Tables) -> Option<WebpushDocument> {
    let nodes: Vec<_> = tables
        .processes
        .iter()
        .filter(|it| it.service == "webpush-connection" && !it.is_silent())
        .map(|it| WebpushNodeDocument {
            host: it.host.clone(),
            pid: it.pid,
            connections: it.report.webpush_connections,
            counted_seconds_ago: it.age.as_secs(),
        })
        .collect();
    let months = tables.webpush.months.iter();
    let months: Vec<_> = months
        .filter(|it| it.clients + it.messages > 0)
        .map(|it| WebpushMonthDocument {
            month: it.month.first_day().format("%Y-%m").to_string(),
            user_agents: it.clients,
            messages: it.messages,
        })
        .collect();
    let rates = tables.rates();
    (!nodes.is_empty() || !months.is_empty()).then(|| WebpushDocument {
        connections: nodes.iter().map(|node| node.connections).sum(),
        counted_seconds_ago: nodes.iter().map(|node| node.counted_seconds_ago).max(),
        nodes,
        direct_per_second: tenths(rates.webpush_direct),
        stored_per_second: tenths(rates.webpush_stored),
        failed_per_second: tenths(rates.webpush_errors),
        opened_per_second: tenths(rates.webpush_opened),
        months,
    })
}
