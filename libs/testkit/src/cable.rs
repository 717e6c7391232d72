//! A TCP connection that can be cut: a proxy in front of a server.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Passes connections on to a server, until it is cut.
pub struct Cable {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _accepting: AbortOnDropHandle<()>,
}

struct State {
    whole: bool,
    /// Ends the connections of now.
    cut: CancellationToken,
    /// Silences the connections of now.
    freeze: CancellationToken,
}

impl Cable {
    /// A cable to `host:port`.
    ///
    /// # Panics
    ///
    /// When no port can be had.
    pub async fn to(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let state = Arc::new(Mutex::new(State {
            whole: true,
            cut: CancellationToken::new(),
            freeze: CancellationToken::new(),
        }));
        let accepting = tokio::spawn(accept(listener, target, state.clone()));
        Self {
            address,
            state,
            _accepting: AbortOnDropHandle::new(accepting),
        }
    }

    /// A cable to the server of `url`, and the URL that leads through it.
    ///
    /// # Panics
    ///
    /// When the URL names no host and port.
    pub async fn for_url(url: &str) -> (Self, String) {
        let (before, rest) = url.split_at(
            url.rfind('@')
                .map_or_else(|| url.find("//").expect("a URL") + 2, |at| at + 1),
        );
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let cable = Self::to(authority.to_owned()).await;
        let through = format!("{before}{}{path}", cable.address);
        (cable, through)
    }

    /// Where to connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends every connection and refuses new ones.
    pub fn cut(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.whole = false;
        std::mem::take(&mut state.cut).cancel();
    }

    /// Silences every connection of now for good: both ends stay open and nothing passes any more, as when a router on the way
    /// has died. New connections work.
    pub fn freeze(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.freeze).cancel();
    }

    /// Takes connections again.
    pub fn mend(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).whole = true;
    }
}

async fn accept(listener: TcpListener, target: String, state: Arc<Mutex<State>>) {
    while let Ok((mut client, _)) = listener.accept().await {
        let (cut, freeze) = {
            let state = state.lock().unwrap_or_else(PoisonError::into_inner);
            if !state.whole {
                continue;
            }
            (state.cut.clone(), state.freeze.clone())
        };
        let target = target.clone();
        tokio::spawn(async move {
            let Ok(mut server) = TcpStream::connect(target).await else {
                return;
            };
            tokio::select! {
                () = cut.cancelled() => {}
                // Holds both sockets without reading or writing.
                () = freeze.cancelled() => cut.cancelled().await,
                _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
            }
        });
    }
}
