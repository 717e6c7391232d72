//! The program `autoconnect`, under the variables of autopush.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};

use sqlx::{ConnectOptions as _, PgPool};
use testkit::eventually;
use tokio::net::TcpStream;

use crate::client::Client;

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[sqlx::test(migrations = false)]
async fn an_empty_database_gets_its_schema_and_a_user_agent_its_endpoint(pool: PgPool) {
    let held = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [port, router_port] = held.each_ref().map(|it| it.local_addr().unwrap().port());
    drop(held);
    let program = Command::new(env!("CARGO_BIN_EXE_autoconnect"))
        .env_clear()
        .env(
            "AUTOCONNECT__DB_DSN",
            pool.connect_options().to_url_lossy().as_str(),
        )
        .env("AUTOCONNECT__PORT", port.to_string())
        .env("AUTOCONNECT__ROUTER_PORT", router_port.to_string())
        .env("AUTOCONNECT__ENDPOINT_HOSTNAME", "push.example")
        .env(
            "AUTOCONNECT__CRYPTO_KEY",
            "[ahsxBmOXR-N04gL44_0nsRjzEQI_YdZ4xObdHcC0HVM=]",
        )
        .env("AUTOCONNECT__STATSD_HOST", "unknown to us")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _running = Running(program.unwrap());
    eventually("the months to be made", async || {
        let months = "SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass('webpush_clients')";
        let made: i64 = sqlx::query_scalar(months).fetch_one(&pool).await.unwrap();
        (made >= 2).then_some(())
    })
    .await;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    eventually("the node to listen", async || {
        TcpStream::connect(address).await.ok()
    })
    .await;
    let mut client = Client::connect(address).await;
    client.hello().await;
    client.register().await;
    let endpoint = &client.endpoint;
    assert!(
        endpoint.starts_with("http://push.example:8082/wpush/v1/"),
        "{endpoint}"
    );
}
