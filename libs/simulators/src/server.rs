//! What the simulators have in common: a listener that is served on threads of its own, so that the stamps of arrivals do not wait
//! for whatever else the process does.

use std::net::SocketAddr;
use std::time::Duration;
use std::{io, thread};

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long a failed accept is waited out: what it fails for, such as too few descriptors, does not pass at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections have nothing to finish; this only bounds a task that does not yield.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The listener cannot be moved to the server's threads.
    #[error("the listener cannot be used")]
    Listener(#[source] io::Error),
    /// No threads for it.
    #[error("the server's threads could not be started")]
    Threads(#[source] io::Error),
}

/// A server at work. Dropping it stops it as well, without waiting.
#[derive(Debug)]
pub(crate) struct Server {
    addr: SocketAddr,
    stop: DropGuard,
    stopped: oneshot::Receiver<()>,
}

impl Server {
    /// Serves each connection by `serve` until it is stopped or dropped.
    pub(crate) fn start<F>(
        name: &str,
        threads: usize,
        listener: TcpListener,
        serve: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Result<Self, ServerError>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let addr = listener.local_addr().map_err(ServerError::Listener)?;
        let listener = listener.into_std().map_err(ServerError::Listener)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name(name)
            .enable_all()
            .build()
            .map_err(ServerError::Threads)?;
        let listener = {
            let _context = runtime.enter();
            TcpListener::from_std(listener).map_err(ServerError::Listener)?
        };
        let (token, (stopping, stopped)) = (CancellationToken::new(), oneshot::channel());
        let stop = token.clone().drop_guard();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                runtime.block_on(token.run_until_cancelled(accept(listener, serve)));
                // Closes the connections by dropping their tasks: what hangs on purpose would never end by itself.
                runtime.shutdown_timeout(STOP_TIMEOUT);
                let _ = stopping.send(());
            })
            .map_err(ServerError::Threads)?;
        Ok(Self { addr, stop, stopped })
    }

    /// Where it listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Stops: the listener and all connections are closed when it returns.
    pub(crate) async fn shutdown(self) {
        drop(self.stop);
        // An error means that its thread is gone, which is all that is waited for.
        let _ = self.stopped.await;
    }
}

async fn accept<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Without it an answer may wait for the acknowledgement of the one before; harmless if it fails.
                let _ = stream.set_nodelay(true);
                tokio::spawn(serve(stream));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
