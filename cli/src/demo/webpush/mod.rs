//! The part of Web Push in the demo: a user agent that is there, goes away and comes back, what its senders are answered, and what
//! it gets.

mod user_agent;

use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use reqwest::{Client, StatusCode, Url, header};
use uuid::Uuid;

use self::user_agent::{Arrived, UserAgent};
use super::table::counted;
use crate::output::{self, Column, Table};
use crate::web;

const LIMIT: Duration = Duration::from_secs(30);
/// Requests under way at once.
const CONNECTIONS: usize = 8;
/// Messages while the user agent is there, and while it is away.
const DIRECT: usize = 20;
const STORED: usize = 12;
/// The key of RFC 8292's example, which only its owner may send with.
const KEY: &str = "BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs";
/// For how long a message is kept, in seconds.
const TTL: u32 = 3_600;

#[derive(Debug, Args)]
pub(super) struct WebpushArgs {
    /// Where user agents of Web Push connect to; without it Web Push is left out.
    #[arg(long, env = "WEBPUSH_SOCKET_URL", value_name = "URL")]
    webpush_socket_url: Option<String>,
    /// Where senders of Web Push reach webpush-endpoint; where endpoints lead unless it is given.
    #[arg(long, env = "WEBPUSH_URL", value_name = "URL")]
    webpush_url: Option<String>,
}

/// A kind of message: what was sent, what its sender was answered, and what arrived.
struct Case {
    kind: &'static str,
    meaning: &'static str,
    sent: Vec<Sent>,
    expected: StatusCode,
    /// How many of them the user agent is to get: the last ones.
    to_arrive: usize,
    /// How many of those it got.
    arrived: usize,
    /// How many of the others it got.
    astray: usize,
}

/// A message that was sent.
struct Sent {
    status: StatusCode,
    /// Where it is taken back.
    location: Option<String>,
    body: Vec<u8>,
}

/// Sends, goes away, comes back, shows what became of it, and returns what deviates.
pub(super) async fn run(args: &WebpushArgs, timeout: Duration) -> anyhow::Result<Vec<String>> {
    let Some(url) = args.webpush_socket_url.as_deref().filter(|url| !url.is_empty()) else {
        output::note("where user agents connect is not given as WEBPUSH_SOCKET_URL: Web Push is left out");
        return Ok(Vec::new());
    };
    let sender = Sender {
        client: web::client(LIMIT)?,
        at: args.webpush_url.clone().filter(|url| !url.is_empty()),
    };
    let driving = tokio::time::timeout(timeout, drive(url, &sender));
    let cases = driving
        .await
        .context("the messages of Web Push did not arrive in time")??;
    output::result(table(&cases))?;
    Ok(cases.iter().filter_map(Case::deviation).collect())
}

async fn drive(url: &str, sender: &Sender) -> anyhow::Result<Vec<Case>> {
    let mut agent = UserAgent::connect(url, "").await?;
    let [news, ended, keyed] = [(); 3].map(|()| Uuid::new_v4());
    let endpoint = agent.subscribe(news, None).await?;
    let (sent, arrived) = tokio::try_join!(
        sender.some(&endpoint, DIRECT),
        agent.take(|arrived| arrived.len() == DIRECT)
    )?;
    let direct = Case::of("user agent connected", sent, &arrived, DIRECT).meaning(
        "Sent at once: each sender had its answer when the user agent had acknowledged the message.",
    );
    let ended_endpoint = agent.subscribe(ended, None).await?;
    agent.unsubscribe(ended).await?;
    let gone = sender.send(&ended_endpoint, TTL, None, body()).await?;
    let gone = Case::refused("subscription ended", gone, StatusCode::GONE)
        .meaning("The sender is told that the endpoint is of no more use.");
    let keyed_endpoint = agent.subscribe(keyed, Some(KEY)).await?;
    let stranger = sender.send(&keyed_endpoint, TTL, None, body()).await?;
    let stranger = Case::refused("endpoint for one key", stranger, StatusCode::UNAUTHORIZED)
        .meaning("A sender that does not show this key (VAPID) may not use the endpoint.");
    let uaid = agent.leave().await?;
    let mut cases = vec![direct];
    cases.extend(away(url, &uaid, &endpoint, sender).await?);
    cases.extend([gone, stranger]);
    Ok(cases)
}

/// What is sent while the user agent is away, and what it gets when it comes back.
async fn away(url: &str, uaid: &str, endpoint: &str, sender: &Sender) -> anyhow::Result<[Case; 4]> {
    let stored = sender.some(endpoint, STORED).await?;
    let dropped = sender.send(endpoint, 0, None, body()).await?;
    let withdrawn = sender.hand_in(endpoint, None, body()).await?;
    sender.take_back(&withdrawn).await?;
    let mut of_topic = Vec::new();
    for _ in 0..3 {
        of_topic.push(sender.hand_in(endpoint, Some("score"), body()).await?);
    }
    let mut agent = UserAgent::connect(url, uaid).await?;
    let mut arrived = agent.take(|arrived| arrived.len() == STORED + 1).await?;
    // What waits besides comes before what is sent now.
    let last = body();
    let (_, rest) = tokio::try_join!(
        sender.hand_in(endpoint, None, last.clone()),
        agent.take(|arrived| arrived.values().any(|body| *body == last))
    )?;
    arrived.extend(rest);
    agent.leave().await?;
    Ok([
        Case::of("user agent away", stored, &arrived, STORED)
            .meaning("Stored, and sent when the user agent came back."),
        Case::of("away, three of one topic", of_topic, &arrived, 1)
            .meaning("Each took the place of the one before it: the newest is sent."),
        Case::of("away, TTL 0", vec![dropped], &arrived, 0)
            .meaning("For a user agent that is connected, and for no other: dropped."),
        Case::of("away, taken back", vec![withdrawn], &arrived, 0)
            .meaning("The sender deleted it before it was sent."),
    ])
}

impl Case {
    fn of(kind: &'static str, sent: Vec<Sent>, arrived: &Arrived, to_arrive: usize) -> Self {
        let has_arrived = |sent: &&Sent| arrived.values().any(|body| *body == sent.body);
        let (others, wanted) = sent.split_at(sent.len() - to_arrive);
        Self {
            kind,
            meaning: "",
            expected: StatusCode::CREATED,
            to_arrive,
            arrived: wanted.iter().filter(has_arrived).count(),
            astray: others.iter().filter(has_arrived).count(),
            sent,
        }
    }

    fn refused(kind: &'static str, sent: Sent, expected: StatusCode) -> Self {
        Self {
            expected,
            ..Self::of(kind, vec![sent], &Arrived::new(), 0)
        }
    }

    fn meaning(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }

    fn deviation(&self) -> Option<String> {
        let Self { kind, to_arrive, .. } = self;
        if let Some(other) = self.sent.iter().find(|sent| sent.status != self.expected) {
            let (expected, found) = (self.expected, other.status);
            return Some(format!(
                "Web Push, {kind}: should be answered with {expected}, and was with {found}"
            ));
        }
        let arrived = self.arrived + self.astray;
        let is_well = self.arrived == *to_arrive && self.astray == 0;
        (!is_well).then(|| {
            format!("Web Push, {kind}: {to_arrive} should arrive, the last of those sent, but {arrived} did")
        })
    }
}

fn table(cases: &[Case]) -> Table {
    let mut table = output::table([
        Column::prose("Web Push"),
        Column::whole("sent").spare(1),
        Column::prose("answer").spare(2),
        Column::whole("arrived"),
        Column::prose("what it means"),
    ]);
    for case in cases {
        table.add_row([
            case.kind.to_owned(),
            case.sent.len().to_string(),
            counted(case.sent.iter().map(|sent| sent.status.as_u16().to_string())),
            (case.arrived + case.astray).to_string(),
            case.meaning.to_owned(),
        ]);
    }
    table
}

/// An application server.
struct Sender {
    client: Client,
    /// Where it sends to, whatever endpoints say.
    at: Option<String>,
}

impl Sender {
    fn address(&self, url: &str) -> anyhow::Result<String> {
        let Some(at) = &self.at else {
            return Ok(url.to_owned());
        };
        let url: Url = url
            .parse()
            .with_context(|| format!("an endpoint is {url:?}, which is no URL"))?;
        Ok(format!("{}{}", web::address("WEBPUSH_URL", at)?, url.path()))
    }

    /// Sends so many messages that are kept, some at a time.
    async fn some(&self, endpoint: &str, count: usize) -> anyhow::Result<Vec<Sent>> {
        stream::iter(0..count)
            .map(|_| self.hand_in(endpoint, None, body()))
            .buffered(CONNECTIONS)
            .try_collect()
            .await
    }

    /// Sends a message that the user agent is to get or would have got: it is waited for, in vain after any other answer.
    async fn hand_in(&self, endpoint: &str, topic: Option<&str>, body: Vec<u8>) -> anyhow::Result<Sent> {
        let sent = self.send(endpoint, TTL, topic, body).await?;
        ensure!(
            sent.status == StatusCode::CREATED,
            "a message of Web Push should be answered with {}, and was with {}",
            StatusCode::CREATED,
            sent.status
        );
        Ok(sent)
    }

    async fn send(
        &self,
        endpoint: &str,
        ttl: u32,
        topic: Option<&str>,
        body: Vec<u8>,
    ) -> anyhow::Result<Sent> {
        let address = self.address(endpoint)?;
        let mut request = self.client.post(&address).header("ttl", ttl);
        request = request.header(header::CONTENT_ENCODING, "aes128gcm");
        if let Some(topic) = topic {
            request = request.header("topic", topic);
        }
        let answer = web::send(request.body(body.clone()), &address).await?;
        let location = answer.headers().get(header::LOCATION);
        Ok(Sent {
            status: answer.status(),
            location: location
                .and_then(|location| location.to_str().ok())
                .map(ToOwned::to_owned),
            body,
        })
    }

    async fn take_back(&self, sent: &Sent) -> anyhow::Result<()> {
        let location = sent
            .location
            .as_deref()
            .context("the answer to a message has no Location")?;
        let address = self.address(location)?;
        let answer = web::send(self.client.delete(&address), &address).await?;
        answer.error_for_status()?;
        Ok(())
    }
}

/// What a message says: for the service it is opaque, as what is encrypted is.
fn body() -> Vec<u8> {
    [Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes).concat()
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::post;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn messages_that_are_not_taken_are_not_waited_for() {
        lifecycle::crypto::install_default_provider();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}/wpush/x", listener.local_addr().unwrap());
        let router = Router::new().route("/wpush/x", post(async || StatusCode::SERVICE_UNAVAILABLE));
        tokio::spawn(axum::serve(listener, router).into_future());
        let sender = Sender {
            client: web::client(LIMIT).unwrap(),
            at: None,
        };
        let never = std::future::pending::<anyhow::Result<Arrived>>();
        let error = tokio::try_join!(sender.some(&endpoint, DIRECT), never)
            .err()
            .unwrap();
        assert!(error.to_string().contains("503"), "{error}");
    }
}
