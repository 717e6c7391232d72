//! A TCP proxy before the server that can hold answers back, gather confirms, cut connections, and speak in
//! the server's place.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lapin::uri::AMQPUri;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::coalesce::Coalescer;

/// Silence after which gathered confirms are passed on. Its length changes how many are gathered, nothing
/// else.
const SILENCE: Duration = Duration::from_millis(20);

pub(crate) struct Proxy {
    address: SocketAddr,
    upstream: AMQPUri,
    shared: Arc<Shared>,
    _accepting: AbortOnDropHandle<()>,
}

struct Shared {
    coalesce: bool,
    hold: watch::Sender<bool>,
    /// Ends the connections of now; replaced with each cut.
    cut: Mutex<CancellationToken>,
    /// Ways to the clients of now.
    injections: Mutex<Vec<mpsc::UnboundedSender<Vec<u8>>>>,
}

impl Proxy {
    pub(crate) async fn start(url: &str) -> Self {
        Self::with(url, false).await
    }

    /// A proxy that gathers the server's confirms; see [`Coalescer`].
    pub(crate) async fn coalescing(url: &str) -> Self {
        Self::with(url, true).await
    }

    async fn with(url: &str, coalesce: bool) -> Self {
        let upstream: AMQPUri = url.parse().expect("a valid AMQP_URL");
        let target = (upstream.authority.host.clone(), upstream.authority.port);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            coalesce,
            hold: watch::Sender::new(false),
            cut: Mutex::default(),
            injections: Mutex::default(),
        });
        let accepting = tokio::spawn(accept(listener, target, Arc::clone(&shared)));
        Self {
            address,
            upstream,
            shared,
            _accepting: AbortOnDropHandle::new(accepting),
        }
    }

    /// The server's URL with the proxy in its place.
    pub(crate) fn url(&self) -> String {
        let mut uri = self.upstream.clone();
        "127.0.0.1".clone_into(&mut uri.authority.host);
        uri.authority.port = self.address.port();
        uri.to_string()
    }

    /// Ends all connections of now.
    pub(crate) fn cut(&self) {
        self.shared.injections.lock().expect("not poisoned").clear();
        std::mem::take(&mut *self.shared.cut.lock().expect("not poisoned")).cancel();
    }

    /// From now on the client hears nothing from the server, which still hears the client.
    pub(crate) fn hold(&self) {
        self.shared.hold.send_replace(true);
    }

    /// The client hears what it was to hear, and everything else.
    pub(crate) fn release(&self) {
        self.shared.hold.send_replace(false);
    }

    /// Sends bytes to the client as if from the server. Only between frames, that is when nothing is going
    /// on.
    pub(crate) fn inject(&self, bytes: &[u8]) {
        for client in &*self.shared.injections.lock().expect("not poisoned") {
            // A connection that has ended does not matter.
            let _ = client.send(bytes.to_vec());
        }
    }
}

async fn accept(listener: TcpListener, target: (String, u16), shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let Ok(server) = TcpStream::connect(&target).await else {
            continue;
        };
        for socket in [&client, &server] {
            socket.set_nodelay(true).expect("an open socket");
        }
        let cut = shared.cut.lock().expect("not poisoned").clone();
        let (injection, injected) = mpsc::unbounded_channel();
        shared.injections.lock().expect("not poisoned").push(injection);
        let hold = shared.hold.subscribe();
        let coalescer = shared.coalesce.then(Coalescer::default);
        tokio::spawn(async move {
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            tokio::select! {
                () = cut.cancelled() => {}
                () = upstream(from_client, to_server) => {}
                () = downstream(from_server, to_client, hold, injected, coalescer) => {}
            }
        });
    }
}

async fn upstream(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let mut buffer = vec![0; 65_536];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}

async fn downstream(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut hold: watch::Receiver<bool>,
    mut injected: mpsc::UnboundedReceiver<Vec<u8>>,
    mut coalescer: Option<Coalescer>,
) {
    let mut buffer = vec![0; 65_536];
    loop {
        let written = tokio::select! {
            read = from.read(&mut buffer) => {
                let Ok(length @ 1..) = read else { return };
                if hold.wait_for(|held| !held).await.is_err() {
                    return;
                }
                match &mut coalescer {
                    Some(coalescer) => to.write_all(&coalescer.take(&buffer[..length])).await,
                    None => to.write_all(&buffer[..length]).await,
                }
            }
            () = tokio::time::sleep(SILENCE), if coalescer.is_some() => {
                let gathered = coalescer.as_mut().map(Coalescer::flush).unwrap_or_default();
                to.write_all(&gathered).await
            }
            Some(bytes) = injected.recv() => to.write_all(&bytes).await,
        };
        if written.is_err() {
            return;
        }
    }
}
