//! Opening one connection to one node: socket, TLS and AMQP handshake, all of it bounded in time. When to connect
//! again is decided by the supervisor.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lapin::tcp::OwnedTLSConfig;
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{AsyncTcpStream, Connection, ConnectionProperties};

use crate::addresses::location;
use crate::{Error, Settings};

/// For resolving, connecting, TLS and the AMQP handshake together.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// For the TCP connection alone.
const TCP_LIMIT: Duration = Duration::from_secs(5);

/// An established connection and the means to cut it.
pub(crate) struct Opened {
    pub(crate) connection: Connection,
    pub(crate) socket: Socket,
}

/// Connects to one node and authenticates.
pub(crate) async fn open(uri: &AMQPUri, settings: &Settings) -> Result<Opened, Error> {
    let address = location(uri);
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
        uri.clone(),
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
