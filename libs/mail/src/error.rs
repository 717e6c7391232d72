//! What can go wrong, by what the caller can do about it.

use std::time::Duration;

/// Settings that cannot be used. Never shows the URL: it may hold a password.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The URL is none.
    #[error("mail.smtpUrl cannot be read")]
    Url(#[source] url::ParseError),
    /// The URL asks for something that does not exist.
    #[error(
        "mail.smtpUrl must be smtp://host, smtp://host?tls=required, smtp://host?tls=opportunistic or smtps://host"
    )]
    Form,
    /// User and password would be sent unencrypted.
    #[error(
        "mail.smtpUrl has a user and a password, which would cross the network unencrypted: take smtps://, or smtp:// with ?tls=required; \
         only a server at localhost is logged in to without"
    )]
    Clear,
    /// The sender is no mailbox.
    #[error("mail.from must be an address, or a name and an address in angle brackets")]
    From(#[source] lettre::address::AddressError),
    /// TLS cannot be prepared.
    #[error("TLS could not be prepared for the mail server")]
    Tls(#[source] lettre::transport::smtp::Error),
}

/// A stored mail that this version cannot make sense of.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// What it tells has another form than its kind wants.
    #[error("the data of the mail cannot be read")]
    Data(#[source] serde_json::Error),
    /// Its template cannot be filled in with that.
    #[error("the template of the mail cannot be filled in")]
    Template(#[source] minijinja::Error),
    /// Its recipient is no address.
    #[error("the recipient is no e-mail address")]
    Recipient(#[source] lettre::address::AddressError),
    /// It cannot be put into the form of a mail.
    #[error("the mail cannot be composed")]
    Form(#[source] lettre::error::Error),
}

/// Why a mail was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The server will never take this mail for this recipient. The session goes on.
    #[error("the mail server refused the mail: {0}")]
    Refused(String),
    /// The server does not take it now, or for a reason that concerns more than this recipient. The session goes on.
    #[error("the mail server did not take the mail: {0}")]
    NotNow(String),
    /// The server did not let us in, or the session ended: so it would for every mail. Whether the one that was being sent
    /// has arrived is unknown.
    #[error("the mail server failed")]
    Server(#[source] lettre::transport::smtp::Error),
    /// The same, because the server was silent for too long.
    #[error("the mail server was silent for {} ms", .0.as_millis())]
    Silent(Duration),
}

impl SendError {
    /// Whether other mails fare the same now: there is no use in trying them over this session, or over another at once.
    pub fn concerns_the_server(&self) -> bool {
        matches!(self, Self::Server(_) | Self::Silent(_))
    }

    /// Whether trying again is useless.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}
