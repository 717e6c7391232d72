//! Which addresses may be dialled. It neither resolves names nor opens connections.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use ipnet::IpNet;

use super::address::AddressKind;
use super::endpoint::Endpoint;

/// What may be dialled besides public addresses over https. The default allows nothing more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressPolicy {
    /// Networks that may be dialled though they are not public.
    pub allow: Vec<IpNet>,
    /// Whether plain http may be spoken to addresses in `allow`; it never is to any other.
    pub allow_http: bool,
    /// Networks that are not dialled though they are public; stronger than `allow`.
    pub deny: Vec<IpNet>,
    /// Ports that may be dialled.
    pub ports: Vec<RangeInclusive<u16>>,
}

impl Default for EgressPolicy {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            allow_http: false,
            deny: Vec::new(),
            ports: vec![443..=443, 8443..=8443, 1024..=u16::MAX],
        }
    }
}

/// What a reseller is told of every name that cannot be delivered to, whether it does not exist, has no address, or has one
/// that is not public: the difference would tell which names there are inside our network.
pub const NO_PUBLIC_ADDRESS: &str = "the host name has no public address";

/// How a connection would be secured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Tls,
    Plain,
}

/// Why an address may not be dialled. Says which kind of address it is, which the reseller may know of one that stands in
/// the URL, and must not learn of one that a name has here: for those there is [`NO_PUBLIC_ADDRESS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is neither public nor allowed.
    #[error("the endpoint has {0}; only public addresses are delivered to")]
    NotPublic(AddressKind),
    /// It is one of those that are kept closed.
    #[error("the endpoint has an address that is not delivered to")]
    Denied,
    /// The port is not one of those that are opened.
    #[error("the endpoint has a port that is not delivered to")]
    Port,
    /// It would be spoken to without TLS.
    #[error("plain http is not delivered to this address; use https")]
    PlainHttp,
}

impl EgressPolicy {
    /// Whether `address` may be dialled with TLS.
    pub fn check(&self, address: IpAddr) -> Result<(), Refusal> {
        self.check_for(Transport::Tls, address)
    }

    /// Whether an endpoint lies in a network that was opened by hand, as far as that shows without looking its name up.
    pub fn opens(&self, endpoint: &Endpoint) -> bool {
        let address = endpoint.known_address().map(|address| address.to_canonical());
        address.is_some_and(|address| self.allow.iter().any(|network| network.contains(&address)))
    }

    /// Whether `port` may be dialled.
    pub(super) fn check_port(&self, port: u16) -> Result<(), Refusal> {
        let is_open = self.ports.iter().any(|range| range.contains(&port));
        is_open.then_some(()).ok_or(Refusal::Port)
    }

    /// Whether `address` may be dialled for `transport`.
    pub(super) fn check_for(&self, transport: Transport, address: IpAddr) -> Result<(), Refusal> {
        // An IPv4-mapped address is dialled as the IPv4 address. Other embeddings leave through a translator, so what is
        // allowed here says nothing about them.
        let canonical = address.to_canonical();
        let holds = |networks: &[IpNet]| {
            let mut networks = networks.iter();
            networks.any(|network| network.contains(&canonical) || network.contains(&address))
        };
        if holds(&self.deny) {
            return Err(Refusal::Denied);
        }
        if holds(&self.allow) {
            return match transport {
                Transport::Plain if !self.allow_http => Err(Refusal::PlainHttp),
                _ => Ok(()),
            };
        }
        match AddressKind::of(address) {
            AddressKind::Public if transport == Transport::Tls => Ok(()),
            AddressKind::Public => Err(Refusal::PlainHttp),
            kind => Err(Refusal::NotPublic(kind)),
        }
    }
}
