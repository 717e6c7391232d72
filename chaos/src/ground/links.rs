//! The links between any two that talk to each other: every one a cable of its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use cable::{Cable, Impaired, Impairment};

use super::{End, Error};

/// Cables by who connects and to whom. Between two broker nodes there are two of them: one leads to the peer's name daemon.
#[derive(Default)]
pub(crate) struct Links(BTreeMap<(End, End), Vec<Cable>>);

impl Links {
    /// Lays a cable from an address of its own to a server.
    pub(crate) async fn lay(
        &mut self,
        from: End,
        to: End,
        target: Option<SocketAddr>,
    ) -> Result<SocketAddr, Error> {
        self.lay_at(from, to, ([127, 0, 0, 1], 0).into(), target).await
    }

    /// Lays a cable that takes connections at `address`.
    pub(crate) async fn lay_at(
        &mut self,
        from: End,
        to: End,
        address: SocketAddr,
        target: Option<SocketAddr>,
    ) -> Result<SocketAddr, Error> {
        let laid = Cable::listening_on(address)
            .await
            .map_err(|source| Error::Listen {
                address: address.to_string(),
                source,
            })?;
        if let Some(target) = target {
            laid.lead_to(target.to_string());
        }
        let address = laid.address();
        self.0.entry((from, to)).or_default().push(laid);
        Ok(address)
    }

    /// Leads what comes in to another server from now on.
    pub(crate) fn lead(&self, from: End, to: End, target: SocketAddr) {
        for cable in self.0.get(&(from, to)).into_iter().flatten() {
            cable.lead_to(target.to_string());
        }
    }

    /// Where whoever connects finds `to`.
    pub(crate) fn addresses(&self, from: End, to: End) -> Vec<SocketAddr> {
        let cables = self.0.get(&(from, to)).into_iter().flatten();
        cables.map(Cable::address).collect()
    }

    fn between(&self, from: End, to: End) -> impl Iterator<Item = &Cable> {
        let named = move |end: End, name: End| match name {
            End::Broker => matches!(end, End::BrokerNode(_)),
            name => end == name,
        };
        self.0
            .iter()
            // All replicas reach the receivers over the same links.
            .filter(move |((one, other), _)| named(*other, to) && (named(*one, from) || to == End::Receivers))
            .flat_map(|(_, cables)| cables)
    }

    /// Impairs what leads from one to the other, until what is returned is dropped. Empty when there is no such link.
    pub(crate) fn impair(&self, from: End, to: End, impairment: Impairment) -> Vec<Impaired> {
        self.between(from, to)
            .map(|cable| cable.impair(impairment))
            .collect()
    }

    /// Ends connections; `false` when there is no such link.
    pub(crate) fn reset(&self, from: End, to: End) -> bool {
        self.between(from, to).map(Cable::reset).count() > 0
    }
}
