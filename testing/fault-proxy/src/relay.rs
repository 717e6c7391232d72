//! Moving bytes between the two ends of a connection, as the condition of the proxy allows.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::line::Condition;
use crate::{Shared, lock};

const CHUNK_BYTES: usize = 16 * 1024;
/// Chunks that may be on their way in one direction of one connection: what a slow proxy holds.
const ON_THE_WAY: usize = 64;

struct Chunk {
    due: Instant,
    bytes: Vec<u8>,
}

pub(crate) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => {
                tokio::spawn(connect(client, shared.clone()));
            }
            // Out of file descriptors, or the client has gone: neither is for ever.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn connect(client: TcpStream, shared: Arc<Shared>) {
    let Some(cut) = shared.line.join() else { return };
    let freeze = lock(&shared.freeze).clone();
    let mut condition = shared.line.watch();
    let mut relayed = pin!(async {
        // A silent proxy does not even let the server know that a client calls.
        let _ = condition.wait_for(|condition| !condition.silent).await;
        let target = lock(&shared.target).clone();
        let server = TcpStream::connect(target.ok_or(io::ErrorKind::NotConnected)?).await?;
        relay(client, server, &condition).await
    });
    tokio::select! {
        biased;
        () = cut.cancelled() => {}
        // Keeps both sockets, and neither reads nor writes.
        () = freeze.cancelled() => cut.cancelled().await,
        // One that ends in an error has told both sides so by closing.
        _ = &mut relayed => {}
    }
}

async fn relay(
    client: TcpStream,
    server: TcpStream,
    condition: &watch::Receiver<Condition>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::try_join!(
        pump(from_client, to_server, condition.clone()),
        pump(from_server, to_client, condition.clone()),
    )?;
    Ok(())
}

/// One direction, until its sender is done.
async fn pump(
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    condition: watch::Receiver<Condition>,
) -> io::Result<()> {
    let (chunks, arriving) = mpsc::channel(ON_THE_WAY);
    tokio::try_join!(
        take(from, chunks, condition.clone()),
        deliver(to, arriving, condition)
    )?;
    Ok(())
}

async fn take(
    mut from: OwnedReadHalf,
    chunks: mpsc::Sender<Chunk>,
    condition: watch::Receiver<Condition>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut last = Instant::now();
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        let late = lateness(*condition.borrow());
        // A chunk never overtakes the one before it.
        last = last.max(Instant::now() + late);
        let bytes = buffer[..length].to_vec();
        if chunks.send(Chunk { due: last, bytes }).await.is_err() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
    }
}

async fn deliver(
    mut to: OwnedWriteHalf,
    mut arriving: mpsc::Receiver<Chunk>,
    mut condition: watch::Receiver<Condition>,
) -> io::Result<()> {
    while let Some(chunk) = arriving.recv().await {
        if chunk.due > Instant::now() {
            tokio::time::sleep_until(chunk.due).await;
        }
        // Fails only when the proxy is gone, and then nothing is silent any more.
        let _ = condition.wait_for(|condition| !condition.silent).await;
        to.write_all(&chunk.bytes).await?;
    }
    let _ = condition.wait_for(|condition| !condition.silent).await;
    to.shutdown().await
}

fn lateness(condition: Condition) -> Duration {
    condition.delay + condition.jitter.mul_f64(rand::random())
}
