//! A mail in the form in which it travels.

use chrono::{DateTime, Utc};
use domain::email::EmailKind;
use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use lettre::{Address, Message};
use minijinja::context;
use serde_json::Value;
use uuid::Uuid;

use crate::page::Page;
use crate::{Rendered, Unreadable, payload, templates};

/// A stored mail.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredMail {
    /// Its identifier.
    pub id: Uuid,
    /// The occasion.
    pub kind: EmailKind,
    /// The subscription that it is about.
    pub subscription_id: Uuid,
    /// The address.
    pub recipient: String,
    /// What it tells, by its kind.
    pub data: Value,
    /// How many occasions it stands for.
    pub occurrences: u64,
    /// When the latest of them was.
    pub created_at: DateTime<Utc>,
}

/// A mail as a server is given it.
#[derive(Debug, Clone)]
pub struct Envelope {
    pub(crate) sender: Address,
    pub(crate) recipient: Address,
    pub(crate) content: Vec<u8>,
}

impl StoredMail {
    /// What the recipient will read. With the URL of the resellers' dashboard it names the page that shows what the mail is about, and those
    /// on which something can be done; else the command, and requests to the API.
    pub fn render(&self, dashboard: Option<&str>) -> Result<Rendered, Unreadable> {
        let told = context! {
            dashboard,
            subscription => self.subscription_id.to_string(),
            at => self.created_at.to_rfc3339(),
            count => self.occurrences,
            ..payload::read(self.kind, &self.data)?
        };
        let text = templates::text(self.kind, told).map_err(Unreadable::Template)?;
        Page::read(&text).render().map_err(Unreadable::Template)
    }

    /// The `Message-ID`. The same mail has the same one however often it is sent, so that a repetition is recognised; a
    /// mail that has gathered more meanwhile is another one.
    pub fn message_id(&self, from: &Mailbox) -> String {
        format!(
            "<{}.{}@{}>",
            self.id.simple(),
            self.occurrences,
            from.email.domain()
        )
    }

    /// Composes the mail, which is sent at the time `at`: one may have waited for an hour after what it tells.
    pub(crate) fn seal(
        &self,
        from: &Mailbox,
        dashboard: Option<&str>,
        at: DateTime<Utc>,
    ) -> Result<Envelope, Unreadable> {
        let Rendered { subject, text, html } = self.render(dashboard)?;
        let recipient: Address = self.recipient.parse().map_err(Unreadable::Recipient)?;
        let message = Message::builder()
            .from(from.clone())
            .to(Mailbox::new(None, recipient.clone()))
            .subject(subject)
            .message_id(Some(self.message_id(from)))
            .date(at.into())
            .header(AutoSubmitted)
            .multipart(
                MultiPart::alternative()
                    .singlepart(SinglePart::builder().header(ContentType::TEXT_PLAIN).body(text))
                    .singlepart(SinglePart::builder().header(ContentType::TEXT_HTML).body(html)),
            )
            .map_err(Unreadable::Form)?;
        Ok(Envelope {
            sender: from.email.clone(),
            recipient,
            content: message.formatted(),
        })
    }
}

/// Keeps absence notices and other robots from answering (RFC 3834).
#[derive(Debug, Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}
