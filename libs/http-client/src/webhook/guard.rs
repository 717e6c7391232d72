//! The look-up between the HTTP client and the sockets: what it returns is what is dialled, so nothing that was not
//! judged can be. Hosts that are addresses never come here, because the client dials them at once; see `client`.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::connecting::{Phase, enter};
use super::policy::{EgressPolicy, Refusal, Transport};
use super::resolver::{LookupError, NameResolver};
use crate::own_fault::has_route;

/// More addresses of one name are not tried.
const MAX_DIALLED: usize = 8;

/// Why a name is not dialled.
#[derive(Debug, thiserror::Error)]
pub(super) enum Guarded {
    #[error(transparent)]
    Lookup(LookupError),
    #[error(transparent)]
    Refused(Refusal),
}

/// Looks names up and lets an answer pass only if every address in it may be dialled. One bad address spoils the whole
/// answer: an attacker mixes them to find one that slips through.
pub(super) struct Guard {
    names: Arc<dyn NameResolver>,
    policy: EgressPolicy,
    transport: Transport,
    turn: Arc<AtomicUsize>,
}

impl Guard {
    pub(super) fn new(names: Arc<dyn NameResolver>, policy: EgressPolicy, transport: Transport) -> Self {
        Self {
            names,
            policy,
            transport,
            turn: Arc::default(),
        }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let looking_up = self.names.addresses(name.as_str());
        let host = name.as_str().to_owned();
        let (policy, transport, turn) = (self.policy.clone(), self.transport, Arc::clone(&self.turn));
        Box::pin(async move {
            enter(Phase::Resolving);
            let mut addresses = looking_up.await.map_err(|error| refuse(Guarded::Lookup(error)))?;
            enter(Phase::Connecting);
            if addresses.is_empty() {
                return Err(refuse(Guarded::Lookup(LookupError::NotFound)));
            }
            for address in &addresses {
                policy.check_for(transport, *address).map_err(|refusal| {
                    tracing::info!(host, %refusal, "a name is not delivered to");
                    refuse(Guarded::Refused(refusal))
                })?;
            }
            leave_out_unroutable(&mut addresses, has_route);
            take_turns(&mut addresses, turn.fetch_add(1, Ordering::Relaxed));
            // The client puts the URL's port, or the scheme's, in the place of 0.
            let dialled = addresses
                .into_iter()
                .take(MAX_DIALLED)
                .map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(dialled) as Addrs)
        })
    }
}

fn refuse(guarded: Guarded) -> Box<dyn Error + Send + Sync> {
    Box::new(guarded)
}

/// Leaves out what this machine has no route to, such as IPv6 addresses on a machine without, where there is something else: the
/// client tells of the last address that it tried, and that of an endpoint that refuses has to be what it tells of.
fn leave_out_unroutable(addresses: &mut Vec<IpAddr>, has_route: impl Fn(IpAddr) -> bool) {
    let both = addresses.iter().any(IpAddr::is_ipv4) && addresses.iter().any(IpAddr::is_ipv6);
    if both && addresses.iter().any(|address| has_route(*address)) {
        addresses.retain(|address| has_route(*address));
    }
}

/// Begins with another address each time, IPv4 before IPv6: the client tries one after the other, and a dead one at the
/// head of a cached answer would make every delivery late.
fn take_turns(addresses: &mut [IpAddr], turn: usize) {
    addresses.sort_by_key(IpAddr::is_ipv6);
    let (v4, v6) = addresses.split_at_mut(addresses.partition_point(IpAddr::is_ipv4));
    for family in [v4, v6] {
        if !family.is_empty() {
            family.rotate_left(turn % family.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_without_a_route_is_left_out_unless_it_is_all_there_is() {
        let parse =
            |texts: &[&str]| -> Vec<IpAddr> { texts.iter().map(|text| text.parse().unwrap()).collect() };
        let left = |texts, has_route: fn(IpAddr) -> bool| {
            let mut addresses = parse(texts);
            leave_out_unroutable(&mut addresses, has_route);
            addresses
        };
        let both = ["2606::1", "1.0.0.1"];
        assert_eq!(left(&both, |ip| ip.is_ipv4()), parse(&["1.0.0.1"]));
        assert_eq!(left(&both, |ip| ip.is_ipv6()), parse(&["2606::1"]));
        assert_eq!(left(&both, |_| false), parse(&both));
        assert_eq!(left(&["2606::1"], |ip| ip.is_ipv4()), parse(&["2606::1"]));
    }

    #[test]
    fn addresses_take_turns_within_their_family() {
        let parse = |texts: [&str; 5]| texts.map(|text| text.parse::<IpAddr>().unwrap());
        let order = |turn| {
            let mut addresses = parse(["2606::1", "1.0.0.1", "2606::2", "1.0.0.2", "1.0.0.3"]);
            take_turns(&mut addresses, turn);
            addresses
        };
        let expected = parse(["1.0.0.1", "1.0.0.2", "1.0.0.3", "2606::1", "2606::2"]);
        assert_eq!(order(0), expected);
        let expected = parse(["1.0.0.2", "1.0.0.3", "1.0.0.1", "2606::2", "2606::1"]);
        assert_eq!(order(1), expected);
        assert_eq!(order(6), order(0));
    }
}
