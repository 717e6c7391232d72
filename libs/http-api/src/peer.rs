//! Who is at the other end: the address that a connection comes from or, behind a trusted proxy, the one that the proxy
//! names.
//!
//! It is an address and no identity: it bounds what one stranger may do, and stands in the log. Who may do what is decided
//! by keys alone.

use std::future::Future;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

tokio::task_local! {
    static CALLER: IpAddr;
}

/// Answers a request that comes from `caller`.
pub(crate) async fn scope<T>(caller: IpAddr, answering: impl Future<Output = T>) -> T {
    CALLER.scope(caller, answering).await
}

/// Where the request comes from that this task answers; `None` in a task of its own.
pub fn current() -> Option<IpAddr> {
    CALLER.try_with(|caller| *caller).ok()
}

/// The other end of a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    address: IpAddr,
    trusted: Arc<[IpNet]>,
}

impl Peer {
    /// `trusted`: the proxies that are believed.
    pub(crate) fn new(address: IpAddr, trusted: Arc<[IpNet]>) -> Self {
        Self {
            address: address.to_canonical(),
            trusted,
        }
    }

    /// Whether many callers share its connections: a trusted proxy, or a program on this machine.
    pub(crate) fn speaks_for_many(&self) -> bool {
        self.address.is_loopback() || self.is_trusted(self.address)
    }

    /// What its connections are counted by.
    pub(crate) fn network(&self) -> IpAddr {
        network(self.address)
    }

    /// What the request with these headers is counted by. Of `X-Forwarded-For` only what trusted proxies have written
    /// counts: the last entry that is none of them.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> IpAddr {
        if !self.is_trusted(self.address) {
            return self.network();
        }
        let lines = headers.get_all(FORWARDED_FOR);
        let entries: Vec<&str> = lines
            .iter()
            .flat_map(|line| line.to_str().unwrap_or_default().split(','))
            .collect();
        for entry in entries.into_iter().rev() {
            match address_of(entry.trim()) {
                Some(address) if self.is_trusted(address) => {}
                Some(address) => return network(address),
                // An entry that is no address was not written by a trusted proxy.
                None => break,
            }
        }
        self.network()
    }

    /// Whether it is a trusted proxy that has named this caller.
    pub(crate) fn is_proxy_of(&self, caller: IpAddr) -> bool {
        caller != self.network() && self.is_trusted(self.address)
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(&address))
    }
}

/// An address, with a port or without.
fn address_of(entry: &str) -> Option<IpAddr> {
    let bare = entry.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse().ok();
    let address = address.or_else(|| {
        entry
            .parse()
            .ok()
            .map(|with_port: std::net::SocketAddr| with_port.ip())
    });
    address.map(|address: IpAddr| address.to_canonical())
}

/// An address of IPv4, or the /64 network of one of IPv6: who has one address of it has all of them.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(from: &str, forwarded: &[&str]) -> String {
        let trusted = ["192.0.2.0/24", "2001:db8:aa::/48"].map(|network| network.parse().unwrap());
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(FORWARDED_FOR, line.parse().unwrap());
        }
        let peer = Peer::new(from.parse().unwrap(), Arc::new(trusted));
        peer.caller(&headers).to_string()
    }

    #[test]
    fn what_strangers_say_of_themselves_counts_for_nothing() {
        assert_eq!(caller("203.0.113.9", &["198.51.100.1"]), "203.0.113.9");
        assert_eq!(caller("127.0.0.1", &["198.51.100.1"]), "127.0.0.1");
    }

    #[test]
    fn a_trusted_proxy_names_the_caller() {
        for (forwarded, named) in [
            (&["198.51.100.1"] as &[_], "198.51.100.1"),
            (&["198.51.100.1:4711"], "198.51.100.1"),
            (&["10.0.0.1, 198.51.100.1"], "198.51.100.1"),
            (&["10.0.0.1", "198.51.100.1, 192.0.2.8"], "198.51.100.1"),
            (&["2001:db8:1:2:3::4"], "2001:db8:1:2::"),
            (&["[2001:db8:1:2:3::4]:443"], "2001:db8:1:2::"),
            (&["::ffff:198.51.100.1"], "198.51.100.1"),
        ] {
            assert_eq!(caller("192.0.2.7", forwarded), named, "{forwarded:?}");
            assert_eq!(caller("2001:db8:aa::1", forwarded), named, "{forwarded:?}");
        }
    }

    #[test]
    fn a_trusted_proxy_that_names_no_address_is_the_caller_itself() {
        for forwarded in [
            &[] as &[_],
            &[""],
            &["unknown"],
            &["198.51.100.1, unknown"],
            &["192.0.2.8"],
        ] {
            assert_eq!(caller("192.0.2.7", forwarded), "192.0.2.7", "{forwarded:?}");
        }
    }
}
