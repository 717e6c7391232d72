//! A user agent as browsers are one: on a web socket, with the messages of the protocol that the demo needs.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use futures::{SinkExt as _, StreamExt as _};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};
use uuid::Uuid;

/// What a user agent got: bodies by message id, since a message may come twice.
pub(super) type Arrived = BTreeMap<String, Vec<u8>>;

/// A user agent that is connected.
pub(super) struct UserAgent {
    socket: WebSocketStream<TcpStream>,
    /// Its identifier, by which it is known when it comes back.
    uaid: String,
}

impl UserAgent {
    /// Connects and says hello: as a new one, or as the one that it was.
    pub(super) async fn connect(url: &str, uaid: &str) -> anyhow::Result<Self> {
        let address: Url = url.parse().with_context(|| format!("{url:?} is no URL"))?;
        let (Some(host), Some(port), "ws") = (
            address.host_str(),
            address.port_or_known_default(),
            address.scheme(),
        ) else {
            bail!("{url:?} leads to no web socket; write it as ws://127.0.0.1:8083");
        };
        let reaching = || format!("failed to reach {url} (is webpush-connection running?)");
        let stream = TcpStream::connect((host, port)).await.with_context(reaching)?;
        let (socket, _) = client_async(address.as_str(), stream)
            .await
            .with_context(reaching)?;
        let mut agent = Self {
            socket,
            uaid: String::new(),
        };
        agent
            .say(&json!({"messageType": "hello", "uaid": uaid, "use_webpush": true}))
            .await?;
        let hello = agent.answer("hello").await?;
        agent.uaid = text(&hello, "uaid")?;
        Ok(agent)
    }

    /// Subscribes a channel, for one key of a sender or for any; returns where its messages go.
    pub(super) async fn subscribe(&mut self, channel: Uuid, key: Option<&str>) -> anyhow::Result<String> {
        self.say(&json!({"messageType": "register", "channelID": channel, "key": key}))
            .await?;
        text(&self.answer("register").await?, "pushEndpoint")
    }

    /// Ends the subscription of a channel.
    pub(super) async fn unsubscribe(&mut self, channel: Uuid) -> anyhow::Result<()> {
        self.say(&json!({"messageType": "unregister", "channelID": channel}))
            .await?;
        self.answer("unregister").await.map(drop)
    }

    /// Takes and acknowledges messages until `enough` says that what has arrived is all.
    pub(super) async fn take(&mut self, enough: impl Fn(&Arrived) -> bool) -> anyhow::Result<Arrived> {
        let mut arrived = Arrived::new();
        while !enough(&arrived) {
            let notification = self.answer("notification").await?;
            let (channel, version) = (text(&notification, "channelID")?, text(&notification, "version")?);
            let body = BASE64_URL_SAFE_NO_PAD.decode(text(&notification, "data")?)?;
            self.say(&json!({"messageType": "ack", "updates": [{"channelID": channel, "version": version, "code": 100}]}))
                .await?;
            arrived.insert(version, body);
        }
        Ok(arrived)
    }

    /// Takes its leave; returns by what it is known when it comes back.
    pub(super) async fn leave(mut self) -> anyhow::Result<String> {
        self.socket.close(None).await?;
        while let Some(Ok(_)) = self.socket.next().await {}
        Ok(self.uaid)
    }

    async fn say(&mut self, message: &Value) -> anyhow::Result<()> {
        Ok(self
            .socket
            .send(Message::Text(message.to_string().into()))
            .await?)
    }

    async fn answer(&mut self, kind: &str) -> anyhow::Result<Value> {
        loop {
            let heard = self.socket.next().await;
            match heard.context("webpush-connection closed the connection")?? {
                Message::Text(said) => {
                    let said: Value = serde_json::from_str(&said)?;
                    ensure!(
                        said["messageType"] == kind,
                        "webpush-connection said {said}, not {kind}"
                    );
                    ensure!(
                        said.get("status").is_none_or(|status| status == 200),
                        "webpush-connection said {said}"
                    );
                    return Ok(said);
                }
                Message::Close(frame) => bail!("webpush-connection closed the connection: {frame:?}"),
                _ => {}
            }
        }
    }
}

fn text(message: &Value, member: &str) -> anyhow::Result<String> {
    let text = message[member].as_str();
    Ok(text
        .with_context(|| format!("webpush-connection said {message}, without {member}"))?
        .to_owned())
}
