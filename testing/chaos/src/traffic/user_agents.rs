//! User agents of Web Push as they should be: each stays connected, acknowledges what it is shown, and comes back when it is cut off. They
//! ask after each acknowledgement for something that the node answers afterwards, so that it is known what the node has dealt with.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};
use uuid::Uuid;

use crate::ledger::{Ledger, Shown};

/// How many there are.
const AGENTS: usize = 12;
/// Channels of each.
const CHANNELS: usize = 2;
/// Between two attempts to connect.
const COME_BACK: Duration = Duration::from_millis(150);
/// How long a connection, a greeting or an answer may take.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long a node may say nothing, which pings each second, until it is taken for lost.
const SILENCE: Duration = Duration::from_secs(6);
/// Least time between two questions, which count as commands.
const ASK: Duration = Duration::from_millis(200);

/// Where senders reach a channel.
#[derive(Debug, Clone)]
pub struct Channel {
    /// Of the user agent and the channel.
    pub name: String,
    /// Of the endpoint, which every endpoint node knows.
    pub path: String,
}

/// User agents at work.
#[derive(Debug)]
pub struct UserAgents {
    storms: watch::Sender<u64>,
    channels: Vec<Channel>,
    _tasks: JoinSet<()>,
}

impl UserAgents {
    /// Registers all of them, and has them stay. They go when this is dropped.
    pub async fn start(nodes: &[SocketAddr], ledger: &Arc<Ledger>) -> anyhow::Result<Self> {
        let storms = watch::Sender::new(0);
        let (mut channels, mut tasks) = (Vec::new(), JoinSet::new());
        for number in 0..AGENTS {
            let mut agent = Agent {
                number,
                nodes: nodes.to_vec(),
                turn: number,
                uaid: String::new(),
                ledger: Arc::clone(ledger),
            };
            let registering = timeout(SILENCE, agent.register());
            let (connection, own) = registering
                .await
                .context("a user agent was not registered in time")??;
            channels.extend(own);
            tasks.spawn(agent.stay(connection, storms.subscribe()));
        }
        Ok(Self {
            storms,
            channels,
            _tasks: tasks,
        })
    }

    /// All of their channels.
    pub fn channels(&self) -> &[Channel] {
        &self.channels
    }

    /// Has all of them leave and come back at once.
    pub fn storm(&self) {
        self.storms.send_modify(|storms| *storms += 1);
    }
}

struct Agent {
    number: usize,
    nodes: Vec<SocketAddr>,
    /// Which node is next.
    turn: usize,
    uaid: String,
    ledger: Arc<Ledger>,
}

type Socket = WebSocketStream<TcpStream>;

impl Agent {
    async fn register(&mut self) -> anyhow::Result<(Socket, Vec<Channel>)> {
        let mut socket = self.connect().await?;
        let mut channels = Vec::new();
        for number in 0..CHANNELS {
            say(
                &mut socket,
                &json!({"messageType": "register", "channelID": Uuid::new_v4()}),
            )
            .await?;
            let registered = hear(&mut socket).await?;
            let endpoint = registered["pushEndpoint"].as_str().unwrap_or_default();
            let (_, path) = endpoint
                .split_once("/wpush/")
                .with_context(|| format!("no endpoint: {registered}"))?;
            channels.push(Channel {
                name: format!("agent-{}/{number}", self.number),
                path: format!("/wpush/{path}"),
            });
        }
        Ok((socket, channels))
    }

    /// Connects to the next node and says hello.
    async fn connect(&mut self) -> anyhow::Result<Socket> {
        let node = self.nodes[self.turn % self.nodes.len()];
        self.turn += 1;
        let stream = TcpStream::connect(node).await?;
        let (mut socket, _) = client_async(format!("ws://{node}/"), stream).await?;
        say(&mut socket, &json!({"messageType": "hello", "uaid": self.uaid})).await?;
        let hello = hear(&mut socket).await?;
        ensure!(hello["messageType"] == "hello", "no hello: {hello}");
        let uaid = hello["uaid"].as_str().unwrap_or_default();
        if self.uaid.is_empty() {
            uaid.clone_into(&mut self.uaid);
        } else if self.uaid != uaid {
            self.ledger
                .complain(format!("agent-{} was made another one: {hello}", self.number));
        }
        self.ledger.webpush().hellos += 1;
        Ok(socket)
    }

    async fn stay(mut self, first: Socket, mut storms: watch::Receiver<u64>) {
        let mut connection = Some(first);
        loop {
            if let Some(socket) = connection.take() {
                tokio::select! {
                    // How a connection ends makes no difference.
                    _ = self.serve(socket) => sleep(COME_BACK).await,
                    _ = storms.changed() => {}
                }
            }
            match timeout(PATIENCE, self.connect()).await {
                Ok(Ok(socket)) => connection = Some(socket),
                _ => sleep(COME_BACK).await,
            }
        }
    }

    /// Acknowledges what comes, until the connection is of no use any more.
    async fn serve(&self, mut socket: Socket) -> anyhow::Result<()> {
        // Places in the history: what is not confirmed, and when that was asked for.
        let mut unconfirmed: Vec<usize> = Vec::new();
        let mut asked: Option<usize> = None;
        let mut next = Instant::now();
        loop {
            if asked.is_none() && !unconfirmed.is_empty() && next <= Instant::now() {
                // Of a channel that there is not: it changes nothing.
                say(
                    &mut socket,
                    &json!({"messageType": "unregister", "channelID": Uuid::new_v4()}),
                )
                .await?;
                asked = Some(unconfirmed.len());
                next = Instant::now() + ASK;
            }
            let frame = tokio::select! {
                frame = timeout(SILENCE, socket.next()) => frame?,
                () = sleep_until(next.into()), if asked.is_none() && !unconfirmed.is_empty() => continue,
            };
            let text = match frame.context("closed")?? {
                Message::Text(text) => text,
                Message::Close(_) => anyhow::bail!("closed"),
                _ => continue,
            };
            let message: Value = serde_json::from_str(&text)?;
            match message["messageType"].as_str() {
                Some("notification") => {
                    let place = self.shown(&message);
                    // Acknowledged or not, more was outstanding when the node has read the question.
                    asked = asked.map(|_| 0);
                    let update = json!({"channelID": message["channelID"], "version": message["version"], "code": 100});
                    say(&mut socket, &json!({"messageType": "ack", "updates": [update]})).await?;
                    self.ledger.webpush().shown[place].acked = Some(Instant::now());
                    unconfirmed.push(place);
                }
                Some("unregister") if message["status"] == 200 => {
                    let mut history = self.ledger.webpush();
                    for place in unconfirmed.drain(..asked.take().unwrap_or(0)) {
                        history.shown[place].confirmed = Some(Instant::now());
                    }
                }
                // Storage is away.
                Some("unregister") => asked = None,
                _ => self
                    .ledger
                    .complain(format!("agent-{} was told {text}", self.number)),
            }
        }
    }

    fn shown(&self, notification: &Value) -> usize {
        let text = |name: &str| notification[name].as_str().unwrap_or_default().to_owned();
        let body = URL_SAFE_NO_PAD.decode(text("data")).unwrap_or_default();
        let mut history = self.ledger.webpush();
        history.shown.push(Shown {
            name: String::from_utf8_lossy(&body).into_owned(),
            version: text("version"),
            at: Instant::now(),
            acked: None,
            confirmed: None,
        });
        history.shown.len() - 1
    }
}

async fn say(socket: &mut Socket, message: &Value) -> anyhow::Result<()> {
    let sending = socket.send(Message::Text(message.to_string().into()));
    Ok(timeout(PATIENCE, sending).await??)
}

/// The next message.
async fn hear(socket: &mut Socket) -> anyhow::Result<Value> {
    loop {
        let frame = timeout(PATIENCE, socket.next()).await?.context("closed")??;
        if let Message::Text(text) = frame {
            return Ok(serde_json::from_str(&text)?);
        }
    }
}
