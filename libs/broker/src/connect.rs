//! Opening one connection: URL, socket, TLS and AMQP handshake, all of it bounded in time. When to connect
//! again is decided by the supervisor.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lapin::tcp::OwnedTLSConfig;
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{AsyncTcpStream, Connection, ConnectionProperties};

use crate::{Error, Settings};

/// Heartbeat interval in seconds. A peer that is silent for two intervals is taken for dead.
const HEARTBEAT_SECONDS: u16 = 6;
/// For resolving, connecting, TLS and the AMQP handshake together.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// For the TCP connection alone.
const TCP_LIMIT: Duration = Duration::from_secs(5);

/// An established connection and the means to cut it.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    pub(crate) socket: Socket,
}

/// Connects and authenticates.
pub(crate) async fn open(settings: &Settings) -> Result<Opened, Error> {
    let uri = parse(&settings.url)?;
    let address = format!("{}:{}", uri.authority.host, uri.authority.port);
    let failed = |source| Error::Connect {
        address: address.clone(),
        source,
    };
    install_crypto_provider();
    let runtime = lapin::runtime::default_runtime().map_err(failed)?;
    let properties =
        ConnectionProperties::default().with_connection_name(settings.connection_name.as_str().into());
    let socket = Socket::default();
    let dialled = socket.clone();
    let connecting = Connection::connector(
        uri,
        runtime,
        async move |uri: AMQPUri, runtime| {
            let addresses = resolve(&uri).await?;
            let connected = tokio::time::timeout(TCP_LIMIT, AsyncTcpStream::connect(&runtime, addresses));
            let stream = connected
                .await
                .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            if let AsyncTcpStream::Plain(plain) = &stream {
                dialled.attach(plain.get_ref())?;
            }
            match uri.scheme {
                AMQPScheme::AMQP => Ok(stream),
                AMQPScheme::AMQPS => {
                    let tls = OwnedTLSConfig::default();
                    Ok(stream.into_tls(&uri.authority.host, tls.as_ref()).await?)
                }
            }
        },
        properties,
    );
    match tokio::time::timeout(CONNECT_LIMIT, connecting).await {
        Ok(Ok(connection)) => Ok(Opened { connection, socket }),
        Ok(Err(source)) => {
            socket.cut();
            Err(failed(source))
        }
        Err(_) => {
            socket.cut();
            Err(Error::ConnectTimeout {
                address,
                limit: CONNECT_LIMIT,
            })
        }
    }
}

fn parse(url: &str) -> Result<AMQPUri, Error> {
    // The parser's own messages can hold the whole URL, so none of them is passed on.
    let mut uri: AMQPUri = url.parse().map_err(|_| Error::InvalidUrl {
        reason: "expected amqp[s]://user:password@host:port/vhost",
    })?;
    let authority = url.split('/').nth(2).unwrap_or_default();
    if authority.rsplit('@').next().unwrap_or_default().starts_with('[') {
        // The parser would silently replace it by localhost.
        return Err(Error::InvalidUrl {
            reason: "an IPv6 address must be given as a host name",
        });
    }
    uri.query.heartbeat.get_or_insert(HEARTBEAT_SECONDS);
    Ok(uri)
}

async fn resolve(uri: &AMQPUri) -> io::Result<Vec<SocketAddr>> {
    let host = (uri.authority.host.as_str(), uri.authority.port);
    Ok(tokio::net::lookup_host(host).await?.collect())
}

/// rustls needs a process-wide provider; another part of the process may have installed its own, which is
/// kept.
fn install_crypto_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Losing the race against another thread leaves its provider in place, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// A second handle of the connection's socket.
///
/// The AMQP client reads and writes on a thread of its own, which waits for as long as the peer keeps the
/// connection open. Cutting the socket is the only way to end that thread when the peer does not answer any
/// more.
#[derive(Clone, Default)]
pub(crate) struct Socket(Arc<Mutex<SocketState>>);

#[derive(Default)]
enum SocketState {
    #[default]
    Dialling,
    Open(TcpStream),
    Cut,
}

impl Socket {
    fn attach(&self, stream: &impl AsFd) -> io::Result<()> {
        let handle = TcpStream::from(stream.as_fd().try_clone_to_owned()?);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, SocketState::Cut) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        *state = SocketState::Open(handle);
        Ok(())
    }

    /// Ends the connection without asking the peer.
    pub(crate) fn cut(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let SocketState::Open(stream) = std::mem::replace(&mut *state, SocketState::Cut) {
            // Fails only when the peer has closed it already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_without_heartbeat_gets_ours() {
        let uri = parse("amqp://u:p@localhost:5673/%2f").expect("valid");
        assert_eq!(uri.query.heartbeat, Some(HEARTBEAT_SECONDS));
        assert_eq!(
            parse("amqp://localhost?heartbeat=2")
                .expect("valid")
                .query
                .heartbeat,
            Some(2)
        );
    }

    #[test]
    fn invalid_urls_are_refused_without_being_repeated() {
        for url in [
            "",
            "nonsense:hunter2",
            "http://u:hunter2@host",
            "amqp://u:hunter2@[::1]:5672",
        ] {
            let error = parse(url).expect_err(url).to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
