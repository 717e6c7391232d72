//! One keep-alive connection, and as much of HTTP/1.1 as the answers of a known server need.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// More than the head of any answer that is expected.
const BUFFER: usize = 8 * 1024;

/// A connection, on which one request is under way at a time.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What the head of an answer says.
#[derive(Debug, PartialEq, Eq)]
struct Head {
    status: u16,
    /// Length of head and body.
    length: usize,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(BUFFER),
        })
    }

    /// Sends a request and returns the status of its answer. After an error the connection is of no more use.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> io::Result<u16> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match head_of(&self.buffer)? {
                Some(head) if self.buffer.len() == head.length => return Ok(head.status),
                Some(head) if self.buffer.len() > head.length => return Err(not_http("more than an answer")),
                _ => {}
            }
        }
    }
}

/// `None` while the head is not complete.
fn head_of(bytes: &[u8]) -> io::Result<Option<Head>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| not_http("a head that is no text"))?;
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok())
        .ok_or_else(|| not_http("no status line"))?;
    let length: usize = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .ok_or_else(|| not_http("no content-length"))?;
    Ok(Some(Head {
        status,
        length: end + 4 + length,
    }))
}

fn not_http(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_where_its_length_says() {
        let bytes = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\nretry-after: 5\r\n\r\n{}";
        let head = head_of(bytes).unwrap().unwrap();
        assert_eq!((head.status, head.length), (503, bytes.len()));
        assert_eq!(head_of(&bytes[..40]).unwrap(), None);
    }

    #[test]
    fn what_cannot_be_measured_is_an_error() {
        for bytes in [
            &b"HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n"[..],
            b"HTTP/1.1 2\r\ncontent-length: 0\r\n\r\n",
            b"SSH-2.0\r\n\r\n",
        ] {
            assert!(head_of(bytes).is_err());
        }
    }
}
