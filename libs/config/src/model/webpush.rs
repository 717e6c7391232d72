//! The part of the configuration that is about Web Push.

use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;

use super::MINUTES_10;
use crate::Secret;
use crate::form::{ADDRESS, BEARER, CLIENT_SECRET, FERNET_KEYS, HTTP_URL, NETWORKS};
use crate::section::sections;
use crate::unit::Unit::{Millis, Seconds};

const DAY_IN_MILLIS: u64 = 86_400_000;

sections! {
    /// Web Push.
    pub struct Webpush {
        /// The keys of push endpoints: the first makes them, all read them.
        pub keys: Vec<Secret> = list("keys", &FERNET_KEYS),
        /// Where senders reach the endpoint nodes, without a trailing slash.
        pub endpoint_url: String = text("endpointUrl", &HTTP_URL),
        /// The nodes that senders send to.
        pub endpoint: WebpushEndpoint = section("endpoint"),
        /// The nodes that user agents are connected to.
        pub connection: WebpushConnection = section("connection"),
    }

    /// A node that senders send to.
    pub struct WebpushEndpoint {
        /// Where it listens.
        pub listen: SocketAddr = text("listen", &ADDRESS),
        /// What the secrets of registrations over HTTP are made with: the first makes them, all are taken.
        pub auth_keys: Vec<Secret> = list("authKeys", &CLIENT_SECRET),
        /// Largest body of a message in bytes.
        pub max_data_bytes: usize = integer("maxDataBytes", 1..=65_536),
        /// Longest time that a message is kept.
        pub max_ttl: Duration = duration("maxTtlInSeconds", Seconds, 0..=2_592_000)
            because "what is older goes with its month",
        /// Longest time for one request.
        pub request_timeout: Duration = duration("requestTimeoutMillis", Millis, 10..=MINUTES_10),
        /// Longest time until a connection node takes a connection.
        pub node_connect_timeout: Duration = duration("nodeConnectTimeoutMillis", Millis, 10..=MINUTES_10),
        /// Longest time until a connection node answers.
        pub node_timeout: Duration = duration("nodeTimeoutMillis", Millis, 10..=MINUTES_10),
        /// Most connections at once.
        pub max_connections: usize = integer("maxConnections", 1..=1_000_000),
        /// Most of them from one address.
        pub max_connections_per_peer: usize = integer("maxConnectionsPerPeer", 1..=1_000_000),
        /// Whose `X-Forwarded-For` is believed.
        pub trusted_proxies: Vec<IpNet> = list("trustedProxies", &NETWORKS),
        /// Most messages to one channel of a user agent in a second, on average.
        pub messages_per_second: u32 = integer("messagesPerSecond", 1..=1_000_000),
        /// Most of them at once after a pause.
        pub message_burst: u32 = integer("messageBurst", 1..=1_000_000),
        /// Most messages from one address in a second.
        pub messages_per_second_per_peer: u32 = integer("messagesPerSecondPerPeer", 1..=1_000_000),
        /// Most new registrations over HTTP from one address in a minute.
        pub registrations_per_minute: u32 = integer("registrationsPerMinute", 1..=1_000_000),
        /// How many group commits may run at once, and how many look-ups.
        pub writers: usize = integer("writers", 1..=256),
        /// Most messages in one of them.
        pub batch_rows: usize = integer("batchRows", 1..=5000),
    }

    /// A node that user agents are connected to.
    pub struct WebpushConnection {
        /// Where it listens for user agents.
        pub listen: SocketAddr = text("listen", &ADDRESS),
        /// Where it listens for endpoint nodes and other connection nodes.
        pub router_listen: SocketAddr = text("routerListen", &ADDRESS),
        /// Where they reach that listener, if it is not at its address.
        pub router_url: Option<String> = optional("routerUrl", &HTTP_URL),
        /// Most connections at once.
        pub max_connections: usize = integer("maxConnections", 1..=1_000_000),
        /// Most of them from one address.
        pub max_connections_per_peer: usize = integer("maxConnectionsPerPeer", 1..=1_000_000),
        /// Whose `X-Forwarded-For` is believed.
        pub trusted_proxies: Vec<IpNet> = list("trustedProxies", &NETWORKS),
        /// Longest wait for the first message of a user agent.
        pub hello_timeout: Duration = duration("helloTimeoutMillis", Millis, 10..=MINUTES_10),
        /// Time between two pings.
        pub ping_interval: Duration = duration("pingIntervalMillis", Millis, 10..=DAY_IN_MILLIS),
        /// Longest wait for the answer to a ping.
        pub pong_timeout: Duration = duration("pongTimeoutMillis", Millis, 10..=MINUTES_10),
        /// Longest wait for the acknowledgement of a message that is not stored.
        pub ack_wait: Duration = duration("ackWaitMillis", Millis, 0..=2000)
            because "the endpoint node that asked waits for the answer meanwhile",
        /// Most messages from storage in one go.
        pub message_limit: u32 = integer("messageLimit", 10..=1_000_000),
        /// Most notifications that wait to be sent to one user agent, and most that wait for its acknowledgement.
        pub queue_capacity: usize = integer("queueCapacity", 1..=10_000),
        /// Most channels of a user agent, and most that one connection registers.
        pub max_channels: u32 = integer("maxChannels", 1..=100_000),
        /// Most registrations of channels from one address in a minute.
        pub registrations_per_minute: u32 = integer("registrationsPerMinute", 1..=1_000_000),
        /// Most commands of a user agent in a second, on average.
        pub commands_per_second: u32 = integer("commandsPerSecond", 1..=1_000_000),
        /// Most of them at once after a pause.
        pub command_burst: u32 = integer("commandBurst", 1..=1_000_000),
        /// Where the versions of broadcasts are asked for, without a trailing slash; `None` when there are none.
        pub megaphone_url: Option<String> = optional("megaphoneUrl", &HTTP_URL),
        /// What is sent along as the header `Authorization`.
        pub megaphone_token: Option<Secret> = optional("megaphoneToken", &BEARER),
        /// Time between two questions for broadcasts.
        pub megaphone_interval: Duration = duration("megaphoneIntervalMillis", Millis, 10..=DAY_IN_MILLIS),
        /// Over which time user agents are sent elsewhere when the node stops.
        pub drain: Duration = duration("drainMillis", Millis, 0..=MINUTES_10),
    }
}
