//! A small cluster for one test, and questions to it.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::PathBuf;

use chaos::cluster::{Cluster, Layout, Replicas};
use futures::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Runs a test on a cluster of its own. Its folder is kept when the test fails.
pub(crate) async fn with_cluster(broker_nodes: usize, test: impl AsyncFnOnce(&Cluster)) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("cluster-{}", std::process::id()));
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = silent.local_addr().expect("an address");
    let layout = Layout {
        postrider: postrider(),
        folder: folder.clone(),
        replicas: Replicas {
            ingest_api: 1,
            dispatcher: 1,
            retry_worker: 1,
            reseller_portal: 1,
            operator_api: 1,
            webpush_endpoint: 0,
            webpush_connection: 0,
        },
        broker_nodes,
        swrve: address,
        receivers: vec![address],
        settings: testkit::PATIENT
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        replica_settings: |_, _| Vec::new(),
    };
    let cluster = match Cluster::start(layout).await {
        Ok(cluster) => cluster,
        Err(error) => panic!("{error}; see {folder:?}"),
    };
    let outcome = AssertUnwindSafe(test(&cluster)).catch_unwind().await;
    if let Err(panic) = outcome {
        say(&format!("what ran is told in {}", folder.display()));
        resume_unwind(panic);
    }
    cluster.stop().await.expect("everything ends in good order");
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

#[expect(clippy::print_stderr, reason = "who reads of a test wants to know")]
pub(crate) fn say(what: &str) {
    eprintln!("{what}");
}

/// Built beside this test.
fn postrider() -> PathBuf {
    let test = std::env::current_exe().expect("a test is a program");
    let binary = test
        .ancestors()
        .nth(2)
        .expect("a target folder")
        .join("postrider");
    assert!(
        binary.exists(),
        "{binary:?} is missing: cargo build --package cli"
    );
    binary
}

/// The answer to a GET; `None` when there is none.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut connection = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.ok()?;
    (!answer.is_empty()).then_some(answer)
}

/// Whether a replica says that it can do its work.
pub(crate) async fn is_ready(address: Option<SocketAddr>) -> bool {
    let Some(address) = address else { return false };
    let answer = get(address, "/readyz").await;
    answer.is_some_and(|answer| answer.starts_with("HTTP/1.1 200"))
}
