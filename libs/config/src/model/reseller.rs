//! The part of the configuration that is about the reseller lane: events, deliveries, subscriptions, the resellers' API and the
//! mails to them.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use chrono_tz::Tz;
use ipnet::IpNet;

use super::{MINUTES_10, Queue, WEEK_IN_SECONDS, YEAR_IN_HOURS};
use crate::Secret;
use crate::form::{
    ACCENT, ACCENT_DARK, ADDRESS, BRAND_NAME, FOLDER, HTTP_URL, LOGO, MAILBOX, NETWORKS, ORIGINS, PORTS,
    SEALING_KEY, SEALING_KEYS, SMTP_URL, THEME, TIME_ZONE, sealing_key,
};
use crate::section::sections;
use crate::unit::Unit::{Days, Hours, Millis, Minutes, Seconds};

sections! {
    /// The service that resellers talk to.
    pub struct Portal {
        /// Where it listens.
        pub listen: SocketAddr = text("listen", &ADDRESS),
        /// Largest request body in bytes.
        pub max_body_bytes: usize = integer("maxBodyBytes", 1024..=16_777_216),
        /// Longest time for one request.
        pub request_timeout: Duration = duration("requestTimeoutMillis", Millis, 10..=MINUTES_10),
        /// Most connections at once.
        pub max_connections: usize = integer("maxConnections", 1..=1_000_000),
        /// Most of them from one address.
        pub max_connections_per_peer: usize = integer("maxConnectionsPerPeer", 1..=1_000_000),
        /// Whose `X-Forwarded-For` is believed.
        pub trusted_proxies: Vec<IpNet> = list("trustedProxies", &NETWORKS),
        /// The folder with the documentation for resellers; `None` when there is none to serve.
        pub docs_directory: Option<PathBuf> = optional("docsDirectory", &FOLDER),
        /// Whether it serves the pages of the dashboard, under `/app`.
        pub app: bool = boolean("app"),
        /// Where browsers reach it, without a trailing slash.
        pub public_url: Option<String> = optional("publicUrl", &HTTP_URL),
        /// Framing the dashboard in other pages.
        pub embed: Embed = section("embed"),
        /// How the dashboard looks.
        pub brand: Brand = section("brand"),
    }

    /// Framing the dashboard in other pages.
    pub struct Embed {
        /// The origins whose pages may.
        pub origins: Vec<String> = list("origins", &ORIGINS),
    }

    /// How the dashboard looks.
    pub struct Brand {
        /// What it is called.
        pub name: String = text("name", &BRAND_NAME),
        /// The colour of links and buttons on a light background.
        pub accent: Option<String> = optional("accent", &ACCENT),
        /// The same on a dark one.
        pub accent_dark: Option<String> = optional("accentDark", &ACCENT_DARK),
        /// The file of the logo.
        pub logo: Option<PathBuf> = optional("logo", &LOGO),
        /// `light` or `dark`; `None` for what each browser prefers.
        pub theme: Option<String> = optional("theme", &THEME),
    }

    /// The reseller lane.
    pub struct Reseller {
        /// The queues of notifications to deliver.
        pub queue: Queue = section("queue"),
        /// Events as they come in.
        pub event: ResellerEvent = section("event"),
        /// Requests to endpoints.
        pub delivery: ResellerDelivery = section("delivery"),
        /// Repeated attempts.
        pub retry: ResellerRetry = section("retry"),
        /// What holds for a subscription that says nothing else.
        pub subscription: SubscriptionDefaults = section("subscription"),
        /// Daily quotas.
        pub quota: Quota = section("quota"),
        /// When a subscription counts as degraded and when it is given up.
        pub health: Health = section("health"),
        /// Challenges to new endpoints.
        pub verification: Verification = section("verification"),
        /// Where requests may go.
        pub egress: Egress = section("egress"),
        /// Signing secrets.
        pub secrets: Secrets = section("secrets"),
        /// Sending missed events again.
        pub replay: Replay = section("replay"),
        /// From which addresses requests come, as it is told to resellers.
        pub sending_ips: Vec<IpNet> = list("sendingIps", &NETWORKS),
    }

    /// Events as they come in.
    pub struct ResellerEvent {
        /// Largest `data` of an event in bytes of UTF-8.
        pub max_data_bytes: usize = integer("maxDataBytes", 1..=1_048_576),
        /// Most events in one request.
        pub batch_max: usize = integer("batchMax", 1..=10_000),
        /// How long an event id or an idempotency key is remembered.
        pub key_retention: Duration = duration("keyRetentionInDays", Days, 1..=3650),
    }

    /// Requests to endpoints.
    pub struct ResellerDelivery {
        /// For a whole request, where a subscription sets no time of its own.
        pub timeout: Duration = duration("timeoutMillis", Millis, 100..=MINUTES_10),
        /// The longest that a subscription may set.
        pub max_timeout: Duration = duration("maxTimeoutMillis", Millis, 100..=MINUTES_10),
        /// Most first attempts in flight in one process.
        pub max_in_flight: usize = integer("maxInFlight", 1..=65_535),
        /// Most of them for one subscription.
        pub max_in_flight_per_subscription: usize = integer("maxInFlightPerSubscription", 1..=65_535),
        /// How much of an answer is read and kept, in bytes.
        pub response_body_bytes: usize = integer("responseBodyBytes", 0..=1_048_576),
        /// How long a notification waits before it is given up, whatever it waits for.
        pub max_age: Duration = duration("maxAgeInDays", Days, 1..=365),
    }

    /// Repeated attempts to deliver a notification.
    pub struct ResellerRetry {
        /// Most attempts after the first one.
        pub max_retries: u32 = integer("maxRetries", 0..=100),
        /// From the first attempt to the second, before jitter; each further one is four times as long.
        pub initial_delay: Duration = duration("initialDelayInSeconds", Seconds, 0..=WEEK_IN_SECONDS),
        /// The longest delay that this leads to.
        pub max_delay: Duration = duration("maxDelayInSeconds", Seconds, 0..=WEEK_IN_SECONDS),
        /// The longest delay that a receiver may ask for.
        pub max_retry_after: Duration = duration("maxRetryAfterInSeconds", Seconds, 0..=WEEK_IN_SECONDS),
        /// Whether 408, 425 and 429 are as final as every other 4xx.
        pub strict_client_errors: bool = boolean("strictClientErrors"),
        /// Most repeated attempts in flight in one process.
        pub max_in_flight: usize = integer("maxInFlight", 1..=65_535),
    }

    /// What holds for a subscription that says nothing else.
    pub struct SubscriptionDefaults {
        /// Most subscriptions of one reseller.
        pub maximum: u32 = integer("maximum", 1..=10_000),
        /// Notifications a day.
        pub daily_quota: u32 = integer("dailyQuota", 1..=2_147_483_647),
        /// Requests a second; `None` is no limit.
        pub requests_per_second: Option<u32> = limit("requestsPerSecond", 0..=100_000),
    }

    /// Daily quotas.
    pub struct Quota {
        /// In which a day begins and ends.
        pub time_zone: Tz = text("timeZone", &TIME_ZONE),
        /// Over which part of a day the notifications that waited for it are spread; a day can be an hour shorter than others.
        pub release_window: Duration = duration("releaseWindowInMinutes", Minutes, 0..=1380),
    }

    /// When a subscription counts as degraded and when it is given up.
    pub struct Health {
        /// Continuous failure after which it is degraded.
        pub degraded_after: Duration = duration("degradedAfterInHours", Hours, 1..=YEAR_IN_HOURS),
        /// Continuous failure after which it is deactivated.
        pub deactivated_after: Duration = duration("deactivatedAfterInHours", Hours, 1..=YEAR_IN_HOURS),
        /// How far apart the first and the last failure must be to prove anything.
        pub evidence_after: Duration = duration("evidenceAfterInHours", Hours, 0..=YEAR_IN_HOURS),
    }

    /// Challenges to new endpoints.
    pub struct Verification {
        /// From one challenge to the next.
        pub retry_delay: Duration = duration("retryDelayInSeconds", Seconds, 1..=86_400),
        /// Most challenges.
        pub max_attempts: u32 = integer("maxAttempts", 1..=1000),
    }

    /// Where requests may go.
    pub struct Egress {
        /// Networks that are open although they are not public.
        pub allow_networks: Vec<IpNet> = list("allowNetworks", &NETWORKS),
        /// Whether `http://` is accepted for addresses in them.
        pub allow_http: bool = boolean("allowHttp"),
        /// Networks that are closed although they are public.
        pub deny_networks: Vec<IpNet> = list("denyNetworks", &NETWORKS),
        /// Ports that are dialled.
        pub allow_ports: Vec<RangeInclusive<u16>> = list("allowPorts", &PORTS),
        /// Whether `allow_networks` may open as much as no installation needs.
        pub allow_wide_networks: bool = boolean("allowWideNetworks"),
    }

    /// Signing secrets.
    pub struct Secrets {
        /// Seals them at rest; base64 of 32 bytes. Without it the reseller lane is off.
        pub key: Option<Secret> = optional("key", &SEALING_KEY)
            because "`openssl rand -base64 32` makes one",
        /// Keys that sealed them before.
        pub previous_keys: Vec<Secret> = list("previousKeys", &SEALING_KEYS),
        /// How long a secret signs after it was replaced.
        pub overlap: Duration = duration("overlapInHours", Hours, 0..=YEAR_IN_HOURS),
        /// Whether resellers may look at a secret again.
        pub allow_viewing: bool = boolean("allowViewing"),
        /// Whether resellers may bring a secret of their own.
        pub allow_choosing: bool = boolean("allowChoosing"),
    }

    /// Sending missed events again.
    pub struct Replay {
        /// Most events of one replay in a second.
        pub per_second: u32 = integer("perSecond", 1..=100_000),
        /// How far back one may go.
        pub max_age: Duration = duration("maxAgeInDays", Days, 1..=3650),
        /// Whether what an outage gave up is sent again by itself, for subscriptions that do not say.
        pub after_outage: bool = boolean("afterOutage"),
    }

    /// Mails to resellers.
    pub struct Mail {
        /// An `smtp://` or `smtps://` URL. Without it mails wait.
        pub smtp_url: Option<Secret> = optional("smtpUrl", &SMTP_URL),
        /// Whom they are from.
        pub from: String = text("from", &MAILBOX),
        /// Longest time to connect to the mail server, and to send one mail.
        pub timeout: Duration = duration("timeoutMillis", Millis, 100..=20_000),
        /// From the first attempt to the second; later ones lie further apart.
        pub retry_delay: Duration = duration("retryDelayInSeconds", Seconds, 1..=86_400),
        /// How long a mail is tried.
        pub max_age: Duration = duration("maxAgeInDays", Days, 1..=365),
        /// Whether an address has to send a code back before it gets anything else.
        pub confirm_addresses: bool = boolean("confirmAddresses"),
    }
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
