//! `postrider resellers`, and what operators see of subscriptions: those of all resellers, over the operator API.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::Value;
use uuid::Uuid;

use super::search::{note_reseller, nothing, print, query};
use crate::api::Api;
use crate::operator::{Common, OperatorArgs};
use crate::output::{Column, Form};
use crate::part::Part;
use crate::shown::{self, Shown, ShownColumn};

/// Which resellers.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider resellers
  postrider resellers --name acm      whose names begin so")]
pub(crate) struct ResellersArgs {
    /// Lists them, as without it.
    #[arg(hide = true, value_parser = ["list", "ls"])]
    list: Option<String>,
    /// Whose names begin with this, in either case.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    common: Common,
}

const SUBSCRIPTIONS: [ShownColumn; 9] = [
    (Column::whole("subscription"), "/id"),
    (Column::whole("reseller"), "/resellerId"),
    (Column::whole("url"), "/url"),
    (Column::prose("event types").spare(4), "/eventTypes"),
    (Column::whole("state"), "/state"),
    (Column::whole("reason").spare(3), "/stateReason"),
    (Column::time("paused since").spare(2), "/pausedSince"),
    (Column::whole("paused by").spare(5), "/pausedBy"),
    (Column::time("failing since").spare(1), "/failingSince"),
];

const RESELLERS: [ShownColumn; 6] = [
    (Column::whole("reseller"), "/id"),
    (Column::whole("subscriptions"), "/subscriptions"),
    (Column::whole("active"), "/active"),
    (Column::whole("paused"), "/paused"),
    (Column::whole("failing"), "/failing"),
    (Column::time("failing since").spare(1), "/failingSince"),
];

/// A subscription, as those on call see it.
const SUBSCRIPTION: [Shown; 15] = [
    ("reseller", "/resellerId"),
    ("url", "/url"),
    ("event types", "/eventTypes"),
    ("email", "/email"),
    ("description", "/description"),
    ("state", "/state"),
    ("reason", "/stateReason"),
    ("since", "/stateChangedAt"),
    ("paused since", "/pausedAt"),
    ("paused by an operator since", "/heldAt"),
    ("failing since", "/failingSince"),
    ("verified", "/verifiedAt"),
    ("why", "/verificationError"),
    ("daily quota", "/dailyQuota"),
    ("requests a second", "/requestsPerSecond"),
];

/// The subscriptions that have this endpoint, with whose they are: a URL as it is, or without its query.
pub(crate) async fn at_endpoint(api: &Api, url: &str) -> anyhow::Result<Vec<(Uuid, String)>> {
    let url = url.trim_end_matches('/');
    let document: Value = api
        .get("/subscriptions", &[("url", url), ("limit", "200")])
        .await?;
    let is_there = |found: &str| {
        let path = found.split('?').next().unwrap_or_default();
        [found, path].iter().any(|it| {
            let it = it.trim_end_matches('/');
            // In mails it stands without its scheme.
            it == url || it.split_once("://").is_some_and(|(_, rest)| rest == url)
        })
    };
    let found = shown::items(&document["items"]).iter();
    Ok(found
        .filter(|it| it["url"].as_str().is_some_and(is_there))
        .filter_map(|it| Some((it["id"].as_str()?.parse().ok()?, shown::cell(it, "/resellerId"))))
        .collect())
}

/// Lists subscriptions, of one reseller or of all.
pub(crate) async fn subscriptions(
    operator: &OperatorArgs,
    form: Form,
    asked: [(&str, Option<String>); 5],
) -> anyhow::Result<()> {
    let (api, query) = (operator.connect()?, query(asked));
    let mut document: Value = api.get("/subscriptions", &query).await?;
    if shown::items(&document["items"]).is_empty() {
        note_reseller(&api, query.get("reseller")).await?;
    }
    if form != Form::Json {
        for it in document["items"].as_array_mut().into_iter().flatten() {
            note_pause(it);
        }
    }
    shown::print(
        &document,
        form,
        SUBSCRIPTIONS,
        &nothing(&document, "subscription"),
    )
}

/// Puts since when a subscription is paused and by whom beside what it says of each pause.
fn note_pause(subscription: &mut Value) {
    let at = |name: &str| subscription[name].as_str().map(str::to_owned);
    let (since, by) = match (at("pausedAt"), at("heldAt")) {
        (None, None) => return,
        (Some(own), None) => (own, "its reseller"),
        (None, Some(held)) => (held, "an operator"),
        // Both as the API writes them, in UTC.
        (Some(own), Some(held)) => (own.min(held), "both"),
    };
    subscription["pausedSince"] = since.into();
    subscription["pausedBy"] = by.into();
}

/// Shows a subscription of whichever reseller.
pub(crate) async fn subscription(operator: &OperatorArgs, form: Form, id: Uuid) -> anyhow::Result<()> {
    let path = format!("/subscriptions/{id}");
    let document: Value = operator.connect()?.get(&path, &()).await?;
    form.print(&document, || {
        shown::record("subscription", &document, SUBSCRIPTION)
    })
}

/// Lists the resellers that have subscriptions.
pub(crate) async fn resellers(args: &ResellersArgs) -> anyhow::Result<()> {
    let api = args.common.operator.connect()?;
    let asked = query([("name", args.name.clone())]);
    let pages = args.part.of(&api, "/resellers", asked);
    print(pages, args.common.form(), RESELLERS, "reseller").await?;
    Ok(())
}
