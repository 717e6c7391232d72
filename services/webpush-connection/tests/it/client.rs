//! A user agent.

use std::net::SocketAddr;
use std::time::Duration;

use axum::http::StatusCode;
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use testkit::PATIENCE;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};
use uuid::Uuid;

/// A user agent on its web socket.
pub(crate) struct Client {
    pub(crate) uaid: Uuid,
    pub(crate) channel: Uuid,
    pub(crate) endpoint: String,
    socket: WebSocketStream<TcpStream>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::connect_through(address, None).await.unwrap()
    }

    /// Connects through a proxy that says where this comes from; the error is the status of the answer.
    pub(crate) async fn connect_through(address: SocketAddr, from: Option<&str>) -> Result<Self, StatusCode> {
        let stream = TcpStream::connect(address).await.unwrap();
        let mut request = format!("ws://{address}/").into_client_request().unwrap();
        if let Some(from) = from {
            request
                .headers_mut()
                .insert("x-forwarded-for", from.parse().unwrap());
        }
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self {
                uaid: Uuid::nil(),
                channel: Uuid::new_v4(),
                endpoint: String::new(),
                socket,
            }),
            Err(Error::Http(answer)) => Err(answer.status()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Says hello, and returns the answer.
    pub(crate) async fn hello(&mut self) -> Value {
        let uaid = if self.uaid.is_nil() {
            String::new()
        } else {
            self.uaid.simple().to_string()
        };
        self.say(json!({"messageType": "hello", "uaid": uaid, "use_webpush": true, "broadcasts": {}}))
            .await;
        let hello = self.hear().await;
        assert_eq!(hello["messageType"], "hello", "{hello}");
        assert_eq!(hello["status"], 200);
        self.uaid = hello["uaid"].as_str().unwrap().parse().unwrap();
        hello
    }

    /// Registers its channel.
    pub(crate) async fn register(&mut self) {
        self.say(json!({"messageType": "register", "channelID": self.channel}))
            .await;
        let registered = self.hear().await;
        assert_eq!(registered["status"], 200, "{registered}");
        assert_eq!(registered["channelID"], self.channel.to_string());
        self.endpoint = registered["pushEndpoint"].as_str().unwrap().to_owned();
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.send(Message::Text(message.to_string().into())).await;
    }

    pub(crate) async fn send(&mut self, message: Message) {
        self.socket.send(message).await.unwrap();
    }

    /// What the node says next. Its pings are answered by the socket.
    pub(crate) async fn hear(&mut self) -> Value {
        loop {
            match self.frame().await {
                Some(Message::Text(text)) => return serde_json::from_str(&text).unwrap(),
                Some(Message::Ping(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The version of the notification that comes next.
    pub(crate) async fn notified(&mut self) -> String {
        let notification = self.hear().await;
        assert_eq!(notification["messageType"], "notification", "{notification}");
        assert_eq!(notification["channelID"], self.channel.to_string());
        notification["version"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn ack(&mut self, versions: &[&str]) {
        let channel = self.channel;
        let updates: Vec<_> = versions
            .iter()
            .map(|version| json!({"channelID": channel, "version": version, "code": 100}))
            .collect();
        self.say(json!({"messageType": "ack", "updates": updates})).await;
    }

    /// Takes the notification that comes next and acknowledges it.
    pub(crate) async fn take(&mut self) -> String {
        let version = self.notified().await;
        self.ack(&[&version]).await;
        version
    }

    /// Makes sure that the node has heard what was said so far, and that nothing else is to be heard. Once in 45 seconds.
    pub(crate) async fn ping(&mut self) {
        self.say(json!({})).await;
        assert_eq!(self.hear().await, json!({}));
    }

    /// The code with which the node closes.
    pub(crate) async fn closed(&mut self) -> u16 {
        match self.frame().await {
            Some(Message::Close(Some(frame))) => frame.code.into(),
            other => panic!("{other:?}"),
        }
    }

    /// Nothing is heard for a moment.
    pub(crate) async fn silent(&mut self) {
        let heard = timeout(Duration::from_millis(100), self.socket.next()).await;
        assert!(heard.is_err(), "{heard:?}");
    }

    pub(crate) async fn frame(&mut self) -> Option<Message> {
        let heard = timeout(PATIENCE, self.socket.next())
            .await
            .expect("the node says something");
        heard.map(Result::unwrap)
    }
}
