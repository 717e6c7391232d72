//! A web socket with small buffers, bounded messages and bounded waits.

use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

/// Bytes that are read ahead. The library's default of 128 KiB stays allocated as long as the connection.
const READ_BUFFER: usize = 1024;
/// Longest message of a client, in bytes: an acknowledgement of everything that can be outstanding fits in.
const MESSAGE_BYTES: usize = 128 * 1024;
/// How long a client may take nothing of what is sent.
const SEND_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the other end may take to answer a close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What a client sent.
#[derive(Debug)]
pub(crate) enum Received {
    Text(tokio_tungstenite::tungstenite::Utf8Bytes),
    NotText,
    Pong,
    /// A ping, which is answered by the library.
    Ping,
}

/// The connection is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    /// The client takes its leave.
    Closed,
    /// The connection broke.
    Broken,
    /// The client breaks the protocol of web sockets in the way that this close code says.
    Protocol(u16),
    /// The client does not take what it is sent.
    Stalled,
}

/// The socket of a client.
#[derive(Debug)]
pub(crate) struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    /// The socket on a connection whose upgrade was answered, and what was read of it already.
    pub(crate) async fn on(stream: TcpStream, ahead: Bytes) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(0)
            .max_message_size(Some(MESSAGE_BYTES))
            .max_frame_size(Some(MESSAGE_BYTES));
        let socket =
            WebSocketStream::from_partially_read(stream, ahead.into(), Role::Server, Some(config)).await;
        Self(socket)
    }

    /// Waits for what the client sends next. Nothing is lost when the wait is given up.
    pub(crate) async fn next(&mut self) -> Result<Received, Gone> {
        match self.0.next().await {
            Some(Ok(Message::Text(text))) => Ok(Received::Text(text)),
            Some(Ok(Message::Binary(_) | Message::Frame(_))) => Ok(Received::NotText),
            Some(Ok(Message::Ping(_))) => Ok(Received::Ping),
            Some(Ok(Message::Pong(_))) => Ok(Received::Pong),
            Some(Err(Error::Capacity(CapacityError::MessageTooLong { .. }))) => {
                Err(Gone::Protocol(CloseCode::Size.into()))
            }
            Some(Err(Error::Utf8(_))) => Err(Gone::Protocol(CloseCode::Invalid.into())),
            // That it went without a close frame is no more than that it has gone.
            Some(Err(Error::Protocol(error))) if error != ProtocolError::ResetWithoutClosingHandshake => {
                Err(Gone::Protocol(CloseCode::Protocol.into()))
            }
            Some(Ok(Message::Close(_))) => Err(Gone::Closed),
            Some(Err(_)) | None => Err(Gone::Broken),
        }
    }

    /// Sends a text.
    pub(crate) async fn send(&mut self, text: String) -> Result<(), Gone> {
        self.put(Message::Text(text.into())).await
    }

    /// Sends a ping.
    pub(crate) async fn ping(&mut self) -> Result<(), Gone> {
        self.put(Message::Ping(Bytes::new())).await
    }

    async fn put(&mut self, message: Message) -> Result<(), Gone> {
        match timeout(SEND_TIMEOUT, self.0.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Gone::Broken),
            Err(_) => Err(Gone::Stalled),
        }
    }

    /// Closes it, and waits for a moment until the client has done so too: what it still sends would otherwise have the operating
    /// system reset the connection before the client has read why.
    pub(crate) async fn close(mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame {
            code: code.into(),
            reason: reason.into(),
        };
        let closing = async {
            if self.0.close(Some(frame)).await.is_ok() {
                self.read_to_end().await;
            }
        };
        // Whether the client took its leave makes no difference.
        let _ = timeout(CLOSE_TIMEOUT, closing).await;
    }

    /// Answers the leave that the client has taken.
    pub(crate) async fn part(mut self) {
        let _ = timeout(CLOSE_TIMEOUT, self.read_to_end()).await;
    }

    /// The library sends what it still has to answer while it reads.
    async fn read_to_end(&mut self) {
        while let Some(Ok(_)) = self.0.next().await {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_client_that_goes_without_a_close_frame_breaks_no_protocol() {
        // A frame with an operation that there is none.
        for (said, gone) in [
            (b"".as_slice(), Gone::Broken),
            (&[0x8f, 0x80, 0, 0, 0, 0], Gone::Protocol(1002)),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = Socket::on(stream, Bytes::new()).await;
            client.write_all(said).await.unwrap();
            drop(client);
            assert_eq!(socket.next().await.unwrap_err(), gone, "{said:?}");
        }
    }
}
