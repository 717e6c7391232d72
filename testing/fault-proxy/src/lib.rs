//! A TCP connection that can be cut, silenced and slowed: a proxy in front of a server.
//!
//! It deliberately knows nothing of what passes through it. Tests and the fault harness use it; nothing that ships does.

mod line;
mod relay;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub use line::{Toxic, ToxicGuard};

use line::Line;

/// Passes connections on to a server, unless a toxic is in its way.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// What [`FaultProxy::cut`] did, until [`FaultProxy::heal`].
    cut: Mutex<Option<ToxicGuard>>,
    _accepting: AbortOnDropHandle<()>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    /// `host:port`; no server listens yet when it is `None`.
    target: Mutex<Option<String>>,
    line: Line,
    /// Silences the connections of now for good.
    freeze: Mutex<CancellationToken>,
}

impl FaultProxy {
    /// A proxy to `host:port`.
    ///
    /// # Panics
    ///
    /// When no port can be had.
    pub async fn to(target: String) -> Self {
        let proxy = Self::listening_on((Ipv4Addr::LOCALHOST, 0).into())
            .await
            .expect("a free port");
        proxy.lead_to(target);
        proxy
    }

    /// A proxy that takes connections at an address, and leads nowhere yet.
    pub async fn listening_on(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            target: Mutex::default(),
            line: Line::default(),
            freeze: Mutex::default(),
        });
        let accepting = tokio::spawn(relay::accept(listener, shared.clone()));
        Ok(Self {
            address,
            shared,
            cut: Mutex::default(),
            _accepting: AbortOnDropHandle::new(accepting),
        })
    }

    /// A proxy to the server of `url`, and the URL that leads through it.
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
        let proxy = Self::to(authority.to_owned()).await;
        let through = format!("{before}{}{path}", proxy.address);
        (proxy, through)
    }

    /// Where to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Leads new connections to `host:port` from now on; those of now stay.
    pub fn lead_to(&self, target: String) {
        *lock(&self.shared.target) = Some(target);
    }

    /// Puts a toxic in the way until what is returned is dropped. Toxics add up.
    pub fn add(&self, toxic: Toxic) -> ToxicGuard {
        self.shared.line.add(toxic)
    }

    /// Ends every connection of now; new ones work.
    pub fn reset(&self) {
        self.shared.line.reset();
    }

    /// Ends every connection and refuses new ones.
    pub fn cut(&self) {
        let cut = self.add(Toxic::Cut);
        *lock(&self.cut) = Some(cut);
    }

    /// Takes connections again after [`FaultProxy::cut`].
    pub fn heal(&self) {
        *lock(&self.cut) = None;
    }

    /// Silences every connection of now for good: both ends stay open and nothing passes any more, as when a router on the way
    /// has died. New connections work.
    pub fn freeze(&self) {
        std::mem::take(&mut *lock(&self.shared.freeze)).cancel();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
