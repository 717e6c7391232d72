//! Cancelling a notification that waits. One that had been delivered and was to be sent again stays delivered.

use std::collections::BTreeMap;

use domain::notification::{NotificationId, NotificationStatus};
use domain::reason::NotificationReason;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::locked::subject;
use super::{NotificationFound, NotificationSearch, NotificationsOf};
use crate::cancel::{self, Cancellation, CancelledMany, Found, PART, ToCancel};
use crate::{Act, Error, Store, column};

impl Store {
    /// What waits and matches, as far as it is cancelled at once; with `waits_for`, what that is told of as its reason.
    pub async fn notifications_to_cancel(
        &self,
        search: &NotificationSearch,
        waits_for: Option<&NotificationReason>,
    ) -> Result<ToCancel, Error> {
        let mut found = ToCancel::default();
        // A pause is told of whatever is stored; any other reason is told only where it is stored too, which spares reading the others.
        let stored = waits_for.filter(|reason| **reason != NotificationReason::Paused);
        for status in NotificationStatus::WAITING {
            let is_wanted = search.statuses.is_empty() || search.statuses.contains(&status);
            if found.at_least || !is_wanted {
                continue;
            }
            let list = NotificationSearch {
                statuses: vec![status],
                reasons: stored.cloned().into_iter().collect(),
                ..search.clone()
            };
            let mut after = None;
            loop {
                let part = self.search_notifications(&list, after, PART).await?;
                after = part.next;
                let mut waiting = part.items;
                waiting.retain(|notification| !notification.claimed);
                if let Some(reason) = waits_for {
                    self.retain_told(&mut waiting, reason).await?;
                }
                for notification in waiting {
                    found.add(notification.id.uuid(), status.as_str(), notification.accepted_at);
                }
                if !found.goes_on(after.is_some()) {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Leaves out those of which another reason is told.
    async fn retain_told(
        &self,
        waiting: &mut Vec<NotificationFound>,
        reason: &NotificationReason,
    ) -> Result<(), Error> {
        let subscriptions = column(waiting, |notification| notification.subscription);
        let held = self.held_back(&subscriptions).await?;
        waiting.retain(|notification| {
            let held = held.get(&notification.subscription).copied().unwrap_or_default();
            let stored = notification.reason.clone();
            NotificationReason::told(stored, notification.status, held).as_ref() == Some(reason)
        });
        Ok(())
    }

    /// Cancels a notification that waits or is queued. A place in a quota that it has is used up. One that was accepted before it
    /// was to be sent again is `SENT` again, since the end of that attempt, and has no dead letter.
    pub async fn cancel_notification(
        &self,
        id: NotificationId,
        act: Act<'_>,
    ) -> Result<Cancellation<NotificationStatus>, Error> {
        let mut transaction = self.pool.begin().await?;
        let found = cancel_all(&mut transaction, &[id.uuid()], None, act).await?;
        let found = found.into_iter().next().map(|(found, _)| found);
        cancel::commit(transaction, found, "notification", id, act).await
    }

    /// Cancels those of these notifications of `of` that wait or are queued, all or those in one `status`, with one entry in the audit log that
    /// says how they were `chosen`: about their subscription or their reseller, where those of one were asked for, and else about the lane, with how
    /// many were whose.
    pub async fn cancel_notifications(
        &self,
        ids: &[Uuid],
        (of, status): (&NotificationsOf, Option<&str>),
        chosen: Value,
        act: Act<'_>,
    ) -> Result<CancelledMany, Error> {
        let mut transaction = self.pool.begin().await?;
        let found = cancel_all(&mut transaction, ids, status, act).await?;
        let mut details = json!({ "filter": chosen });
        let about = match of {
            NotificationsOf::All | NotificationsOf::Subscriptions(_) => {
                details["resellers"] = json!(by_reseller(&found));
                "lane/reseller".to_owned()
            }
            NotificationsOf::Reseller(reseller) => format!("reseller/{reseller}"),
            NotificationsOf::Subscription(id) => subject(*id),
        };
        let found: Vec<Found> = found.into_iter().map(|(found, _)| found).collect();
        cancel::commit_all(transaction, &found, ("notification", about), details, act).await
    }
}

/// What was found, and whose it is if it was cancelled.
type FoundOf = (Found, Option<String>);

/// How many were cancelled of each reseller.
fn by_reseller(found: &[FoundOf]) -> BTreeMap<&str, u64> {
    let mut counted = BTreeMap::new();
    for reseller in found.iter().filter_map(|(_, reseller)| reseller.as_deref()) {
        *counted.entry(reseller).or_default() += 1;
    }
    counted
}

/// Locks them first: the statement that decides then sees which attempts were accepted of all that had to be waited for.
async fn cancel_all(
    connection: &mut PgConnection,
    ids: &[Uuid],
    status: Option<&str>,
    act: Act<'_>,
) -> Result<Vec<FoundOf>, Error> {
    sqlx::query!(
        "SELECT FROM notifications WHERE id = ANY($1) ORDER BY id FOR UPDATE",
        ids,
    )
    .execute(&mut *connection)
    .await?;
    let rows = sqlx::query_file!(
        "queries/webhook/cancel_notifications.sql",
        ids,
        act.at,
        act.by,
        act.note,
        status,
    )
    .fetch_all(connection)
    .await?;
    let found = rows.into_iter().map(|row| {
        let found = Found {
            status: row.status,
            claimed: row.claimed,
            cancelled: row.cancelled,
            delivered: row.delivered,
            cancelled_at: row.cancelled_at,
            cancelled_by: row.cancelled_by,
        };
        (found, row.reseller_id)
    });
    Ok(found.collect())
}
