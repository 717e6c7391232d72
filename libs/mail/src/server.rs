//! The mail server: its settings, and how a session with it begins.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use url::Url;

use crate::{Envelope, SendError, Session, SettingsError, StoredMail, Unreadable};

/// How to reach the server, and as whom. Has no `Debug`: the URL holds a password.
#[derive(Clone)]
pub struct Settings {
    /// `smtp://` or `smtps://`, with user and password where the server wants them.
    pub url: String,
    /// The sender, as `address` or `name <address>`.
    pub from: String,
    /// Longest time for the beginning of a session, and for one mail.
    pub timeout: Duration,
    /// Where the dashboard of resellers is, without a trailing slash; mails name commands instead of pages without it.
    pub dashboard: Option<String>,
}

/// When a session is encrypted.
#[derive(Clone)]
enum Encryption {
    None,
    /// With `STARTTLS` if the server offers it.
    Offered(TlsParameters),
    /// With `STARTTLS` or not at all.
    Required(TlsParameters),
    /// From the first byte on.
    Immediate(TlsParameters),
}

/// A mail server. Cheap to clone; holds no connection.
#[derive(Clone)]
pub struct MailServer {
    host: String,
    port: u16,
    encryption: Encryption,
    credentials: Option<Credentials>,
    from: Mailbox,
    timeout: Duration,
    dashboard: Option<String>,
}

impl fmt::Debug for MailServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MailServer")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl MailServer {
    /// Reads the settings; connects to nothing.
    pub fn new(settings: &Settings) -> Result<Self, SettingsError> {
        let url = Url::parse(&settings.url).map_err(SettingsError::Url)?;
        let host = match url.host().ok_or(SettingsError::Form)? {
            url::Host::Domain(name) => name.to_owned(),
            url::Host::Ipv4(address) => address.to_string(),
            url::Host::Ipv6(address) => address.to_string(),
        };
        let (default_port, encryption) = encryption(&url, &host)?;
        let credentials = credentials(&url);
        // Who sits between the two has only to leave STARTTLS out of what the server offers.
        let clear = matches!(encryption, Encryption::None | Encryption::Offered(_));
        if credentials.is_some() && clear && !is_this_machine(&host) {
            return Err(SettingsError::Clear);
        }
        Ok(Self {
            port: url.port().unwrap_or(default_port),
            credentials,
            from: settings.from.parse().map_err(SettingsError::From)?,
            timeout: settings.timeout,
            dashboard: settings.dashboard.clone(),
            encryption,
            host,
        })
    }

    /// Composes a mail that is sent at the time `at`.
    pub fn compose(&self, stored: &StoredMail, at: DateTime<Utc>) -> Result<Envelope, Unreadable> {
        stored.seal(&self.from, self.dashboard.as_deref(), at)
    }

    /// Connects and logs in.
    ///
    /// # Errors
    ///
    /// [`SendError::Server`] or [`SendError::Silent`]: nothing can be sent now.
    pub async fn connect(&self) -> Result<Session, SendError> {
        let connection = tokio::time::timeout(self.timeout, self.open())
            .await
            .map_err(|_| SendError::Silent(self.timeout))?
            .map_err(SendError::Server)?;
        Ok(Session::new(connection, self.timeout))
    }

    async fn open(&self) -> Result<AsyncSmtpConnection, lettre::transport::smtp::Error> {
        let hello = ClientId::default();
        let immediate = match &self.encryption {
            Encryption::Immediate(tls) => Some(tls.clone()),
            _ => None,
        };
        let server = (self.host.as_str(), self.port);
        let mut connection =
            AsyncSmtpConnection::connect_tokio1(server, Some(self.timeout), &hello, immediate, None).await?;
        match &self.encryption {
            Encryption::Required(tls) => connection.starttls(tls.clone(), &hello).await?,
            Encryption::Offered(tls) if connection.can_starttls() => {
                connection.starttls(tls.clone(), &hello).await?
            }
            _ => {}
        }
        if let Some(credentials) = &self.credentials {
            connection.auth(DEFAULT_MECHANISMS, credentials).await?;
        }
        Ok(connection)
    }
}

/// The forms of lettre's own URLs, with its default ports.
fn encryption(url: &Url, host: &str) -> Result<(u16, Encryption), SettingsError> {
    const PLAIN: u16 = 25;
    const SUBMISSION: u16 = 587;
    const SUBMISSION_OVER_TLS: u16 = 465;
    let wanted = url
        .query_pairs()
        .find(|(name, _)| name == "tls")
        .map(|(_, value)| value);
    let tls = || TlsParameters::new(host.to_owned()).map_err(SettingsError::Tls);
    Ok(match (url.scheme(), wanted.as_deref()) {
        ("smtp", None) => (PLAIN, Encryption::None),
        ("smtp", Some("opportunistic")) => (SUBMISSION, Encryption::Offered(tls()?)),
        ("smtp", Some("required")) => (SUBMISSION, Encryption::Required(tls()?)),
        ("smtps", None) => (SUBMISSION_OVER_TLS, Encryption::Immediate(tls()?)),
        _ => return Err(SettingsError::Form),
    })
}

/// By its name alone, which needs no resolver.
fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn credentials(url: &Url) -> Option<Credentials> {
    let decoded = |text: &str| percent_decoded(text);
    let password = url.password()?;
    Some(Credentials::new(decoded(url.username()), decoded(password)))
}

/// Text in which `%2F` stands for a slash, as in user and password of a URL.
fn percent_decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}
