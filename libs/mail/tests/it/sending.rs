//! Mails on their way to a real server, and what its answers mean.

use std::time::Duration;

use mail::{Envelope, MailServer, SendError, Session, Settings};
use simulators::smtp::{Action, Rule, Running, SmtpSink, Stage};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::{at, change};

struct Post {
    sink: Running,
    server: MailServer,
    _folder: TempDir,
}

impl Post {
    async fn open() -> Self {
        Self::open_with(Duration::from_secs(30), "").await
    }

    async fn open_with(timeout: Duration, user: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let sink = SmtpSink::start(listener, folder.path()).unwrap();
        let server = MailServer::new(&Settings {
            url: format!("smtp://{user}{}", sink.addr()),
            from: "Postrider Ägypten <postrider@example.org>".to_owned(),
            timeout,
            dashboard: None,
        });
        Self {
            sink,
            server: server.unwrap(),
            _folder: folder,
        }
    }

    fn mail(&self, recipient: &str) -> Envelope {
        let mut letter = change("ACTIVE", "PENDING_VERIFICATION", "VERIFIED");
        letter.recipient = recipient.to_owned();
        letter.data["description"] = "Straße\n.dots".into();
        self.server.compose(&letter, at("2026-11-21T09:40:00Z")).unwrap()
    }

    async fn session(&self) -> Session {
        self.server.connect().await.unwrap()
    }

    async fn send(&self, session: &mut Session, recipient: &str) -> Result<(), SendError> {
        session.send(&self.mail(recipient)).await
    }

    fn rule(&self, stage: Stage, code: u16, text: &str) {
        let action = Action::Answer(code, text.to_owned());
        self.sink.script(vec![Rule::always(stage, action).times(1)]);
    }

    fn kept(&self) -> usize {
        self.sink.report().mails.len()
    }
}

#[tokio::test]
async fn a_mail_arrives_with_both_forms_and_the_headers_of_a_robot() {
    let post = Post::open().await;
    let mut session = post.session().await;
    post.send(&mut session, "ops@example.org").await.unwrap();
    post.send(&mut session, "two@example.org").await.unwrap();
    session.quit().await;
    let report = post.sink.report();
    assert_eq!((report.connections, report.kept), (1, 2));
    let mail = &report.mails[0];
    assert_eq!(mail.sender, "postrider@example.org");
    assert_eq!(mail.recipients, ["ops@example.org"]);
    let content = std::fs::read_to_string(&mail.file).unwrap();
    assert!(content.is_ascii());
    for part in [
        "Message-ID: <01934c5e000070008000000000000001.1@example.org>\r\n",
        "To: ops@example.org\r\n",
        // When it was sent, not when it began to wait.
        "Date: Sat, 21 Nov 2026 09:40:00 +0000\r\n",
        "Auto-Submitted: auto-generated\r\n",
        "Content-Type: multipart/alternative;",
        "Content-Type: text/plain; charset=utf-8\r\n",
        "Content-Type: text/html; charset=utf-8\r\n",
        "MIME-Version: 1.0\r\n",
    ] {
        assert!(content.contains(part), "{part} is missing in\n{content}");
    }
    assert!(content.lines().all(|line| line.len() <= 998));
}

#[tokio::test]
async fn a_recipient_that_does_not_exist_is_refused_for_good_and_the_session_goes_on() {
    let post = Post::open().await;
    let mut session = post.session().await;
    for stage in [Stage::Recipient, Stage::Message] {
        post.rule(stage, 550, "5.1.1 no such user");
        let error = post.send(&mut session, "gone@example.org").await.unwrap_err();
        assert!(error.is_final() && !error.concerns_the_server(), "{error:?}");
        assert_eq!(
            error.to_string(),
            "the mail server refused the mail: 550 5.1.1 no such user"
        );
        assert!(session.is_usable());
    }
    post.send(&mut session, "ops@example.org").await.unwrap();
    assert_eq!((post.kept(), post.sink.report().connections), (1, 1));
}

#[tokio::test]
async fn what_may_pass_or_be_mended_is_refused_for_now() {
    let post = Post::open().await;
    let mut session = post.session().await;
    for (stage, code, text) in [
        (Stage::Recipient, 450, "4.2.0 greylisted"),
        (Stage::Message, 452, "4.3.1 disk full"),
        (Stage::Recipient, 554, "5.7.1 relay access denied"),
        (Stage::Data, 530, "authentication required"),
    ] {
        post.rule(stage, code, text);
        let error = post.send(&mut session, "ops@example.org").await.unwrap_err();
        assert!(
            matches!(&error, SendError::NotNow(answer) if answer.starts_with(&code.to_string())),
            "{error:?}"
        );
        assert!(session.is_usable());
    }
    post.send(&mut session, "ops@example.org").await.unwrap();
}

#[tokio::test]
async fn what_concerns_every_mail_ends_the_session() {
    let post = Post::open_with(Duration::from_secs(3), "").await;
    let answer = |code, text: &str| Action::Answer(code, text.to_owned());
    for (stage, action) in [
        (Stage::Sender, answer(550, "5.1.8 unknown sender")),
        (Stage::Recipient, answer(421, "4.3.2 shutting down")),
        (Stage::Recipient, Action::Close),
        (Stage::Data, Action::Hang),
        (Stage::Message, Action::KeepAndClose),
    ] {
        let mut session = post.session().await;
        post.sink.script(vec![Rule::always(stage, action).times(1)]);
        let error = post.send(&mut session, "ops@example.org").await.unwrap_err();
        assert!(error.concerns_the_server() && !session.is_usable(), "{error:?}");
    }
    assert_eq!(post.kept(), 1);
}

#[tokio::test]
async fn a_server_that_refuses_the_session_or_is_silent_or_away_is_told_apart_from_refused_mails() {
    let post = Post::open_with(Duration::from_secs(3), "user:hush@").await;
    for (stage, action) in [
        (Stage::Connect, Action::Hang),
        (Stage::Connect, Action::Close),
        (Stage::Connect, Action::Answer(554, "no".to_owned())),
        (Stage::Hello, Action::Answer(550, "no".to_owned())),
        (
            Stage::Auth,
            Action::Answer(535, "5.7.8 wrong password".to_owned()),
        ),
    ] {
        post.sink.script(vec![Rule::always(stage, action).times(1)]);
        let error = post.server.connect().await.unwrap_err();
        assert!(error.concerns_the_server() && !error.is_final(), "{error:?}");
        assert!(!format!("{error:?}").contains("hush"));
    }
    post.session().await.quit().await;
    post.sink.shutdown().await;
    assert!(post.server.connect().await.unwrap_err().concerns_the_server());
}

#[tokio::test]
async fn letters_that_cannot_be_composed_are_told_before_anything_is_sent() {
    let post = Post::open().await;
    let mut letter = change("ACTIVE", "DEGRADED", "RECOVERED");
    letter.recipient = "a@example.org\r\nRCPT TO:<b@example.org>".to_owned();
    assert!(matches!(
        post.server.compose(&letter, letter.created_at),
        Err(mail::Unreadable::Recipient(_))
    ));
}

#[tokio::test]
async fn nothing_is_said_to_a_server_that_does_not_encrypt_when_that_is_required() {
    let post = Post::open().await;
    let server = MailServer::new(&Settings {
        url: format!("smtp://user:hush@{}?tls=required", post.sink.addr()),
        from: "postrider@example.org".to_owned(),
        timeout: Duration::from_secs(30),
        dashboard: None,
    })
    .unwrap();
    // It would refuse a password, so that the error tells whether it was given one.
    let no = Action::Answer(535, "5.7.8 wrong password".to_owned());
    post.sink.script(vec![Rule::always(Stage::Auth, no)]);
    let error = server.connect().await.unwrap_err();
    assert!(error.concerns_the_server());
    assert_eq!(post.sink.report().refused, 0);
}
