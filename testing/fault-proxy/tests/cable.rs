//! What passes through a proxy, and what does not.

use std::time::{Duration, Instant};

use fault_proxy::{FaultProxy, Toxic};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A server that sends back what it gets.
async fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = client.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            });
        }
    });
    address
}

async fn dial(proxy: &FaultProxy) -> TcpStream {
    TcpStream::connect(proxy.address())
        .await
        .expect("a proxy takes connections")
}

async fn says_back(connection: &mut TcpStream, word: &[u8]) -> bool {
    if connection.write_all(word).await.is_err() {
        return false;
    }
    let mut heard = vec![0; word.len()];
    connection.read_exact(&mut heard).await.is_ok() && heard == word
}

#[tokio::test]
async fn bytes_and_the_end_of_them_pass_both_ways() {
    let proxy = FaultProxy::to(echo().await).await;
    let mut connection = dial(&proxy).await;
    let sent = vec![7; 1_000_000];
    let (mut read, mut write) = connection.split();
    let mut heard = Vec::new();
    let (sending, hearing) = tokio::join!(
        async {
            write.write_all(&sent).await?;
            write.shutdown().await
        },
        read.read_to_end(&mut heard)
    );
    sending.expect("all is taken");
    hearing.expect("the echo ends");
    assert!(heard == sent, "{} bytes came back", heard.len());
}

#[tokio::test]
async fn a_cut_ends_connections_and_refuses_new_ones_until_all_cuts_are_over() {
    let proxy = FaultProxy::to(echo().await).await;
    let mut connection = dial(&proxy).await;
    assert!(says_back(&mut connection, b"before").await);
    let first = proxy.add(Toxic::Cut);
    let second = proxy.add(Toxic::Cut);
    assert!(!says_back(&mut connection, b"cut").await);
    drop(first);
    assert!(!says_back(&mut dial(&proxy).await, b"still cut").await);
    drop(second);
    assert!(says_back(&mut dial(&proxy).await, b"whole").await);
}

#[tokio::test]
async fn a_reset_ends_connections_and_takes_new_ones() {
    let proxy = FaultProxy::to(echo().await).await;
    let mut connection = dial(&proxy).await;
    assert!(says_back(&mut connection, b"before").await);
    proxy.reset();
    assert!(!says_back(&mut connection, b"after").await);
    assert!(says_back(&mut dial(&proxy).await, b"new").await);
}

#[tokio::test]
async fn what_was_sent_into_silence_arrives_when_it_is_over() {
    let proxy = FaultProxy::to(echo().await).await;
    let mut connection = dial(&proxy).await;
    assert!(says_back(&mut connection, b"before").await);
    let silence = proxy.add(Toxic::Silence);
    let mut new = dial(&proxy).await;
    for connection in [&mut connection, &mut new] {
        connection
            .write_all(b"hello")
            .await
            .expect("the near end takes it");
        let heard = tokio::time::timeout(Duration::from_millis(100), connection.read_u8()).await;
        assert!(heard.is_err(), "something came through: {heard:?}");
    }
    drop(silence);
    for mut connection in [connection, new] {
        let mut heard = [0; 5];
        connection.read_exact(&mut heard).await.expect("the echo");
        assert_eq!(&heard, b"hello");
    }
}

#[tokio::test]
async fn what_is_late_is_never_early() {
    let proxy = FaultProxy::to(echo().await).await;
    let delay = Duration::from_millis(50);
    let jitter = Duration::from_millis(5);
    let _late = proxy.add(Toxic::Latency { delay, jitter });
    let mut connection = dial(&proxy).await;
    let asked = Instant::now();
    assert!(says_back(&mut connection, b"there and back").await);
    assert!(asked.elapsed() >= 2 * delay, "{:?}", asked.elapsed());
}

#[tokio::test]
async fn a_frozen_connection_is_silent_for_good_and_new_ones_work() {
    let proxy = FaultProxy::to(echo().await).await;
    let mut connection = dial(&proxy).await;
    assert!(says_back(&mut connection, b"before").await);
    proxy.freeze();
    assert!(says_back(&mut dial(&proxy).await, b"new").await);
    connection
        .write_all(b"lost")
        .await
        .expect("the near end takes it");
    let heard = tokio::time::timeout(Duration::from_millis(100), connection.read_u8()).await;
    assert!(heard.is_err(), "something came through: {heard:?}");
    proxy.cut();
    assert!(connection.read_u8().await.is_err(), "a cut ends it");
    proxy.heal();
    assert!(says_back(&mut dial(&proxy).await, b"mended").await);
}

#[tokio::test]
async fn new_connections_lead_to_the_latest_target() {
    let proxy = FaultProxy::listening_on(([127, 0, 0, 1], 0).into())
        .await
        .expect("a free port");
    assert!(!says_back(&mut dial(&proxy).await, b"lost").await);
    proxy.lead_to(echo().await);
    assert!(says_back(&mut dial(&proxy).await, b"found").await);
}
