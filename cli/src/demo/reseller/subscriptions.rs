//! The subscriptions that the demo makes for itself, and how they are at the end.

use std::time::Duration;

use anyhow::bail;
use domain::reason::StateReason;
use domain::subscription::SubscriptionState;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use crate::api::Api;
use crate::output;
use crate::portal::{Portal, Subscription, SubscriptionRequest};
use crate::webhooks::{SecretAt, Webhooks};

/// What almost all events are of.
pub(super) const CROWD_TYPE: &str = "domain.created";
/// What is over the quota.
pub(super) const QUOTA_TYPE: &str = "contact.updated";
/// What ends a subscription.
pub(super) const GONE_TYPE: &str = "host.deleted";
/// Notifications a day of one of the subscriptions.
pub(super) const QUOTA: u32 = 2;
/// The quota that is asked for.
const ASKED_QUOTA: u32 = 1_000_000_000;
/// How long the endpoint may take to answer, in milliseconds.
pub(super) const TIMEOUT: u64 = 1_000;

/// The start of the descriptions, by which those of a run that was killed are found again.
const DESCRIPTION: &str = "postrider demo";
/// How often a subscription is looked at.
const POLL: Duration = Duration::from_millis(100);

/// What the subscriptions have in common.
pub(super) struct Maker<'a> {
    pub(super) portal: &'a Portal,
    /// An administrator.
    pub(super) admin: &'a Api,
    pub(super) webhooks: &'a Webhooks,
    pub(super) run: &'a str,
    pub(super) deadline: Instant,
}

/// All of them, verified.
pub(super) struct Subscriptions {
    ids: Vec<Uuid>,
    /// The one that is answered with 410.
    gone: Uuid,
    /// What the receiver is to check signatures with.
    pub(super) secrets: Vec<SecretAt>,
}

/// The start of the paths of the endpoints.
pub(super) fn paths(run: &str) -> String {
    format!("/demo-{run}/")
}

/// Whom mails are for.
pub(super) fn email(run: &str) -> String {
    format!("demo-{run}@example.org")
}

impl Maker<'_> {
    /// Makes them and waits until their endpoints are verified.
    pub(super) async fn make(&self) -> anyhow::Result<Subscriptions> {
        self.remove_earlier().await?;
        let (crowd, crowd_secret) = self.subscribe("crowd", "domain.*").await?;
        let (quota, quota_secret) = self.subscribe("quota", QUOTA_TYPE).await?;
        let (gone, gone_secret) = self.subscribe("gone", GONE_TYPE).await?;
        // Only more can be asked for than there is; what is granted may be less.
        let request = self.portal.request_quota(quota, ASKED_QUOTA, "the demo").await?;
        let approve = format!("/quota-requests/{request}/approve");
        let approval = json!({ "granted": QUOTA });
        self.admin.post::<Value>(&approve, &approval).await?;
        // The receiver goes on with the old secret: while they overlap each request carries the signatures of both.
        self.portal.rotate_secret(crowd).await?;
        let made = Subscriptions {
            ids: vec![crowd, quota, gone],
            gone,
            secrets: vec![crowd_secret, quota_secret, gone_secret],
        };
        for id in &made.ids {
            self.verified(*id).await?;
        }
        Ok(made)
    }

    async fn remove_earlier(&self) -> anyhow::Result<()> {
        for subscription in self.portal.subscriptions().await? {
            if subscription.description.starts_with(DESCRIPTION) {
                self.portal.unsubscribe(subscription.id).await?;
            }
        }
        Ok(())
    }

    async fn subscribe(&self, name: &str, event_type: &str) -> anyhow::Result<(Uuid, SecretAt)> {
        let path = format!("{}{name}", paths(self.run));
        let subscription = SubscriptionRequest {
            url: self.webhooks.endpoint(&path),
            event_types: vec![event_type.to_owned()],
            email: email(self.run),
            description: format!("{DESCRIPTION}: {name}"),
            timeout_millis: TIMEOUT,
        };
        let created = self.portal.subscribe(&subscription).await?;
        let secret = created.secret.secret;
        Ok((created.id, SecretAt { path, secret }))
    }

    async fn verified(&self, id: Uuid) -> anyhow::Result<()> {
        loop {
            let subscription = self.portal.subscription(id).await?;
            if subscription.state == "ACTIVE" {
                return Ok(());
            }
            if Instant::now() >= self.deadline {
                bail!("{}", unverified(&subscription));
            }
            tokio::time::sleep(POLL).await;
        }
    }
}

/// What is wrong with the one that is not verified in time.
pub(in crate::demo) fn unverified(subscription: &Subscription) -> String {
    let verification = &subscription.verification;
    format!(
        "the endpoint of the subscription {} is not verified but {}, after {} failed challenges: {}",
        subscription.id,
        subscription.state,
        verification.failed_attempts,
        verification.error.as_deref().unwrap_or("it is not known why")
    )
}

impl Subscriptions {
    /// Whether this is one of them.
    pub(super) fn contains(&self, id: Uuid) -> bool {
        self.ids.contains(&id)
    }

    /// What is not as it should be, if anything.
    pub(super) async fn deviation(&self, portal: &Portal) -> anyhow::Result<Option<String>> {
        for id in &self.ids {
            let wanted = if *id == self.gone {
                (SubscriptionState::Deactivated, StateReason::Gone)
            } else {
                (SubscriptionState::Active, StateReason::Verified)
            };
            let found = portal.subscription(*id).await?;
            if (found.state.as_str(), found.state_reason.as_str()) != (wanted.0.as_str(), wanted.1.as_str()) {
                return Ok(Some(format!(
                    "the subscription {:?} is {} ({}) and not {} ({})",
                    found.description, found.state, found.state_reason, wanted.0, wanted.1
                )));
            }
        }
        Ok(None)
    }

    /// Ends them: later events are not for this run.
    pub(super) async fn remove(self, portal: &Portal) {
        for id in self.ids {
            if let Err(error) = portal.unsubscribe(id).await {
                output::note(format_args!(
                    "the subscription {id} could not be ended: {error:#}"
                ));
            }
        }
    }
}
