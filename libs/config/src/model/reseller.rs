//! The part of the configuration that is about the reseller lane: events, deliveries, subscriptions, the resellers' API and the
//! mails to them.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono_tz::Tz;
use ipnet::IpNet;

use super::Queue;
use crate::Secret;

/// The service that resellers talk to.
#[derive(Clone, Debug)]
pub struct Portal {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Largest request body in bytes.
    pub max_body_bytes: usize,
    /// Longest time for one request.
    pub request_timeout: Duration,
    /// Most connections at once.
    pub max_connections: usize,
    /// Most of them from one address.
    pub max_connections_per_peer: usize,
    /// Whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The folder with the documentation for resellers; `None` when there is none to serve.
    pub docs_directory: Option<PathBuf>,
}

/// The reseller lane.
#[derive(Clone, Debug)]
pub struct Reseller {
    /// The queues of notifications to deliver.
    pub queue: Queue,
    /// Events as they come in.
    pub event: ResellerEvent,
    /// Requests to endpoints.
    pub delivery: ResellerDelivery,
    /// Repeated attempts.
    pub retry: ResellerRetry,
    /// What holds for a subscription that says nothing else.
    pub subscription: SubscriptionDefaults,
    /// Daily quotas.
    pub quota: Quota,
    /// When a subscription counts as degraded and when it is given up.
    pub health: Health,
    /// Challenges to new endpoints.
    pub verification: Verification,
    /// Where requests may go.
    pub egress: Egress,
    /// Signing secrets.
    pub secrets: Secrets,
    /// Sending missed events again.
    pub replay: Replay,
    /// From which addresses requests come, as it is told to resellers.
    pub sending_ips: Vec<IpNet>,
}

/// Events as they come in.
#[derive(Clone, Debug)]
pub struct ResellerEvent {
    /// Largest `data` of an event in bytes of UTF-8.
    pub max_data_bytes: usize,
    /// Most events in one request.
    pub batch_max: usize,
    /// How long an event id or an idempotency key is remembered.
    pub key_retention: Duration,
}

/// Requests to endpoints.
#[derive(Clone, Debug)]
pub struct ResellerDelivery {
    /// For a whole request, where a subscription sets no time of its own.
    pub timeout: Duration,
    /// The longest that a subscription may set.
    pub max_timeout: Duration,
    /// Most first attempts in flight in one process.
    pub max_in_flight: usize,
    /// Most of them for one subscription.
    pub max_in_flight_per_subscription: usize,
    /// How much of an answer is read and kept, in bytes.
    pub response_body_bytes: usize,
    /// How long a notification waits before it is given up, whatever it waits for.
    pub max_age: Duration,
}

/// Repeated attempts to deliver a notification.
#[derive(Clone, Debug)]
pub struct ResellerRetry {
    /// Most attempts after the first one.
    pub max_retries: u32,
    /// From the first attempt to the second, before jitter; each further one is four times as long.
    pub initial_delay: Duration,
    /// The longest delay that this leads to.
    pub max_delay: Duration,
    /// The longest delay that a receiver may ask for.
    pub max_retry_after: Duration,
    /// Whether 408, 425 and 429 are as final as every other 4xx.
    pub strict_client_errors: bool,
    /// Most repeated attempts in flight in one process.
    pub max_in_flight: usize,
}

/// What holds for a subscription that says nothing else.
#[derive(Clone, Debug)]
pub struct SubscriptionDefaults {
    /// Most subscriptions of one reseller.
    pub maximum: u32,
    /// Notifications a day.
    pub daily_quota: u32,
    /// Requests a second; `None` is as many as there are.
    pub requests_per_second: Option<u32>,
}

/// Daily quotas.
#[derive(Clone, Debug)]
pub struct Quota {
    /// In which a day begins and ends.
    pub time_zone: Tz,
    /// Over which part of a day the notifications that waited for it are spread.
    pub release_window: Duration,
}

/// When a subscription counts as degraded and when it is given up.
#[derive(Clone, Debug)]
pub struct Health {
    /// Continuous failure after which it is degraded.
    pub degraded_after: Duration,
    /// Continuous failure after which it is deactivated.
    pub deactivated_after: Duration,
    /// How far apart the first and the last failure must be to prove anything.
    pub evidence_after: Duration,
}

/// Challenges to new endpoints.
#[derive(Clone, Debug)]
pub struct Verification {
    /// From one challenge to the next.
    pub retry_delay: Duration,
    /// Most challenges.
    pub max_attempts: u32,
}

/// Where requests may go.
#[derive(Clone, Debug)]
pub struct Egress {
    /// Networks that are open although they are not public.
    pub allow_networks: Vec<IpNet>,
    /// Whether `http://` is accepted for addresses in them.
    pub allow_http: bool,
    /// Networks that are closed although they are public.
    pub deny_networks: Vec<IpNet>,
    /// Ports that are dialled.
    pub allow_ports: Vec<RangeInclusive<u16>>,
    /// Whether `allow_networks` may open as much as no installation needs.
    pub allow_wide_networks: bool,
}

impl Egress {
    /// What is open besides public addresses over https, in words; `None` when nothing is.
    pub fn opened(&self) -> Option<String> {
        let networks: Vec<_> = self.allow_networks.iter().map(IpNet::to_string).collect();
        match (networks.is_empty(), self.allow_http) {
            (true, false) => None,
            (true, true) => Some("reseller.egress.allowHttp is set".to_owned()),
            (false, http) => Some(format!(
                "reseller.egress.allowNetworks opens {}{}",
                networks.join(", "),
                if http {
                    ", and allowHttp plain http to them"
                } else {
                    ""
                }
            )),
        }
    }
}

/// Signing secrets.
#[derive(Clone, Debug)]
pub struct Secrets {
    /// Seals them at rest; base64 of 32 bytes. Without it the reseller lane is off.
    pub key: Option<Secret>,
    /// Keys that sealed them before.
    pub previous_keys: Vec<Secret>,
    /// How long a secret signs after it was replaced.
    pub overlap: Duration,
    /// Whether resellers may look at a secret again.
    pub allow_viewing: bool,
    /// Whether resellers may bring a secret of their own.
    pub allow_choosing: bool,
}

impl Secrets {
    /// The key itself.
    pub fn key_bytes(&self) -> Option<[u8; 32]> {
        self.key.as_ref().and_then(|key| sealing_key(key.expose()))
    }

    /// The earlier keys themselves.
    pub fn previous_key_bytes(&self) -> Vec<[u8; 32]> {
        let decoded = self.previous_keys.iter().map(|key| sealing_key(key.expose()));
        decoded.flatten().collect()
    }
}

/// Reads a sealing key; `None` unless the text is base64 of exactly 32 bytes.
pub(crate) fn sealing_key(text: &str) -> Option<[u8; 32]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

/// Sending missed events again.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Most events of one replay in a second.
    pub per_second: u32,
    /// How far back one may go.
    pub max_age: Duration,
    /// Whether what an outage gave up is sent again by itself, for subscriptions that do not say.
    pub after_outage: bool,
}

/// Mails to resellers.
#[derive(Clone, Debug)]
pub struct Mail {
    /// An `smtp://` or `smtps://` URL. Without it mails wait.
    pub smtp_url: Option<Secret>,
    /// Whom they are from.
    pub from: String,
    /// Longest time to connect to the mail server, and to send one mail.
    pub timeout: Duration,
    /// From the first attempt to the second; later ones lie further apart.
    pub retry_delay: Duration,
    /// How long a mail is tried.
    pub max_age: Duration,
    /// Whether an address has to send a code back before it gets anything else.
    pub confirm_addresses: bool,
}
