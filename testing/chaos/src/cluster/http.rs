//! One question to an admin listener. No client of the traffic's kind: no connection is kept, and nothing is tried again.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const LIMIT: Duration = Duration::from_secs(10);

/// The answer to a GET: status line, headers and body as they came.
pub(crate) async fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    let asked = async {
        let mut connection = TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    tokio::time::timeout(LIMIT, asked)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Whether it says that it can do its work.
pub(crate) async fn is_ready(address: SocketAddr) -> bool {
    get(address, "/readyz")
        .await
        .is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}
