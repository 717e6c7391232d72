//! A node as a process of its own that is killed or frozen between a push and its acknowledgement. The test does what an endpoint node
//! does: it keeps the message until the answer is 200, and stores it otherwise.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use reqwest::{Client as Http, StatusCode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sqlx::ConnectOptions as _;
use testkit::eventually;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::rig::Rig;

/// A node that ends with the test.
struct Process {
    child: Child,
    address: SocketAddr,
    name: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails when it has been killed, which is all that is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    async fn start(rig: &Rig) -> Self {
        let database = rig.pool.connect_options().to_url_lossy();
        let mut child = Command::new(env!("CARGO_BIN_EXE_webpush-connection"))
            .env_clear()
            .env("DATABASE_URL", database.as_str())
            .env("AMQP_URL", "amqp://unused")
            .env("POSTRIDER__ADMIN__LISTEN", "127.0.0.1:0")
            .env("POSTRIDER__TELEMETRY__LOG_FORMAT", "json")
            .env(
                "POSTRIDER__WEBPUSH__KEYS",
                "ahsxBmOXR-N04gL44_0nsRjzEQI_YdZ4xObdHcC0HVM=",
            )
            .env("POSTRIDER__WEBPUSH__CONNECTION__LISTEN", "127.0.0.1:0")
            .env("POSTRIDER__WEBPUSH__CONNECTION__ROUTER_LISTEN", "127.0.0.1:0")
            // What is not acknowledged is still waited for when something happens to the node, on all but the slowest machines.
            .env("POSTRIDER__WEBPUSH__CONNECTION__ACK_WAIT_MILLIS", "2000")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
        let seen = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                seen.lock().unwrap().push(line);
            }
        });
        let logged = async |message: &str, field: &str| {
            eventually(&format!("the log line {message:?}"), async || {
                let lines = lines.lock().unwrap();
                let line = lines.iter().find(|line| line["message"] == message)?;
                Some(line[field].as_str()?.to_owned())
            })
            .await
        };
        Self {
            address: logged("listening", "address").await.parse().unwrap(),
            name: logged("serving user agents", "node").await,
            child,
        }
    }

    /// A client of before that comes here.
    async fn again(&self, client: &Client) -> Client {
        let mut again = Client::connect(self.address).await;
        (again.uaid, again.channel) = (client.uaid, client.channel);
        again.hello().await;
        again
    }

    /// What an endpoint node hands over; the answer, if there is one.
    fn push(&self, client: &Client, version: &str) -> JoinHandle<Option<StatusCode>> {
        let body = json!({
            "channelID": client.channel, "version": version, "ttl": 60, "topic": null, "timestamp": 1_000_000_000,
        });
        let url = format!("{}/push/{}", self.name, client.uaid);
        let request = Http::new().put(url).json(&body);
        tokio::spawn(async move { request.send().await.ok().map(|answer| answer.status()) })
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

async fn nothing_waits(rig: &Rig, client: &Client) {
    eventually("an empty storage", async || {
        rig.waiting(client).await.is_empty().then_some(())
    })
    .await;
}

#[testkit::test]
async fn what_a_node_had_that_is_killed_or_frozen_comes_at_another_one(rig: &Rig) {
    let client = rig.node.client().await;

    let mut killed = Process::start(rig).await;
    let mut there = killed.again(&client).await;
    let push = killed.push(&there, "killed");
    assert_eq!(there.notified().await, "killed");
    killed.child.kill().unwrap();
    let answer = push.await.unwrap();
    assert_ne!(answer, Some(StatusCode::OK), "its sender's node still has it");
    rig.put(rig.message(&client, "killed")).await;
    let mut here = rig.node.again(&client).await;
    assert_eq!(here.take().await, "killed");
    nothing_waits(rig, &client).await;
    drop(here);

    let frozen = Process::start(rig).await;
    let mut there = frozen.again(&client).await;
    assert_eq!(rig.node_of(&client).await.as_ref(), Some(&frozen.name));
    let push = frozen.push(&there, "frozen");
    assert_eq!(there.notified().await, "frozen");
    frozen.signal(Signal::STOP);
    // Its sender's node waits no more.
    push.abort();
    rig.put(rig.message(&client, "frozen")).await;
    let mut here = rig.node.again(&client).await;
    assert_eq!(here.take().await, "frozen");
    nothing_waits(rig, &client).await;
    // It wakes up, finds that the client has gone, and changes nothing.
    drop(there);
    frozen.signal(Signal::CONT);
    eventually("the client to be gone", async || {
        let away = frozen.push(&client, "late").await.unwrap();
        (away == Some(StatusCode::NOT_FOUND)).then_some(())
    })
    .await;
    assert_eq!(rig.node_of(&client).await.as_ref(), Some(&rig.node.name));
    let (_, version) = tokio::join!(rig.node.push(&here, "after", 60), here.take());
    assert_eq!(version, "after");
}
