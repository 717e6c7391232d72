//! A receiver that answers every request on its own terms, down to the bytes.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// What it does with each request that it has read completely.
#[derive(Clone)]
pub(crate) enum Conduct {
    /// Writes these bytes and reads on.
    Answer(Vec<u8>),
    /// Writes these bytes and says no more, with the connection open.
    AnswerAndStall(Vec<u8>),
    /// Writes these bytes and closes the connection.
    AnswerAndClose(Vec<u8>),
    /// Writes the first bytes, then the others for as long as the client takes them.
    Flood(Vec<u8>, Vec<u8>),
    /// Writes the first bytes, then the byte again and again, with pauses, for as long as the client takes them.
    Trickle(Vec<u8>, u8),
    /// Resets the connection.
    Reset,
}

/// Between two bytes of a trickle. So short that a limit on the pause alone would never end it.
const TRICKLE_PAUSE: Duration = Duration::from_millis(20);

/// Requests as they came, head and body.
type Requests = Arc<Mutex<Vec<String>>>;

pub(crate) struct Receiver {
    pub(crate) addr: SocketAddr,
    requests: Requests,
    connections: Arc<Mutex<usize>>,
    written: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn start(conduct: Conduct) -> Self {
        Self::listen(conduct, None).await
    }

    pub(crate) async fn start_tls(conduct: Conduct, acceptor: TlsAcceptor) -> Self {
        Self::listen(conduct, Some(acceptor)).await
    }

    async fn listen(conduct: Conduct, acceptor: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (requests, connections) = (Requests::default(), Arc::new(Mutex::new(0)));
        let written = Arc::new(AtomicU64::new(0));
        let accepting = tokio::spawn({
            let (requests, connections) = (requests.clone(), connections.clone());
            let written = written.clone();
            async move {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    *connections.lock().unwrap() += 1;
                    let (conduct, requests) = (conduct.clone(), requests.clone());
                    let (acceptor, written) = (acceptor.clone(), written.clone());
                    tokio::spawn(async move {
                        match acceptor {
                            None => serve(stream, conduct, requests, written).await,
                            // A client that refuses the certificate is what some tests are about.
                            Some(acceptor) => {
                                if let Ok(stream) = acceptor.accept(stream).await {
                                    converse(stream, conduct, requests, written).await;
                                }
                            }
                        }
                    });
                }
            }
        });
        Self {
            addr,
            requests,
            connections,
            written,
            accepting,
        }
    }

    /// How many bytes of floods the clients, or the buffers of the sockets, have taken.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::SeqCst)
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

async fn serve(mut stream: TcpStream, conduct: Conduct, requests: Requests, written: Arc<AtomicU64>) {
    if !matches!(conduct, Conduct::Reset) {
        return converse(stream, conduct, requests, written).await;
    }
    if let Some(request) = read_request(&mut stream).await {
        requests.lock().unwrap().push(request);
        stream.set_zero_linger().unwrap();
    }
}

/// Ends when the other side goes away.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    conduct: Conduct,
    requests: Requests,
    written: Arc<AtomicU64>,
) {
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
                let _ = stream.shutdown().await;
                return;
            }
            Conduct::Flood(head, chunk) => {
                stream.write_all(head).await.unwrap();
                while stream.write_all(chunk).await.is_ok() {
                    written.fetch_add(chunk.len() as u64, Ordering::SeqCst);
                }
                return;
            }
            Conduct::Trickle(head, byte) => {
                stream.write_all(head).await.unwrap();
                let mut pauses = tokio::time::interval(TRICKLE_PAUSE);
                while stream.write_all(&[*byte]).await.is_ok() {
                    pauses.tick().await;
                }
                return;
            }
            Conduct::Reset => return,
        }
    }
}

async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> Option<String> {
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
