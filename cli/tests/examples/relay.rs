//! What a reseller has in front of an endpoint: one address that stays while the process behind it is replaced.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Passes connections on, and holds them while there is no process to pass them to.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    target: watch::Sender<Option<SocketAddr>>,
    accepting: JoinHandle<()>,
}

impl Relay {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (target, known) = watch::channel(None);
        let accepting = tokio::spawn(async move {
            loop {
                let (from, _) = listener.accept().await.expect("it listens");
                tokio::spawn(pass_on(from, known.clone()));
            }
        });
        Self {
            address,
            target,
            accepting,
        }
    }

    /// For connections from now on.
    pub(crate) fn point_to(&self, target: Option<SocketAddr>) {
        self.target.send_replace(target);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn pass_on(mut from: TcpStream, mut known: watch::Receiver<Option<SocketAddr>>) {
    // Fails when the test has ended.
    let Ok(target) = known.wait_for(Option::is_some).await.map(|target| *target) else {
        return;
    };
    let target = target.expect("waited for");
    // When the process has just ended, the connection is closed, and the delivery is tried again.
    if let Ok(mut to) = TcpStream::connect(target).await {
        let _ = copy_bidirectional(&mut from, &mut to).await;
    }
}
