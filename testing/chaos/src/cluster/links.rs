//! The links between any two that talk to each other: every one a proxy of its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::Context as _;
use fault_proxy::{FaultProxy, Toxic, ToxicGuard};

use super::End;

/// Proxies by who connects and to whom. Between two broker nodes there are two of them: one leads to the peer's name daemon.
#[derive(Default)]
pub(crate) struct Links(BTreeMap<(End, End), Vec<FaultProxy>>);

impl Links {
    /// Lays a proxy from an address of its own to a server.
    pub(crate) async fn lay(
        &mut self,
        from: End,
        to: End,
        target: Option<SocketAddr>,
    ) -> anyhow::Result<SocketAddr> {
        self.lay_at(from, to, ([127, 0, 0, 1], 0).into(), target).await
    }

    /// Lays a proxy that takes connections at `address`.
    pub(crate) async fn lay_at(
        &mut self,
        from: End,
        to: End,
        address: SocketAddr,
        target: Option<SocketAddr>,
    ) -> anyhow::Result<SocketAddr> {
        let laid = FaultProxy::listening_on(address)
            .await
            .with_context(|| format!("failed to listen on {address}"))?;
        if let Some(target) = target {
            laid.lead_to(target.to_string());
        }
        let address = laid.address();
        self.0.entry((from, to)).or_default().push(laid);
        Ok(address)
    }

    /// Leads what comes in to another server from now on.
    pub(crate) fn lead(&self, from: End, to: End, target: SocketAddr) {
        for proxy in self.0.get(&(from, to)).into_iter().flatten() {
            proxy.lead_to(target.to_string());
        }
    }

    /// Where `from` finds `to`.
    pub(crate) fn addresses(&self, from: End, to: End) -> Vec<SocketAddr> {
        let proxies = self.0.get(&(from, to)).into_iter().flatten();
        proxies.map(FaultProxy::address).collect()
    }

    fn between(&self, from: End, to: End) -> impl Iterator<Item = &FaultProxy> {
        let named = move |end: End, name: End| match name {
            End::Broker => matches!(end, End::BrokerNode(_)),
            name => end == name,
        };
        self.0
            .iter()
            // All replicas reach the receivers over the same links.
            .filter(move |((one, other), _)| named(*other, to) && (named(*one, from) || to == End::Receivers))
            .flat_map(|(_, proxies)| proxies)
    }

    /// Puts a toxic in the way of what leads from one to the other, until what is returned is dropped. Empty when there is no such link.
    pub(crate) fn add(&self, from: End, to: End, toxic: Toxic) -> Vec<ToxicGuard> {
        self.between(from, to).map(|proxy| proxy.add(toxic)).collect()
    }

    /// Ends connections; `false` when there is no such link.
    pub(crate) fn reset(&self, from: End, to: End) -> bool {
        self.between(from, to).map(FaultProxy::reset).count() > 0
    }
}
