//! Notifications of a subscription, read from the reseller's API as they come, signed with the secrets of this run and handed to the
//! endpoint that listens: real ones for a machine that no installation can reach.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Context as _;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use domain::clock::{Clock as _, SystemClock};
use reqwest::{Client, Url};
use serde::Deserialize;
use signing::Secret;
use uuid::Uuid;

use crate::api::Page;
use crate::commands::reseller::look;
use crate::commands::reseller::tail::is_hopeless;
use crate::commands::trigger::signed_headers;
use crate::output;
use crate::portal::Portal;
use crate::web;

const INTERVAL: Duration = Duration::from_secs(1);
/// Longest pause while the portal does not answer.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// As long as an endpoint may take at most, and a little for the way through this one.
const LIMIT: Duration = Duration::from_secs(40);
/// How long an event may need from the moment at which it was accepted to the list.
const OVERLAP: TimeDelta = TimeDelta::seconds(60);

pub(super) struct Relay {
    portal: Portal,
    client: Client,
    list: String,
    secrets: Vec<Secret>,
    /// The endpoint that listens.
    to: Url,
    /// The ones of the last list that were handed on.
    known: HashSet<Uuid>,
    /// When the newest event was accepted, by the clock of the process that accepted it.
    newest: Option<DateTime<Utc>>,
    /// Up to when there was nothing to hand on.
    before: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    id: Uuid,
    accepted_at: DateTime<Utc>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    attempts: u32,
}

impl Row {
    /// Whether it was cancelled before it was tried once: the subscription was never sent it.
    fn was_never_sent(&self) -> bool {
        self.reason.as_deref() == Some("CANCELLED") && self.attempts == 0
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    event_id: String,
    body: String,
}

impl Relay {
    /// One that hands on what is accepted from `since` on, or from now on.
    pub(super) async fn begin(
        portal: Portal,
        (subscription, since): (Uuid, Option<DateTime<Utc>>),
        secrets: Vec<Secret>,
        to: Url,
    ) -> anyhow::Result<Self> {
        let list = format!("/subscriptions/{subscription}/notifications");
        let page = look(&portal, &list, &[("limit", "1")]).await?;
        let page: Page<Row> = serde_json::from_value(page).context("the portal shows no list")?;
        let before = since.or_else(|| page.items.first().map(|row| row.accepted_at));
        Ok(Self {
            client: web::client(LIMIT)?,
            known: HashSet::new(),
            newest: before,
            before,
            portal,
            list,
            secrets,
            to,
        })
    }

    /// Goes on until looking again would be of no use.
    pub(super) async fn run(mut self) -> anyhow::Result<()> {
        let mut pause = INTERVAL;
        loop {
            tokio::time::sleep(pause).await;
            match self.hand_on().await {
                Ok(()) => pause = INTERVAL,
                Err(error) if is_hopeless(&error) => return Err(error),
                Err(error) => {
                    pause = (pause * 2).min(PAUSE_MAX);
                    output::note(format_args!("{error:#}; looking again in {} s", pause.as_secs()));
                }
            }
        }
    }

    /// Hands on those that were not handed on before, the oldest first. What cannot be is tried again, with all after it.
    async fn hand_on(&mut self) -> anyhow::Result<()> {
        let since = self.newest.and_then(|newest| newest.checked_sub_signed(OVERLAP));
        let since = since.map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, true));
        let rows: Vec<Row> = self.portal.all_since(&self.list, since.as_deref()).await?;
        for row in rows
            .iter()
            .rev()
            .filter(|row| Some(row.accepted_at) > self.before && !row.was_never_sent())
        {
            if !self.known.contains(&row.id) {
                self.send(row.id).await?;
                self.known.insert(row.id);
            }
        }
        let listed: HashSet<Uuid> = rows.iter().map(|row| row.id).collect();
        self.known.retain(|id| listed.contains(id));
        self.newest = rows.iter().map(|row| row.accepted_at).chain(self.newest).max();
        Ok(())
    }

    /// Whatever the endpoint answers was shown by it.
    async fn send(&self, id: Uuid) -> anyhow::Result<()> {
        let document = look(&self.portal, &format!("/notifications/{id}"), &()).await?;
        let Document { event_id, body } =
            Document::deserialize(&document).context("the portal shows no notification")?;
        let mut request = self.client.post(self.to.clone());
        for (name, value) in signed_headers(&self.secrets, &event_id, SystemClock.now(), &body) {
            request = request.header(name, value);
        }
        web::send(request.body(body), self.to.as_str()).await?;
        Ok(())
    }
}
