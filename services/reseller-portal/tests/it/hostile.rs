//! Strangers that open connections and never finish, and keys that are made up: the resellers beside them do not notice.

use sqlx::PgPool;
use testkit::PATIENCE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::portal::Portal;

/// Hostile connections of each kind.
const EACH: usize = 20;

/// A head that stops just before its end, answers that are not read, and silence.
async fn hostile(portal: &Portal) -> Vec<TcpStream> {
    let head = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}", "a".repeat(30_000));
    let unread = "GET /openapi.html HTTP/1.1\r\nhost: x\r\n\r\n".repeat(50);
    let mut open = Vec::new();
    for _ in 0..EACH {
        for sent in [head.as_str(), unread.as_str(), ""] {
            let mut stream = TcpStream::connect(portal.address).await.unwrap();
            stream.write_all(sent.as_bytes()).await.unwrap();
            open.push(stream);
        }
    }
    open
}

#[testkit::test]
async fn a_reseller_is_answered_beside_connections_that_never_finish_and_keys_that_are_made_up(
    portal: Portal,
) {
    let open = hostile(&portal).await;
    let made_up = async {
        for number in 0..200_u32 {
            let mut random = [0; 32];
            random[..4].copy_from_slice(&number.to_be_bytes());
            let request = portal.request("GET", "/subscriptions");
            let request = request.bearer_auth(domain::key::format_key(&random));
            let status = request.send().await.unwrap().status().as_u16();
            // How many are looked up depends on the pace; that none is more than refused does not.
            assert!(matches!(status, 401 | 429), "{status}");
        }
    };
    let well = async {
        for _ in 0..50 {
            portal.see("/subscriptions").await;
        }
    };
    tokio::join!(made_up, well);
    drop(open);
}

#[testkit::test]
async fn a_connection_past_the_limit_is_closed_without_an_answer(pool: PgPool) {
    let portal = Portal::start_with(pool, |config| config.portal.max_connections = EACH).await;
    let mut held = Vec::new();
    // Of so many, more than there are places for, at least one is past the limit, however many others are open.
    for _ in 0..=EACH {
        held.push(TcpStream::connect(portal.address).await.unwrap());
    }
    let mut closed = 0;
    for stream in &mut held {
        let _ = stream
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            .await;
        let read = timeout(PATIENCE, stream.read(&mut [0; 1])).await.unwrap();
        closed += usize::from(!matches!(read, Ok(1)));
    }
    assert!((1..=EACH).contains(&closed), "{closed}");
    drop(held);
}
