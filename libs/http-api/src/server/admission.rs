//! How many connections are taken: in all, and from one peer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use telemetry::Metric;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::peer::Peer;

/// Which bound a connection is past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    InAll,
    PerPeer,
}

impl Refused {
    /// As it stands in a metric.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::InAll => "all",
            Self::PerPeer => "peer",
        }
    }

    pub(super) fn count(self) {
        Metric::HttpConnectionsRefused.increment_with(&[("bound", self.as_str())], 1);
    }
}

/// Counts the connections of a listener.
#[derive(Debug)]
pub(super) struct Admission {
    places: Arc<Semaphore>,
    per_peer: Option<usize>,
    peers: Arc<Peers>,
}

/// A connection that was taken; it is counted for as long as this lives.
#[derive(Debug)]
pub(super) struct Admitted {
    _place: OwnedSemaphorePermit,
    _of_peer: Option<OfPeer>,
}

impl Admission {
    pub(super) fn new(in_all: usize, per_peer: Option<usize>) -> Self {
        Self {
            places: Arc::new(Semaphore::new(in_all.min(Semaphore::MAX_PERMITS))),
            per_peer,
            peers: Arc::default(),
        }
    }

    /// Takes a connection from `peer`, or says which bound it is past.
    pub(super) fn admit(&self, peer: &Peer) -> Result<Admitted, Refused> {
        let of_peer = match self.per_peer {
            Some(most) if !peer.speaks_for_many() => {
                Some(self.peers.enter(peer.network(), most).ok_or(Refused::PerPeer)?)
            }
            _ => None,
        };
        let place = Arc::clone(&self.places).try_acquire_owned();
        Ok(Admitted {
            _place: place.map_err(|_| Refused::InAll)?,
            _of_peer: of_peer,
        })
    }

    /// Takes a connection that stays, of a caller behind a trusted proxy: the proxy speaks for many, its callers do not.
    pub(super) fn admit_caller(&self, caller: IpAddr) -> Result<Option<OfPeer>, Refused> {
        match self.per_peer {
            Some(most) if !caller.is_loopback() => {
                Ok(Some(self.peers.enter(caller, most).ok_or(Refused::PerPeer)?))
            }
            _ => Ok(None),
        }
    }
}

/// Open connections by peer; a peer without any has no entry.
#[derive(Debug, Default)]
struct Peers(Mutex<HashMap<IpAddr, usize>>);

impl Peers {
    fn enter(self: &Arc<Self>, peer: IpAddr, most: usize) -> Option<OfPeer> {
        let mut open = self.lock();
        let count = open.entry(peer).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(OfPeer {
            peer,
            peers: Arc::clone(self),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        // Counters cannot be left half-written by a panicking holder.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that counts for the address it comes from.
#[derive(Debug)]
pub(super) struct OfPeer {
    peer: IpAddr,
    peers: Arc<Peers>,
}

impl Drop for OfPeer {
    fn drop(&mut self) {
        let mut open = self.peers.lock();
        if let Some(count) = open.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        let trusted = ["192.0.2.0/24".parse().unwrap()];
        Peer::new(address.parse().unwrap(), Arc::new(trusted))
    }

    #[test]
    fn one_peer_gets_its_share_and_the_others_theirs() {
        let admission = Admission::new(10, Some(2));
        let mut open: Vec<_> = (0..2)
            .map(|_| admission.admit(&peer("203.0.113.1")).unwrap())
            .collect();
        assert_eq!(
            admission.admit(&peer("203.0.113.1")).unwrap_err(),
            Refused::PerPeer
        );
        let _other = admission.admit(&peer("203.0.113.2")).unwrap();
        open.pop();
        admission
            .admit(&peer("203.0.113.1"))
            .expect("a connection that ended makes room");
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let admission = Admission::new(10, Some(1));
        let _first = admission.admit(&peer("2001:db8:0:1::1")).unwrap();
        let same = admission.admit(&peer("2001:db8:0:1:ffff::2"));
        assert_eq!(same.unwrap_err(), Refused::PerPeer);
        admission.admit(&peer("2001:db8:0:2::1")).unwrap();
    }

    #[test]
    fn who_speaks_for_many_is_bounded_by_the_whole_alone() {
        for address in ["127.0.0.1", "::1", "192.0.2.7"] {
            let admission = Admission::new(3, Some(1));
            let _open: Vec<_> = (0..3).map(|_| admission.admit(&peer(address)).unwrap()).collect();
            assert_eq!(admission.admit(&peer(address)).unwrap_err(), Refused::InAll);
        }
    }

    #[test]
    fn callers_behind_a_trusted_proxy_have_a_share_each() {
        let admission = Admission::new(10, Some(1));
        let caller = |address: &str| admission.admit_caller(address.parse().unwrap());
        let first = caller("203.0.113.1").unwrap();
        assert_eq!(caller("203.0.113.1").unwrap_err(), Refused::PerPeer);
        let _other = caller("203.0.113.2").unwrap();
        drop(first);
        caller("203.0.113.1").expect("a connection that ended makes room");
        assert!(caller("127.0.0.1").unwrap().is_none(), "it speaks for many");
    }

    #[test]
    fn a_connection_that_finds_no_place_is_not_counted_for_its_peer() {
        let admission = Admission::new(1, Some(2));
        let first = admission.admit(&peer("203.0.113.1")).unwrap();
        assert_eq!(admission.admit(&peer("203.0.113.1")).unwrap_err(), Refused::InAll);
        drop(first);
        assert!(admission.peers.lock().is_empty());
    }
}
