//! Sends the mails of the outbox. A mail server that is away delays them; none is lost, and one whose arrival was not
//! confirmed is sent again, with the same `Message-ID`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use config::Config;
use domain::email::retry_delay;
use futures::future::join_all;
use lifecycle::error_chain;
use mail::{MailServer, SendError, Session, Settings, SettingsError, StoredMail};
use store::webhook::{Addresses, ClaimedEmail, Postponement, PutBack};
use telemetry::Metric;

use crate::context::Context;
use crate::periodic::{Job, JobError};

/// Mails claimed in one statement.
const BATCH: u32 = 16;
/// Mails sent at once, each over a connection of its own.
const LANES: usize = 4;
/// Longer than an execution can take: whose lease ran out is not being sent any more.
const LEASE: Duration = Duration::from_secs(120);
/// After this time an execution begins nothing new, so that it ends before it is given up.
const BEGINNING_LIMIT: Duration = Duration::from_secs(15);
/// Sessions that may break before the rest waits.
const BREAKS: u32 = 3;
/// Mails put off in one statement, because their address is not confirmed.
const HELD: u32 = 100;
/// Mails rescued in one execution.
const RESCUED: u32 = 100;

pub(crate) struct Mailer {
    /// `None`: mails wait.
    server: Option<MailServer>,
    /// Whether the last thing that was known of the server is that it does not work.
    is_away: AtomicBool,
}

/// What the lanes of one execution share.
struct Round {
    mails: Mutex<VecDeque<ClaimedEmail>>,
    /// Nothing is sent any more, for this reason; what is left waits again.
    halted: Mutex<Option<String>>,
    breaks: AtomicU32,
    until: Instant,
}

/// What became of one mail.
enum Fate {
    Sent,
    /// It will never be sent.
    Failed(String),
    /// It is tried again.
    Postponed(String),
}

impl Mailer {
    pub(crate) fn new(config: &Config) -> Result<Self, SettingsError> {
        let (mail, portal) = (&config.mail, &config.portal);
        let server = mail.smtp_url.as_ref().map(|url| {
            MailServer::new(&Settings {
                url: url.expose().to_owned(),
                from: mail.from.clone(),
                timeout: mail.timeout,
                dashboard: portal
                    .public_url
                    .as_ref()
                    .filter(|_| portal.app)
                    .map(|url| format!("{url}/app")),
            })
        });
        if server.is_none() {
            tracing::warn!("mail.smtpUrl is not set: mails to resellers wait");
        }
        Ok(Self {
            server: server.transpose()?,
            is_away: AtomicBool::new(false),
        })
    }

    /// Sends what was claimed.
    async fn send_all(
        &self,
        server: &MailServer,
        context: &Context,
        mails: Vec<ClaimedEmail>,
        until: Instant,
    ) -> Result<bool, JobError> {
        let lanes = mails.len().min(LANES);
        let round = Round {
            mails: Mutex::new(mails.into()),
            halted: Mutex::default(),
            breaks: AtomicU32::new(0),
            until,
        };
        // Joined, not raced: a lane that is dropped in the middle of a mail would send it twice.
        for ended in join_all((0..lanes).map(|_| self.run_lane(server, context, &round))).await {
            ended?;
        }
        Ok(round.halted().is_none())
    }

    async fn run_lane(&self, server: &MailServer, context: &Context, round: &Round) -> Result<(), JobError> {
        let mut session = None;
        while let Some(mail) = round.next() {
            let fate = match round.halted() {
                Some(reason) => Fate::Postponed(reason),
                None => {
                    let at = context.clock.now();
                    self.send((server, at), round, &mut session, &mail).await
                }
            };
            if let Err(error) = settle(context, &mail, fate).await {
                // What cannot be recorded now would be sent twice: better not to send more of it.
                round.halt("the database failed");
                return Err(error);
            }
        }
        if let Some(session) = session {
            session.quit().await;
        }
        Ok(())
    }

    async fn send(
        &self,
        (server, at): (&MailServer, DateTime<Utc>),
        round: &Round,
        session: &mut Option<Session>,
        mail: &ClaimedEmail,
    ) -> Fate {
        let envelope = match server.compose(&stored(mail), at) {
            Ok(envelope) => envelope,
            Err(error) => {
                tracing::error!(mail.id = %mail.id, error = error_chain(&error), "a mail cannot be composed");
                return Fate::Failed(error_chain(&error));
            }
        };
        let usable = match session.take().filter(Session::is_usable) {
            Some(usable) => Ok(usable),
            None => server.connect().await,
        };
        let sent = match usable {
            Ok(usable) => session.insert(usable).send(&envelope).await,
            Err(error) => {
                self.note_absence(&error);
                round.halt(&error_chain(&error));
                return Fate::Postponed(error_chain(&error));
            }
        };
        match sent {
            Ok(()) => {
                self.note_presence();
                Fate::Sent
            }
            Err(error) if error.is_final() => Fate::Failed(error_chain(&error)),
            Err(error) => {
                if error.concerns_the_server() {
                    self.note_absence(&error);
                    round.note_break(&error);
                }
                Fate::Postponed(error_chain(&error))
            }
        }
    }

    /// Logged when it begins, not each time that it is noticed again.
    fn note_absence(&self, error: &SendError) {
        if !self.is_away.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                error = error_chain(error),
                "the mail server does not work; mails wait"
            );
        }
    }

    fn note_presence(&self) {
        if self.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!("the mail server works again");
        }
    }
}

impl Job for Mailer {
    const NAME: &'static str = "mailer";
    const INTERVAL: Duration = Duration::from_secs(1);

    async fn execute(&self, context: &Context) -> Result<(), JobError> {
        let until = Instant::now() + BEGINNING_LIMIT;
        let Some(server) = &self.server else {
            return Ok(());
        };
        let rescued = context
            .store
            .rescue_emails(RESCUED, postponement(context, 1))
            .await?;
        if rescued > 0 {
            tracing::warn!(mails = rescued, "rescued mails whose sending was interrupted");
        }
        loop {
            let mails = claim(context).await?;
            let is_last = mails.len() < BATCH as usize;
            let goes_on = self.send_all(server, context, mails, until).await?;
            if is_last || !goes_on || Instant::now() >= until {
                return Ok(());
            }
        }
    }
}

/// Takes mails to send; those for addresses that their owners have not confirmed are put off.
async fn claim(context: &Context) -> Result<Vec<ClaimedEmail>, JobError> {
    let (store, now) = (&context.store, context.clock.now());
    let addresses = Addresses::confirmed_if(context.config.mail.confirm_addresses);
    if addresses == Addresses::Confirmed {
        let max_age = context.config.mail.max_age;
        let ended = store.hold_unconfirmed_emails(now, HELD, max_age).await?;
        Metric::EmailsFailed.increment(ended);
    }
    Ok(store.claim_emails(now, BATCH, LEASE, addresses).await?)
}

impl Round {
    fn next(&self) -> Option<ClaimedEmail> {
        self.mails
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }

    fn halt(&self, reason: &str) {
        let mut halted = self.halted.lock().unwrap_or_else(PoisonError::into_inner);
        halted.get_or_insert_with(|| reason.to_owned());
    }

    /// A session broke. One mail alone may do that to a server; a silent one, or a third break, is no mail's fault.
    fn note_break(&self, error: &SendError) {
        let earlier = self.breaks.fetch_add(1, Ordering::Relaxed);
        if matches!(error, SendError::Silent(_)) || earlier + 1 >= BREAKS {
            self.halt(&error_chain(error));
        }
    }

    fn halted(&self) -> Option<String> {
        let halted = self.halted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        halted.or_else(|| (Instant::now() >= self.until).then(|| "the mail server is slow".to_owned()))
    }
}

/// Records what became of a mail.
async fn settle(context: &Context, mail: &ClaimedEmail, fate: Fate) -> Result<(), JobError> {
    let now = context.clock.now();
    match fate {
        Fate::Sent => {
            context
                .store
                .end_email(mail.id, mail.lease_token, None, now)
                .await?;
            Metric::EmailsSent.increment(1);
            tracing::info!(mail.id = %mail.id, kind = %mail.kind, subscription.id = %mail.subscription_id, "sent a mail");
        }
        Fate::Failed(error) => {
            context
                .store
                .end_email(mail.id, mail.lease_token, Some(&error), now)
                .await?;
            failed(mail, &error);
        }
        Fate::Postponed(error) => {
            let postponement = postponement(context, mail.attempts);
            let put_back = context
                .store
                .put_email_back(mail.id, mail.lease_token, &error, postponement)
                .await?;
            if put_back == PutBack::Failed {
                failed(mail, &error);
            }
        }
    }
    Ok(())
}

fn failed(mail: &ClaimedEmail, error: &str) {
    Metric::EmailsFailed.increment(1);
    tracing::warn!(mail.id = %mail.id, kind = %mail.kind, subscription.id = %mail.subscription_id, error, "gave a mail up");
}

fn postponement(context: &Context, attempts: u32) -> Postponement {
    Postponement {
        at: context.clock.now(),
        delay: retry_delay(context.config.mail.retry_delay, attempts),
        max_age: context.config.mail.max_age,
    }
}

fn stored(mail: &ClaimedEmail) -> StoredMail {
    StoredMail {
        id: mail.id,
        kind: mail.kind,
        subscription_id: mail.subscription_id,
        recipient: mail.recipient.clone(),
        data: mail.data.clone(),
        occurrences: mail.occurrences,
        created_at: mail.created_at,
    }
}
