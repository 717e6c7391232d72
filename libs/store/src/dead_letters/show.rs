//! One dead letter with everything that is known of what it is about: its history, and what is needed to repeat its
//! request.

use serde_json::Value;
use uuid::Uuid;

use super::view::DeadLetterView;
use crate::timeline::{NotificationTimeline, PushTimeline};
use crate::{AuditView, Error, Store};

/// A dead letter with everything that is known of it.
#[derive(Debug, Clone)]
pub struct DeadLetterHistory {
    /// As in a list.
    pub dead_letter: DeadLetterView,
    /// What the broker handed back, of a dead letter that comes from it.
    pub message: Option<Value>,
    /// What was done to the dead letter by hand, the first act first.
    pub acts: Vec<AuditView>,
    /// What it is about, if that is still there.
    pub subject: Option<DeadLetterSubject>,
}

/// What a dead letter is about.
#[derive(Debug, Clone)]
pub enum DeadLetterSubject {
    /// A push.
    Push {
        /// With its attempts and its other dead letters.
        story: Box<PushTimeline>,
        /// What is shown on the device.
        message: String,
        /// The W3C trace context of the request that brought it.
        traceparent: Option<String>,
    },
    /// A notification.
    Notification {
        /// With its attempts and its other dead letters.
        story: Box<NotificationTimeline>,
        /// The bytes that are sent, while the event is kept.
        body: Option<String>,
        /// The W3C trace context of the request that brought the event.
        traceparent: Option<String>,
    },
}

impl Store {
    /// The dead letter with this identifier and everything that is known of it.
    pub async fn show_dead_letter(&self, id: Uuid) -> Result<Option<DeadLetterHistory>, Error> {
        let Some(letter) = self.find_dead_letters(&[id]).await?.pop() else {
            return Ok(None);
        };
        let message = sqlx::query_scalar!("SELECT message FROM dead_letters WHERE id = $1", id)
            .fetch_optional(&self.pool)
            .await?;
        let acts = self.acts_on(format!("dead-letter/{id}")).await?;
        let subject = match (letter.push, letter.notification) {
            (Some(push), _) => self.push_subject(push).await?,
            (None, Some(notification)) => self.notification_subject(notification).await?,
            (None, None) => None,
        };
        Ok(Some(DeadLetterHistory {
            dead_letter: letter,
            message: message.flatten(),
            acts,
            subject,
        }))
    }

    async fn push_subject(&self, id: Uuid) -> Result<Option<DeadLetterSubject>, Error> {
        let row = sqlx::query!(
            "SELECT message, traceparent FROM push_notifications WHERE id = $1",
            id
        )
        .fetch_optional(&self.pool)
        .await?;
        let Some(row) = row else { return Ok(None) };
        let story = self.push_timeline(id).await?;
        Ok(story.map(|story| DeadLetterSubject::Push {
            story: Box::new(story),
            message: row.message,
            traceparent: row.traceparent,
        }))
    }

    async fn notification_subject(&self, id: Uuid) -> Result<Option<DeadLetterSubject>, Error> {
        let Some(story) = self.notification_timeline(id).await? else {
            return Ok(None);
        };
        let event = sqlx::query!("SELECT body, traceparent FROM events WHERE id = $1", story.event)
            .fetch_optional(&self.pool)
            .await?;
        let (body, traceparent) = event.map_or((None, None), |event| (Some(event.body), event.traceparent));
        Ok(Some(DeadLetterSubject::Notification {
            story: Box::new(story),
            body,
            traceparent,
        }))
    }
}
