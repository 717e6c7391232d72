//! Which addresses may be dialled. It neither resolves names nor opens connections.

use std::net::IpAddr;

use ipnet::IpNet;

use super::address::AddressKind;

/// What may be dialled besides public addresses over https. The default allows nothing more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressPolicy {
    /// Networks that may be dialled though they are not public.
    pub allow: Vec<IpNet>,
    /// Whether plain http may be spoken to addresses in `allow`; it never is to any other.
    pub allow_http: bool,
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
    /// It would be spoken to without TLS.
    #[error("plain http is not delivered to this address; use https")]
    PlainHttp,
}

impl EgressPolicy {
    /// Whether `address` may be dialled with TLS.
    ///
    /// # Errors
    /// Why not.
    pub fn judge(&self, address: IpAddr) -> Result<(), Refusal> {
        self.judge_for(Transport::Tls, address)
    }

    /// Whether `address` may be dialled for `transport`.
    pub(super) fn judge_for(&self, transport: Transport, address: IpAddr) -> Result<(), Refusal> {
        // An IPv4-mapped address is dialled as the IPv4 address. Other embeddings leave through a translator, so what is
        // allowed here says nothing about them.
        let canonical = address.to_canonical();
        if self
            .allow
            .iter()
            .any(|network| network.contains(&canonical) || network.contains(&address))
        {
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
