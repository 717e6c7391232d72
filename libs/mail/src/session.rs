//! A session with a mail server: one connection, over which mails are sent one after the other.
//!
//! It goes through the steps of SMTP itself, since what a refusal means depends on the step: a refused sender concerns every
//! mail, a refused recipient this one.

use std::error::Error as _;
use std::time::Duration;

use lettre::transport::smtp::Error;
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::commands::{Data, Mail, Quit, Rcpt, Rset};
use lettre::transport::smtp::extension::{Extension, MailBodyParameter, MailParameter};

use crate::{Envelope, SendError};

/// A session at work. Dropping it closes the connection without a farewell.
pub struct Session {
    connection: AsyncSmtpConnection,
    timeout: Duration,
    broken: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(connection: AsyncSmtpConnection, timeout: Duration) -> Self {
        Self {
            connection,
            timeout,
            broken: false,
        }
    }

    /// Whether another mail can be sent over it.
    pub fn is_usable(&self) -> bool {
        !self.broken
    }

    /// Sends a mail. `Ok` means that the server has taken it over.
    ///
    /// # Errors
    ///
    /// [`SendError`]. After one that concerns the server the session is over.
    pub async fn send(&mut self, mail: &Envelope) -> Result<(), SendError> {
        // Dropped in the middle of a step, a session is out of step for ever.
        self.broken = true;
        let sent = tokio::time::timeout(self.timeout, self.go_through(mail))
            .await
            .unwrap_or(Err(SendError::Silent(self.timeout)));
        self.broken = match &sent {
            Ok(()) => false,
            Err(error) if error.concerns_the_server() => true,
            Err(_) => !self.is_reset().await,
        };
        sent
    }

    /// Says good bye, if the server still listens.
    pub async fn quit(mut self) {
        if !self.broken {
            let _ = tokio::time::timeout(self.timeout, self.connection.command(Quit)).await;
        }
    }

    async fn go_through(&mut self, mail: &Envelope) -> Result<(), SendError> {
        let options = self.options(mail)?;
        let begin = Mail::new(Some(mail.sender.clone()), options);
        self.connection.command(begin).await.map_err(of_server)?;
        let recipient = Rcpt::new(mail.recipient.clone(), Vec::new());
        self.connection.command(recipient).await.map_err(of_mail)?;
        self.connection.command(Data).await.map_err(of_mail)?;
        self.connection.message(&mail.content).await.map_err(of_mail)?;
        Ok(())
    }

    /// What the server has to know of a mail that is not all ASCII.
    fn options(&self, mail: &Envelope) -> Result<Vec<MailParameter>, SendError> {
        let mut options = Vec::new();
        let is_ascii = |address: &lettre::Address| AsRef::<str>::as_ref(address).is_ascii();
        if !is_ascii(&mail.sender) || !is_ascii(&mail.recipient) {
            if !self.offers(Extension::SmtpUtfEight) {
                let why = "the address is not ASCII, and the server takes no others";
                return Err(SendError::Refused(why.to_owned()));
            }
            options.push(MailParameter::SmtpUtfEight);
        }
        if !mail.content.is_ascii() && self.offers(Extension::EightBitMime) {
            options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
        }
        Ok(options)
    }

    fn offers(&self, extension: Extension) -> bool {
        self.connection.server_info().supports_feature(extension)
    }

    /// Forgets a mail that was begun; `false` when the server does not follow.
    async fn is_reset(&mut self) -> bool {
        let reset = tokio::time::timeout(self.timeout, self.connection.command(Rset)).await;
        reset.is_ok_and(|answer| answer.is_ok())
    }
}

/// A failure that concerns every mail.
fn of_server(error: Error) -> SendError {
    SendError::Server(error)
}

/// A failure that may concern this mail alone: then the server has answered, and goes on.
fn of_mail(error: Error) -> SendError {
    const CLOSING: u16 = 421;
    let Some(code) = error.status().map(u16::from).filter(|code| *code != CLOSING) else {
        return SendError::Server(error);
    };
    let text = error.source().map(ToString::to_string).unwrap_or_default();
    let answer = format!("{code} {text}");
    if error.is_permanent() && !is_policy(code, &text) {
        SendError::Refused(answer)
    } else {
        SendError::NotNow(answer)
    }
}

/// Whether a refusal is about who we are or what we may do, as of a server that does not relay for us: an operator may mend
/// that, and then the mail is welcome. Told by the code (RFC 4954), and by the enhanced one (RFC 3463) whose subject 7 is
/// "security or policy".
pub(crate) fn is_policy(code: u16, text: &str) -> bool {
    const NOT_LOGGED_IN: [u16; 4] = [503, 530, 534, 535];
    let enhanced = text.split_whitespace().next().unwrap_or_default();
    let mut parts = enhanced.split('.');
    let subject = parts
        .next()
        .filter(|class| *class == "5")
        .and_then(|_| parts.next());
    NOT_LOGGED_IN.contains(&code) || subject == Some("7")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_for_policy_are_told_from_those_of_a_recipient() {
        for (code, text) in [
            (530, "authentication required"),
            (554, "5.7.1 <a@example.org>: Relay access denied"),
            (550, "5.7.26 not authenticated"),
            (535, "5.7.8 no"),
        ] {
            assert!(is_policy(code, text), "{code} {text}");
        }
        for (code, text) in [
            (550, "5.1.1 no such user"),
            (552, "5.2.2 mailbox full"),
            (550, "no such user, 5.7.1"),
            (554, ""),
        ] {
            assert!(!is_policy(code, text), "{code} {text}");
        }
    }
}
