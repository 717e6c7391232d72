//! The dialogue of one connection (RFC 5321).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::smtp::lines::{Line, read_line};
use crate::smtp::report::Received;
use crate::smtp::script::{Action, Stage};
use crate::smtp::server::Shared;

/// Largest mail, in bytes.
const SIZE_LIMIT: usize = 10 * 1024 * 1024;
/// Most recipients of one mail.
const RECIPIENT_LIMIT: usize = 100;
/// How long a client may say nothing.
const SILENCE_LIMIT: Duration = Duration::from_secs(300);

const OK: &str = "250 2.0.0 OK";

/// Whether the dialogue goes on.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Go,
    End,
}

struct Dialogue {
    stream: BufReader<TcpStream>,
    shared: Arc<Shared>,
    sender: Option<String>,
    recipients: Vec<String>,
}

/// Ends when the client closes the connection, or a rule does.
pub(crate) async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Without it an answer may wait for the acknowledgement of the one before; harmless if it fails.
    let _ = stream.set_nodelay(true);
    let dialogue = Dialogue {
        stream: BufReader::new(stream),
        shared,
        sender: None,
        recipients: Vec::new(),
    };
    if let Err(error) = dialogue.run().await {
        tracing::debug!(%error, "connection ended");
    }
}

impl Dialogue {
    async fn run(mut self) -> io::Result<()> {
        if self.rule(Stage::Connect, &[]).await? == Some(Next::End) {
            return Ok(());
        }
        self.say("220 smtp-sink ESMTP").await?;
        loop {
            let line = match self.read().await? {
                Line::Text(line, _) => String::from_utf8_lossy(&line).into_owned(),
                Line::TooLong => {
                    self.refuse("500 5.5.2 line too long").await?;
                    continue;
                }
                Line::End => return Ok(()),
            };
            if self.obey(&line).await? == Next::End {
                return Ok(());
            }
        }
    }

    async fn obey(&mut self, line: &str) -> io::Result<Next> {
        let (verb, argument) = line.split_once(' ').unwrap_or((line, ""));
        match verb.to_ascii_uppercase().as_str() {
            "EHLO" => {
                let size = format!("250-SIZE {SIZE_LIMIT}");
                let extensions = [
                    "250-smtp-sink",
                    &size,
                    "250-8BITMIME",
                    "250-SMTPUTF8",
                    "250-AUTH PLAIN",
                    "250 ENHANCEDSTATUSCODES",
                ];
                self.unless_ruled(Stage::Hello, &extensions.join("\r\n")).await
            }
            "HELO" => self.unless_ruled(Stage::Hello, "250 smtp-sink").await,
            "AUTH" => self.unless_ruled(Stage::Auth, "235 2.7.0 welcome").await,
            "MAIL" => self.take_sender(argument).await,
            "RCPT" => self.take_recipient(argument).await,
            "DATA" => self.take_data().await,
            "RSET" => {
                self.forget();
                self.say(OK).await
            }
            "NOOP" => self.say(OK).await,
            "QUIT" => {
                self.say("221 2.0.0 bye").await?;
                Ok(Next::End)
            }
            _ => self.refuse("500 5.5.1 unknown command").await,
        }
    }

    async fn take_sender(&mut self, argument: &str) -> io::Result<Next> {
        let Some(sender) = address(argument, "FROM:") else {
            return self.refuse("501 5.5.4 MAIL FROM:<address> is expected").await;
        };
        if let Some(next) = self.rule(Stage::Sender, &[]).await? {
            return Ok(next);
        }
        self.forget();
        self.sender = Some(sender);
        self.say(OK).await
    }

    async fn take_recipient(&mut self, argument: &str) -> io::Result<Next> {
        let recipient = address(argument, "TO:").filter(|recipient| !recipient.is_empty());
        let (Some(_), Some(recipient)) = (&self.sender, recipient) else {
            return self
                .refuse("503 5.5.1 RCPT TO:<address> is expected, after MAIL")
                .await;
        };
        if self.recipients.len() == RECIPIENT_LIMIT {
            return self.refuse("452 4.5.3 too many recipients").await;
        }
        if let Some(next) = self
            .rule(Stage::Recipient, std::slice::from_ref(&recipient))
            .await?
        {
            return Ok(next);
        }
        self.recipients.push(recipient);
        self.say(OK).await
    }

    async fn take_data(&mut self) -> io::Result<Next> {
        if self.recipients.is_empty() {
            return self.refuse("503 5.5.1 RCPT is expected first").await;
        }
        let recipients = self.recipients.clone();
        if let Some(next) = self.rule(Stage::Data, &recipients).await? {
            return Ok(next);
        }
        self.say("354 go on, end with a dot").await?;
        let Some(content) = self.content().await? else {
            return Ok(Next::End);
        };
        let Ok(content) = content else {
            self.forget();
            return self.refuse("552 5.3.4 the mail is too large").await;
        };
        let action = self.shared.action(Stage::Message, &recipients);
        if matches!(action, None | Some(Action::KeepAndClose | Action::KeepAndHang)) {
            self.keep(&content).await?;
        }
        self.forget();
        match action {
            None => self.say(OK).await,
            Some(action) => self.act(action).await,
        }
    }

    async fn keep(&mut self, content: &[u8]) -> io::Result<()> {
        let file = self.shared.spool.keep(content).await?;
        tracing::info!(file = %file.display(), "kept a mail");
        self.shared.count_mail(Received {
            sender: self.sender.clone().unwrap_or_default(),
            recipients: self.recipients.clone(),
            bytes: content.len(),
            file,
        });
        Ok(())
    }

    /// The content of a mail with the dots of its transport removed; an inner error when it is too large, `None` when
    /// the client left in the middle.
    async fn content(&mut self) -> io::Result<Option<Result<Vec<u8>, ()>>> {
        let (mut content, mut too_large) = (Vec::new(), false);
        loop {
            let (line, regular) = match self.read().await? {
                Line::End => return Ok(None),
                Line::TooLong => {
                    too_large = true;
                    continue;
                }
                Line::Text(line, regular) => (line, regular),
            };
            // A dot that ends with a bare LF ends nothing: taking it for the end is how mails are smuggled.
            if regular && line == b"." {
                return Ok(Some(if too_large { Err(()) } else { Ok(content) }));
            }
            let line = line.strip_prefix(b".").unwrap_or(&line);
            too_large = too_large || content.len() + line.len() > SIZE_LIMIT;
            if !too_large {
                content.extend_from_slice(line);
                content.extend_from_slice(if regular { b"\r\n" } else { b"\n" });
            }
        }
    }

    /// Answers, unless a rule does something else.
    async fn unless_ruled(&mut self, stage: Stage, answer: &str) -> io::Result<Next> {
        match self.rule(stage, &[]).await? {
            Some(next) => Ok(next),
            None => self.say(answer).await,
        }
    }

    /// Obeys the rule for this stage; `None` when there is none.
    async fn rule(&mut self, stage: Stage, recipients: &[String]) -> io::Result<Option<Next>> {
        match self.shared.action(stage, recipients) {
            None => Ok(None),
            Some(action) => self.act(action).await.map(Some),
        }
    }

    async fn act(&mut self, action: Action) -> io::Result<Next> {
        match action {
            Action::Answer(code, text) => {
                let answer = format!("{code} {text}");
                let next = if code >= 400 {
                    self.refuse(&answer).await?
                } else {
                    self.say(&answer).await?
                };
                // RFC 5321, 3.8: a server that says 421 closes the connection.
                Ok(if code == 421 { Next::End } else { next })
            }
            Action::Hang | Action::KeepAndHang => std::future::pending().await,
            Action::Close | Action::KeepAndClose => Ok(Next::End),
        }
    }

    async fn refuse(&mut self, answer: &str) -> io::Result<Next> {
        self.shared.count_refusal();
        self.say(answer).await
    }

    async fn say(&mut self, answer: &str) -> io::Result<Next> {
        let stream = self.stream.get_mut();
        stream.write_all(format!("{answer}\r\n").as_bytes()).await?;
        Ok(Next::Go)
    }

    async fn read(&mut self) -> io::Result<Line> {
        let line = tokio::time::timeout(SILENCE_LIMIT, read_line(&mut self.stream)).await;
        line.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    fn forget(&mut self) {
        self.sender = None;
        self.recipients.clear();
    }
}

/// The address of `FROM:<address> parameters`.
fn address(argument: &str, keyword: &str) -> Option<String> {
    let (head, rest) = argument.trim_start().split_at_checked(keyword.len())?;
    let inside = rest.trim_start().strip_prefix('<')?;
    let (address, _) = inside.split_once('>')?;
    head.eq_ignore_ascii_case(keyword).then(|| address.to_owned())
}
