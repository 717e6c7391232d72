//! Requests over plain HTTP/1.1, on connections that are kept: as much of a client as the hop to a connection node needs.
//!
//! It deliberately knows no TLS, no redirects, no proxies and no bodies of answers. A client that knows them parses the URL, clones its connector
//! and copies the headers for each request, which on this path is a good part of all that is computed for a message.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use hyper::body::Body as _;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::IDLE;

type Connection = SendRequest<Full<Bytes>>;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// The other end takes no connection, or not in time.
    #[error("failed to connect")]
    Connecting(#[source] io::Error),
    /// The connection broke.
    #[error("failed to get an answer")]
    Answering(#[source] hyper::Error),
}

/// The client.
pub(super) struct Plain {
    connect_timeout: Duration,
    idle: Mutex<Idle>,
}

struct Idle {
    /// By host and port; the one that was used last comes last.
    connections: HashMap<Box<str>, Vec<(Connection, Instant)>>,
    tidied_at: Instant,
}

impl Plain {
    pub(super) fn new(connect_timeout: Duration) -> Self {
        Self {
            connect_timeout,
            idle: Mutex::new(Idle {
                connections: HashMap::new(),
                tidied_at: Instant::now(),
            }),
        }
    }

    /// Sends a request, whose URI is its path, to a host and port; returns the status of the answer.
    pub(super) async fn ask(
        &self,
        authority: &str,
        mut request: Request<Full<Bytes>>,
    ) -> Result<StatusCode, Failed> {
        loop {
            let kept = self.take(authority);
            let is_kept = kept.is_some();
            let mut connection = match kept {
                Some(connection) => connection,
                None => self.connect(authority).await?,
            };
            match connection.ready().await {
                Ok(()) => {}
                // The other end has closed it meanwhile.
                Err(_) if is_kept => continue,
                Err(error) => return Err(Failed::Answering(error)),
            }
            match connection.try_send_request(request).await {
                Ok(answer) => {
                    // What follows on a connection after a body that was not read is not the next answer.
                    if answer.body().is_end_stream() {
                        self.keep(authority, connection);
                    }
                    return Ok(answer.status());
                }
                Err(mut error) => match error.take_message() {
                    // It was closed in this moment, and nothing has been sent.
                    Some(unsent) if is_kept => request = unsent,
                    _ => return Err(Failed::Answering(error.into_error())),
                },
            }
        }
    }

    async fn connect(&self, authority: &str) -> Result<Connection, Failed> {
        let opening = async {
            let stream = TcpStream::connect(authority).await?;
            stream.set_nodelay(true)?;
            io::Result::Ok(stream)
        };
        let opened = timeout(self.connect_timeout, opening).await;
        let opened = opened.unwrap_or_else(|late| Err(late.into()));
        let stream = opened.map_err(Failed::Connecting)?;
        let opened = http1::handshake(TokioIo::new(stream)).await;
        let (connection, work): (Connection, _) = opened.map_err(Failed::Answering)?;
        // It ends when the other end closes, or when the connection is dropped here.
        tokio::spawn(async move {
            if let Err(error) = work.await {
                tracing::debug!(%error, "a connection to a node ended early");
            }
        });
        Ok(connection)
    }

    fn take(&self, authority: &str) -> Option<Connection> {
        let mut idle = self.idle();
        let (connection, since) = idle.connections.get_mut(authority)?.pop()?;
        // Where the last one is too old, all are.
        (since.elapsed() < IDLE).then_some(connection)
    }

    fn keep(&self, authority: &str, connection: Connection) {
        let now = Instant::now();
        let mut idle = self.idle();
        if now - idle.tidied_at >= IDLE {
            idle.tidied_at = now;
            idle.connections.retain(|_, kept| {
                kept.retain(|(connection, since)| now - *since < IDLE && !connection.is_closed());
                !kept.is_empty()
            });
        }
        match idle.connections.get_mut(authority) {
            Some(kept) => kept.push((connection, now)),
            None => {
                idle.connections.insert(authority.into(), vec![(connection, now)]);
            }
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        // A map of plain values cannot be left half-written by a panicking holder.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The host and port of a URL, and its path, if it is no more than that.
pub(super) fn parts(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find('/')?);
    let (host, port) = authority.rsplit_once(':')?;
    let of_a_host =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'[' | b']' | b':');
    let is_plain = !host.is_empty() && host.bytes().all(of_a_host) && port.parse::<u16>().is_ok();
    is_plain.then_some((authority, path))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use testkit::{PATIENCE, eventually};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// A node that gives one answer, so many times on a connection.
    struct Node {
        authority: String,
        connections: Arc<AtomicUsize>,
    }

    impl Node {
        async fn start(answer: &'static str, times: usize) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let authority = listener.local_addr().unwrap().to_string();
            let connections = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&connections);
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    counted.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(async move {
                        for _ in 0..times {
                            let mut head = Vec::new();
                            while !head.ends_with(b"\r\n\r\n") {
                                head.push(stream.read_u8().await?);
                            }
                            stream.write_all(answer.as_bytes()).await?;
                        }
                        io::Result::Ok(())
                    });
                }
            });
            Self {
                authority,
                connections,
            }
        }

        async fn ask(&self, client: &Plain) -> Result<StatusCode, Failed> {
            let request = Request::put("/notif/x").header("host", &self.authority);
            client
                .ask(&self.authority, request.body(Full::default()).unwrap())
                .await
        }

        fn connections(&self) -> usize {
            self.connections.load(Ordering::Relaxed)
        }
    }

    const EMPTY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

    #[tokio::test]
    async fn one_request_after_another_takes_one_connection() {
        let (node, client) = (Node::start(EMPTY, 3).await, Plain::new(PATIENCE));
        for _ in 0..3 {
            assert_eq!(node.ask(&client).await.unwrap(), StatusCode::OK);
        }
        assert_eq!(node.connections(), 1);
    }

    #[tokio::test]
    async fn a_connection_that_the_other_end_has_closed_is_not_used() {
        let (node, client) = (Node::start(EMPTY, 1).await, Plain::new(PATIENCE));
        node.ask(&client).await.unwrap();
        eventually("the connection is closed", async || {
            let idle = client.idle();
            let kept = &idle.connections[node.authority.as_str()];
            kept[0].0.is_closed().then_some(())
        })
        .await;
        assert_eq!(node.ask(&client).await.unwrap(), StatusCode::OK);
        assert_eq!(node.connections(), 2);
    }

    #[tokio::test]
    async fn a_connection_with_a_body_that_was_not_read_is_not_kept() {
        let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno";
        let (node, client) = (Node::start(answer, 2).await, Plain::new(PATIENCE));
        for connections in 1..=2 {
            assert_eq!(node.ask(&client).await.unwrap(), StatusCode::NOT_FOUND);
            assert_eq!(node.connections(), connections);
        }
    }

    #[tokio::test]
    async fn a_node_that_takes_no_connection_and_one_that_does_not_answer_are_told_apart() {
        let (node, client) = (Node::start("", 1).await, Plain::new(PATIENCE));
        let answered = node.ask(&client).await;
        assert!(matches!(answered, Err(Failed::Answering(_))), "{answered:?}");
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority = free.local_addr().unwrap().to_string();
        drop(free);
        let nothing = Node { authority, ..node };
        let refused = nothing.ask(&client).await;
        assert!(matches!(refused, Err(Failed::Connecting(_))), "{refused:?}");
    }

    #[test]
    fn only_plain_urls_are_taken_apart() {
        for (url, expected) in [
            (
                "http://127.0.0.1:8085/push/a",
                Some(("127.0.0.1:8085", "/push/a")),
            ),
            ("http://[::1]:8085/push/a", Some(("[::1]:8085", "/push/a"))),
            (
                "http://node-1.internal:8085/below/push/a",
                Some(("node-1.internal:8085", "/below/push/a")),
            ),
            ("https://node:8085/push/a", None),
            ("http://node/push/a", None),
            ("http://[::1]/push/a", None),
            ("http://user:secret@node:8085/push/a", None),
            ("http://node:99999/push/a", None),
            ("http://:8085/push/a", None),
            ("http://node:8085", None),
        ] {
            assert_eq!(parts(url), expected, "{url}");
        }
    }
}
