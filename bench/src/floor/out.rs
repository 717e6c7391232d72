//! Posting to the receiver with an HTTP client and nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{MEASURED, WARM_UP};

/// About the body of a delivery.
const BODY: [u8; 384] = [b'x'; 384];

/// Requests a second over `connections` keep-alive connections to a receiver that answers at once.
pub(crate) async fn posts(receiver: SocketAddr, connections: usize) -> Result<f64> {
    let answered = Arc::new(AtomicU64::new(0));
    let from = Instant::now() + WARM_UP;
    let mut callers = JoinSet::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(receiver).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(async { connection.await.ok() });
        let answered = Arc::clone(&answered);
        callers.spawn(async move {
            while Instant::now() < from + MEASURED {
                let request = Request::post("/ok/0")
                    .header("host", receiver.to_string())
                    .body(Full::new(Bytes::from_static(&BODY)))?;
                let response = sender.send_request(request).await?;
                ensure!(response.status() == StatusCode::OK, "the receiver refused");
                response.into_body().collect().await?;
                if (from..from + MEASURED).contains(&Instant::now()) {
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok(())
        });
    }
    while let Some(caller) = callers.join_next().await {
        caller??;
    }
    Ok(answered.load(Ordering::Relaxed) as f64 / MEASURED.as_secs_f64())
}
