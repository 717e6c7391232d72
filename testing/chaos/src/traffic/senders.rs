//! Senders of Web Push: each has one channel, sends one message after another, and sends what was not answered 201 again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use reqwest::{Client, StatusCode, header};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::user_agents::Channel;
use crate::ledger::{Ledger, SentMessage};

/// Pause of a sender that was not answered.
const ASK_AGAIN: Duration = Duration::from_millis(150);
/// A TTL that outlasts every run and every wrong clock.
const LONG: &str = "1000000";

/// What senders need.
#[derive(Debug, Clone)]
pub struct Post {
    /// Carries requests.
    pub http: Client,
    /// All endpoint nodes.
    pub endpoints: Vec<SocketAddr>,
    /// Where answers are written down.
    pub ledger: Arc<Ledger>,
}

impl Post {
    /// So many messages in a second over all channels, until `stop`; what is under way is sent again until it is answered, or `give_up`.
    pub(super) fn send(
        &self,
        channels: &[Channel],
        rate: u32,
        (stop, give_up): (&CancellationToken, &CancellationToken),
        underway: &Arc<AtomicU64>,
        tasks: &mut JoinSet<()>,
    ) {
        let pause = Duration::from_secs(1) * u32::try_from(channels.len()).unwrap_or(1) / rate;
        for channel in channels {
            let (post, channel) = (self.clone(), channel.clone());
            let (stop, give_up, underway) = (stop.clone(), give_up.clone(), Arc::clone(underway));
            tasks.spawn(async move {
                let mut ticks = tokio::time::interval(pause);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                for number in 0.. {
                    if stop.run_until_cancelled(ticks.tick()).await.is_none() {
                        break;
                    }
                    underway.fetch_add(1, Ordering::Relaxed);
                    give_up.run_until_cancelled(post.insist(&channel, number)).await;
                    underway.fetch_sub(1, Ordering::Relaxed);
                }
            });
        }
    }

    async fn insist(&self, channel: &Channel, number: usize) {
        for attempt in 0.. {
            let name = format!("{}/{number}.{attempt}", channel.name);
            let message = SentMessage {
                channel: channel.name.clone(),
                topic: number
                    .is_multiple_of(3)
                    .then_some(u8::from(number.is_multiple_of(2))),
                is_kept: number % 10 != 4 || number.is_multiple_of(3),
                asked: Instant::now(),
                answered: None,
            };
            let request = self.request(channel, &name, &message, number + attempt);
            {
                let mut history = self.ledger.webpush();
                history.requests += 1;
                history.sent.insert(name.clone(), message);
            }
            if let Some(version) = self.ask(request, &name).await {
                if let Some(sent) = self.ledger.webpush().sent.get_mut(&name) {
                    sent.answered = Some((Instant::now(), version));
                }
                return;
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    }

    fn request(
        &self,
        channel: &Channel,
        name: &str,
        message: &SentMessage,
        turn: usize,
    ) -> reqwest::RequestBuilder {
        let endpoint = self.endpoints[turn % self.endpoints.len()];
        let request = self
            .http
            .post(format!("http://{endpoint}{}", channel.path))
            .header("TTL", if message.is_kept { LONG } else { "0" })
            .header(header::CONTENT_ENCODING, "aes128gcm")
            .body(name.to_owned());
        match message.topic {
            Some(topic) => request.header("Topic", format!("topic-{topic}")),
            None => request,
        }
    }

    /// The message id, when it was accepted.
    async fn ask(&self, request: reqwest::RequestBuilder, name: &str) -> Option<String> {
        let response = request.send().await.ok()?;
        match response.status() {
            StatusCode::CREATED => {}
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::REQUEST_TIMEOUT => return None,
            status => {
                let text = response.text().await.unwrap_or_default();
                self.ledger
                    .complain(format!("{name} was answered {status}: {text}"));
                return None;
            }
        }
        let location = response.headers().get(header::LOCATION)?.to_str().ok()?;
        location.rsplit('/').next().map(ToOwned::to_owned)
    }
}
