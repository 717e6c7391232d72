//! What the environment says about proxies is not for notifications: a proxy would dial what the guard never saw.

use std::process::Command;

use super::{client, send, status, url_of};
use crate::receiver::{Conduct, Receiver, answer};

#[tokio::test]
async fn without_a_proxy_the_receiver_is_reached() {
    let receiver = Receiver::start(Conduct::Answer(answer("200 OK", ""))).await;
    assert_eq!(
        status(&send(&client(), &url_of(receiver.addr)).await.outcome),
        200
    );
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proxies_in_the_environment_are_ignored() {
    let proxy = Receiver::start(Conduct::Answer(answer("502 Bad Gateway", ""))).await;
    let address = format!("http://{}", proxy.addr);
    // The environment of this process belongs to all tests, so the test above is run again in another one.
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args([
        "--exact",
        "webhook::environment::without_a_proxy_the_receiver_is_reached",
    ]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        again.env(name, &address).env(name.to_lowercase(), &address);
    }
    again.env("NO_PROXY", "").env("no_proxy", "");
    let output = tokio::task::spawn_blocking(move || again.output())
        .await
        .unwrap()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert_eq!(proxy.connections(), 0);
}
