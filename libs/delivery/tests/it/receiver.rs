//! A receiver that answers every request on its own terms, down to the bytes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What it does with each request that it has read completely.
#[derive(Clone)]
pub(crate) enum Conduct {
    /// Writes these bytes and reads on.
    Answer(Vec<u8>),
    /// Writes these bytes and says no more, with the connection open.
    AnswerAndStall(Vec<u8>),
    /// Writes these bytes and closes the connection.
    AnswerAndClose(Vec<u8>),
    /// Writes the first bytes, then the others for as long as somebody takes them.
    Flood(Vec<u8>, Vec<u8>),
}

/// Requests as they came, head and body.
type Requests = Arc<Mutex<Vec<String>>>;

pub(crate) struct Receiver {
    pub(crate) addr: SocketAddr,
    requests: Requests,
    connections: Arc<Mutex<usize>>,
    accepting: JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn start(conduct: Conduct) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (requests, connections) = (Requests::default(), Arc::new(Mutex::new(0)));
        let accepting = tokio::spawn({
            let (requests, connections) = (requests.clone(), connections.clone());
            async move {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    *connections.lock().unwrap() += 1;
                    tokio::spawn(converse(stream, conduct.clone(), requests.clone()));
                }
            }
        });
        Self {
            addr,
            requests,
            connections,
            accepting,
        }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// An answer with a body of the declared length.
pub(crate) fn answer(status_line: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status_line}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Ends when the other side goes away.
async fn converse(mut stream: TcpStream, conduct: Conduct, requests: Requests) {
    while let Some(request) = read_request(&mut stream).await {
        requests.lock().unwrap().push(request);
        match &conduct {
            Conduct::Answer(bytes) => stream.write_all(bytes).await.unwrap(),
            Conduct::AnswerAndStall(bytes) => {
                stream.write_all(bytes).await.unwrap();
                let _ = stream.read(&mut [0; 1]).await;
                return;
            }
            Conduct::AnswerAndClose(bytes) => {
                stream.write_all(bytes).await.unwrap();
                return;
            }
            Conduct::Flood(head, chunk) => {
                stream.write_all(head).await.unwrap();
                while stream.write_all(chunk).await.is_ok() {}
                return;
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8(bytes.clone()).ok()?;
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
    }
}
