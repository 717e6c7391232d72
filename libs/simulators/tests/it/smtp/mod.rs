//! The sink over real connections, spoken to in plain SMTP.

mod failing;
mod taking;

use std::path::Path;
use std::time::Duration;

use simulators::smtp::{Running, SmtpSink};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// Long enough to see that nothing comes.
const MOMENT: Duration = Duration::from_millis(100);

struct Sink {
    running: Running,
    folder: TempDir,
}

impl Sink {
    async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self {
            running: SmtpSink::start(listener, &folder.path().join("mail")).unwrap(),
            folder,
        }
    }

    fn files(&self) -> Vec<Vec<u8>> {
        files(&self.folder.path().join("mail"))
    }

    async fn client(&self) -> Client {
        let stream = TcpStream::connect(self.running.addr()).await.unwrap();
        Client(BufReader::new(stream))
    }

    /// A client that has been greeted and has greeted.
    async fn greeted(&self) -> Client {
        let mut client = self.client().await;
        assert!(client.answer().await.starts_with("220 "));
        client.expect("HELO test", "250 ").await;
        client
    }
}

/// The contents of a folder in the order of the names.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    names.iter().map(|name| std::fs::read(name).unwrap()).collect()
}

struct Client(BufReader<TcpStream>);

impl Client {
    /// The next line of an answer; empty when the connection is closed.
    async fn answer(&mut self) -> String {
        let mut line = String::new();
        let read = self.0.read_line(&mut line);
        tokio::time::timeout(PATIENCE, read)
            .await
            .expect("an answer comes")
            .unwrap_or_default();
        line
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).await.unwrap();
    }

    async fn ask(&mut self, command: &str) -> String {
        self.write(format!("{command}\r\n").as_bytes()).await;
        self.answer().await
    }

    async fn expect(&mut self, command: &str, answer: &str) {
        let said = self.ask(command).await;
        assert!(said.starts_with(answer), "{command:?} was answered {said:?}");
    }

    /// Says all that precedes the content.
    async fn begin(&mut self, recipient: &str) {
        self.expect("MAIL FROM:<a@example.org>", "250 ").await;
        self.expect(&format!("RCPT TO:<{recipient}>"), "250 ").await;
        self.expect("DATA", "354 ").await;
    }

    async fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        let read = self.0.read_to_end(&mut rest);
        tokio::time::timeout(PATIENCE, read).await.is_ok() && rest.is_empty()
    }

    async fn is_silent(&mut self) -> bool {
        let mut byte = [0];
        tokio::time::timeout(MOMENT, self.0.read(&mut byte))
            .await
            .is_err()
    }
}
