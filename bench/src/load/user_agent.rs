//! A user agent of Web Push: as much of a web socket as the messages of a known server need, without masking or fragments, so that
//! thousands of them take little of the machine that is measured.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpSocket, TcpStream};

/// Text of one frame, final.
const TEXT: u8 = 0x81;
/// The key of a mask that changes nothing.
const MASK: [u8; 4] = [0; 4];
/// From here on a length has two bytes of its own.
const LONG: usize = 126;
/// Bytes that are read ahead: a notification with what is around it, in one call of the operating system.
const AHEAD: usize = 1024;
/// What is not heard within this is given up, so that a run ends whatever a node does.
const GIVE_UP: Duration = Duration::from_secs(60);
/// Of all user agents.
pub(crate) const CHANNEL: &str = "00000000-0000-4000-8000-000000000001";

/// A user agent that is connected.
#[derive(Debug)]
pub(crate) struct UserAgent {
    stream: BufReader<TcpStream>,
    pub(crate) uaid: String,
    /// The path of its endpoint.
    pub(crate) endpoint: String,
}

/// As much of a notification as its acknowledgement takes.
#[derive(Deserialize)]
struct Notification<'a> {
    version: &'a str,
}

impl UserAgent {
    /// Connects from `from`, says hello as `uaid`, and waits for the answer.
    pub(crate) async fn connect(from: IpAddr, to: SocketAddr, uaid: &str) -> io::Result<Self> {
        let connected = tokio::time::timeout(GIVE_UP, Self::open(from, to, uaid)).await;
        connected.unwrap_or_else(|_| Err(unexpected("nothing for a minute")))
    }

    async fn open(from: IpAddr, to: SocketAddr, uaid: &str) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let stream = socket.connect(to).await?;
        stream.set_nodelay(true)?;
        let mut stream = BufReader::with_capacity(AHEAD, stream);
        let request = format!(
            "GET / HTTP/1.1\r\nhost: {to}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        // Byte by byte up to the end of the head, once in the life of a connection.
        let mut head = Vec::with_capacity(256);
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        if !head.starts_with(b"HTTP/1.1 101 ") {
            return Err(unexpected(&String::from_utf8_lossy(&head)));
        }
        let mut agent = Self {
            stream,
            uaid: String::new(),
            endpoint: String::new(),
        };
        let hello = json!({"messageType": "hello", "uaid": uaid, "use_webpush": true});
        agent.say(&hello.to_string()).await?;
        let hello: Value = serde_json::from_slice(&agent.hear().await?)?;
        agent.uaid = text(&hello, "uaid")?;
        Ok(agent)
    }

    /// Registers its channel.
    pub(crate) async fn register(&mut self) -> io::Result<()> {
        let register = json!({"messageType": "register", "channelID": CHANNEL});
        self.say(&register.to_string()).await?;
        let answer: Value = serde_json::from_slice(&self.hear().await?)?;
        let endpoint = text(&answer, "pushEndpoint")?;
        let path = endpoint.find("/wpush/").map(|at| endpoint[at..].to_owned());
        self.endpoint = path.ok_or_else(|| unexpected(&answer.to_string()))?;
        Ok(())
    }

    /// Waits for a notification and acknowledges it.
    pub(crate) async fn take(&mut self) -> io::Result<()> {
        let heard = self.hear().await?;
        let Notification { version } = serde_json::from_slice(&heard)?;
        // A message id has nothing that JSON would write in another way.
        let ack = format!(
            r#"{{"messageType":"ack","updates":[{{"channelID":"{CHANNEL}","version":"{version}","code":100}}]}}"#
        );
        self.say(&ack).await
    }

    async fn say(&mut self, text: &str) -> io::Result<()> {
        let mut frame = Vec::with_capacity(text.len() + 8);
        frame.push(TEXT);
        let masked = |length: usize| u8::try_from(length | 0x80).unwrap_or(u8::MAX);
        if text.len() < LONG {
            frame.push(masked(text.len()));
        } else {
            frame.push(masked(LONG));
            frame.extend_from_slice(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
        }
        frame.extend_from_slice(&MASK);
        frame.extend_from_slice(text.as_bytes());
        self.stream.write_all(&frame).await
    }

    /// The next text.
    async fn hear(&mut self) -> io::Result<Vec<u8>> {
        let heard = tokio::time::timeout(GIVE_UP, self.next_text()).await;
        heard.unwrap_or_else(|_| Err(unexpected("nothing for a minute")))
    }

    /// Pings are passed over, since nothing is measured for as long as a ping could be waited for.
    async fn next_text(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let mut head = [0; 2];
            self.stream.read_exact(&mut head).await?;
            let length = match usize::from(head[1]) {
                LONG => usize::from(self.stream.read_u16().await?),
                length => length,
            };
            let mut payload = vec![0; length];
            self.stream.read_exact(&mut payload).await?;
            if head[0] == TEXT {
                return Ok(payload);
            }
        }
    }
}

fn text(message: &Value, member: &str) -> io::Result<String> {
    let text = message.get(member).and_then(Value::as_str);
    text.map(ToOwned::to_owned)
        .ok_or_else(|| unexpected(&message.to_string()))
}

fn unexpected(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the node said {what}"))
}
