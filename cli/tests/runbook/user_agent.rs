//! A user agent of Web Push, and what its senders do.

use futures::{SinkExt as _, StreamExt as _};
use reqwest::{Client, StatusCode, Url};
use serde_json::{Value, json};
use testkit::PATIENCE;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

const CHANNEL: &str = "00000000-0000-4000-8000-000000000001";

pub(crate) struct UserAgent {
    socket: WebSocketStream<TcpStream>,
    pub(crate) uaid: String,
}

impl UserAgent {
    /// Connects to a node as the one that it was; without an identifier as a new one.
    pub(crate) async fn connect(node: &str, uaid: &str) -> Self {
        let stream = TcpStream::connect(node).await.expect("the node takes it");
        let (socket, _) = client_async(format!("ws://{node}/"), stream)
            .await
            .expect("a web socket");
        let mut agent = Self {
            socket,
            uaid: String::new(),
        };
        agent
            .say(&json!({"messageType": "hello", "uaid": uaid, "use_webpush": true}))
            .await;
        agent.uaid = text(&agent.hear().await, "uaid");
        agent
    }

    /// Subscribes; returns the path of the endpoint.
    pub(crate) async fn subscribe(&mut self) -> String {
        self.say(&json!({"messageType": "register", "channelID": CHANNEL}))
            .await;
        let endpoint = text(&self.hear().await, "pushEndpoint");
        let endpoint: Url = endpoint.parse().expect("a URL");
        endpoint.path().to_owned()
    }

    /// Takes a notification and acknowledges it; returns its message id.
    pub(crate) async fn take(&mut self) -> String {
        let version = text(&self.hear().await, "version");
        self.say(&json!({"messageType": "ack", "updates": [{"channelID": CHANNEL, "version": version, "code": 100}]}))
            .await;
        version
    }

    /// The code with which the node closes.
    pub(crate) async fn closed(&mut self) -> u16 {
        match self.frame().await {
            Message::Close(Some(frame)) => frame.code.into(),
            other => panic!("{other:?}"),
        }
    }

    async fn say(&mut self, message: &Value) {
        let message = Message::Text(message.to_string().into());
        self.socket.send(message).await.expect("the node listens");
    }

    async fn hear(&mut self) -> Value {
        match self.frame().await {
            Message::Text(text) => serde_json::from_str(&text).expect("JSON"),
            other => panic!("{other:?}"),
        }
    }

    async fn frame(&mut self) -> Message {
        let heard = timeout(PATIENCE, self.socket.next()).await;
        let heard = heard.expect("the node says something").expect("a frame");
        heard.expect("the connection holds")
    }
}

fn text(message: &Value, member: &str) -> String {
    message[member]
        .as_str()
        .unwrap_or_else(|| panic!("{member} in {message}"))
        .to_owned()
}

/// Sends a message that is kept for an hour; returns its message id.
pub(crate) async fn send(senders: &str, endpoint: &str) -> String {
    send_with(senders, endpoint, &[]).await
}

/// [`send`] with these headers.
pub(crate) async fn send_with(senders: &str, endpoint: &str, headers: &[(&str, &str)]) -> String {
    let mut request = Client::new()
        .post(format!("http://{senders}{endpoint}"))
        .header("ttl", "3600");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::CREATED, "{answer:?}");
    let location = answer.headers()["location"].to_str().expect("text");
    location.rsplit('/').next().expect("a message id").to_owned()
}
