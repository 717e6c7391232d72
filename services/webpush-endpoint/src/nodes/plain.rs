//! Requests over plain HTTP/1.1, on connections that are kept: as much of a client as the hop to a connection node needs.
//!
//! Who asks writes the request with one call and reads the answer itself: a connection has no task of its own that would have to be
//! woken twice for each message.
//!
//! It deliberately knows no TLS, no redirects, no proxies and no bodies of answers. A client that knows them parses the URL, makes
//! maps of headers and hands the request to another task, which on this path is a good part of all that is computed for a message.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::StatusCode;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::IDLE;

/// Bytes of an answer that are read at once: all of one of our nodes.
const READ: usize = 1024;
/// Longest head of an answer, in bytes, and most headers in it.
const HEAD_BYTES: usize = 16 * 1024;
const HEADERS: usize = 64;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    /// The other end takes no connection, or not in time.
    #[error("failed to connect")]
    Connecting(#[source] io::Error),
    /// The connection broke, or what came on it is no answer.
    #[error("failed to get an answer")]
    Answering(#[source] io::Error),
}

/// What is asked.
pub(super) struct Request<'a> {
    /// The host and port.
    pub(super) authority: &'a str,
    pub(super) path: &'a str,
    pub(super) traceparent: Option<&'a str>,
    /// JSON, or nothing.
    pub(super) body: &'a [u8],
}

/// The client.
pub(super) struct Plain {
    connect_timeout: Duration,
    idle: Mutex<Idle>,
}

struct Idle {
    /// By host and port; the one that was used last comes last.
    connections: HashMap<Box<str>, Vec<(TcpStream, Instant)>>,
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

    /// Sends a PUT; returns the status of the answer. It is sent once: what a connection that breaks has carried is not known.
    pub(super) async fn put(&self, request: &Request<'_>) -> Result<StatusCode, Failed> {
        let mut connection = match self.take(request.authority) {
            Some(connection) => connection,
            None => self.connect(request.authority).await?,
        };
        let exchanged = exchange(&mut connection, &request.on_the_wire()).await;
        let answer = exchanged.map_err(Failed::Answering)?;
        if answer.is_all {
            self.keep(request.authority, connection);
        }
        Ok(answer.status)
    }

    async fn connect(&self, authority: &str) -> Result<TcpStream, Failed> {
        let opening = async {
            let stream = TcpStream::connect(authority).await?;
            stream.set_nodelay(true)?;
            io::Result::Ok(stream)
        };
        let opened = timeout(self.connect_timeout, opening).await;
        let opened = opened.unwrap_or_else(|late| Err(late.into()));
        opened.map_err(Failed::Connecting)
    }

    /// A kept connection that is still open.
    fn take(&self, authority: &str) -> Option<TcpStream> {
        let mut idle = self.idle();
        let kept = idle.connections.get_mut(authority)?;
        while let Some((connection, since)) = kept.pop() {
            if since.elapsed() >= IDLE {
                // Those before it have rested for longer.
                kept.clear();
            } else if is_open(&connection) {
                return Some(connection);
            }
        }
        None
    }

    fn keep(&self, authority: &str, connection: TcpStream) {
        let now = Instant::now();
        let mut idle = self.idle();
        if now - idle.tidied_at >= IDLE {
            idle.tidied_at = now;
            idle.connections.retain(|_, kept| {
                kept.retain(|(connection, since)| now - *since < IDLE && is_open(connection));
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

/// Whether the other end has neither closed a connection nor said anything on it that was not asked for. A call of the operating system only
/// where something has happened.
fn is_open(connection: &TcpStream) -> bool {
    connection
        .try_read(&mut [0])
        .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

async fn exchange(connection: &mut TcpStream, request: &[u8]) -> io::Result<Answer> {
    connection.write_all(request).await?;
    let mut read = Vec::with_capacity(READ);
    while read.len() < HEAD_BYTES {
        if connection.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(answer) = Answer::read(&read)? {
            return Ok(answer);
        }
    }
    Err(io::Error::other("the head of the answer is too long"))
}

impl Request<'_> {
    fn on_the_wire(&self) -> Vec<u8> {
        let Self {
            authority,
            path,
            traceparent,
            body,
        } = self;
        let mut head = format!(
            "PUT {path} HTTP/1.1\r\nhost: {authority}\r\ncontent-length: {}\r\n",
            body.len()
        );
        if !body.is_empty() {
            head.push_str("content-type: application/json\r\n");
        }
        if let Some(traceparent) = traceparent {
            head.push_str("traceparent: ");
            head.push_str(traceparent);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        let mut request = head.into_bytes();
        request.extend_from_slice(body);
        request
    }
}

/// The head of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: StatusCode,
    /// It has no body and its connection stays, so that what follows on it is the next answer.
    is_all: bool,
}

impl Answer {
    /// `None` while the head is not complete.
    fn read(mut bytes: &[u8]) -> io::Result<Option<Self>> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; HEADERS];
            let mut head = httparse::Response::new(&mut headers);
            let parsed = head.parse(bytes).map_err(io::Error::other)?;
            let httparse::Status::Complete(length) = parsed else {
                return Ok(None);
            };
            let status = StatusCode::from_u16(head.code.unwrap_or_default()).map_err(io::Error::other)?;
            let rest = bytes.get(length..).unwrap_or_default();
            if status.is_informational() {
                // The answer is still to come.
                bytes = rest;
                continue;
            }
            let has = |name: &str| head.headers.iter().any(|it| it.name.eq_ignore_ascii_case(name));
            // Of two that differ one is wrong, and what follows may be a body.
            let says_more = |it: &httparse::Header<'_>| {
                it.name.eq_ignore_ascii_case("content-length") && it.value != b"0"
            };
            let is_empty =
                has("content-length") && !head.headers.iter().any(says_more) && !has("transfer-encoding");
            let stays = head.version == Some(1) && !has("connection");
            return Ok(Some(Self {
                status,
                is_all: is_empty && stays && rest.is_empty(),
            }));
        }
    }
}

/// The host and port of a URL, and its path, if it is no more than that.
pub(super) fn parts(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find('/')?);
    let (host, port) = authority.rsplit_once(':')?;
    let of_a_host =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'[' | b']' | b':');
    let is_plain = !host.is_empty()
        && host.bytes().all(of_a_host)
        && port.parse::<u16>().is_ok()
        && path.bytes().all(|byte| byte.is_ascii_graphic());
    is_plain.then_some((authority, path))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use testkit::{PATIENCE, eventually};
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
            let request = Request {
                authority: &self.authority,
                path: "/notif/x",
                traceparent: None,
                body: &[],
            };
            client.put(&request).await
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
            (!is_open(&kept[0].0)).then_some(())
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
    fn a_request_has_what_its_node_needs_and_one_without_a_body_says_so() {
        let mut request = Request {
            authority: "node:8085",
            path: "/push/a",
            traceparent: Some("00-1-2-01"),
            body: b"{}",
        };
        let said = "PUT /push/a HTTP/1.1\r\nhost: node:8085\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\
                    traceparent: 00-1-2-01\r\n\r\n{}";
        assert_eq!(request.on_the_wire(), said.as_bytes());
        (request.traceparent, request.body) = (None, b"");
        let said = "PUT /push/a HTTP/1.1\r\nhost: node:8085\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(request.on_the_wire(), said.as_bytes());
    }

    #[test]
    fn an_answer_says_whether_its_connection_can_be_used_again() {
        for (answer, expected) in [
            (EMPTY, Some((200, true))),
            (&EMPTY[..EMPTY.len() - 1], None),
            ("HTTP/1.1 100 Continue\r\n\r\n", None),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
                Some((404, true)),
            ),
            (
                "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n",
                Some((503, false)),
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nmore",
                Some((200, false)),
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                Some((200, false)),
            ),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
                Some((200, false)),
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 0\r\ncontent-length: 4\r\n\r\n",
                Some((200, false)),
            ),
            ("HTTP/1.1 204 No Content\r\n\r\n", Some((204, false))),
            ("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", Some((200, false))),
        ] {
            let read = Answer::read(answer.as_bytes()).unwrap();
            let read = read.map(|answer| (answer.status.as_u16(), answer.is_all));
            assert_eq!(read, expected, "{answer}");
        }
        Answer::read(b"SSH-2.0\r\n\r\n").unwrap_err();
    }

    #[test]
    fn a_head_that_comes_in_pieces_is_no_answer_before_its_end() {
        let answer = format!("HTTP/1.1 100 Continue\r\n\r\n{EMPTY}");
        for end in 0..answer.len() {
            let read = Answer::read(&answer.as_bytes()[..end]).unwrap();
            assert_eq!(read, None, "{:?}", &answer[..end]);
        }
    }

    /// As many as there is room for in a head.
    #[test]
    fn a_node_that_says_again_and_again_that_its_answer_is_to_come_has_not_answered() {
        let interim = "HTTP/1.1 100 \r\n\r\n";
        let said = interim.repeat(HEAD_BYTES / interim.len());
        assert_eq!(Answer::read(said.as_bytes()).unwrap(), None);
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
            ("http://node:8085/a b", None),
            ("http://node:8085/a\r\nb", None),
        ] {
            assert_eq!(parts(url), expected, "{url}");
        }
    }
}
