//! The services that both lanes run on, in so many replicas, as one thing to start and to put load on.

use anyhow::Result;

use super::{Overrides, Rig, SEALING_KEY, Service, Subscriber, overrides};
use crate::load::{Gate, Target, What};

/// How a [`Lane`] is to run.
#[derive(Clone, Default)]
pub(crate) struct Setup {
    /// Of ingest-api; one when zero.
    pub(crate) ingest: usize,
    /// Of dispatcher and retry-worker; one when zero.
    pub(crate) replicas: usize,
    /// Whether pushes are sent, to a simulator of their own.
    pub(crate) sending: bool,
    pub(crate) overrides: Overrides,
}

impl Setup {
    /// One of each service, and pushes are sent.
    pub(crate) fn sending() -> Self {
        Self {
            sending: true,
            ..Self::default()
        }
    }
}

/// The running services.
pub(crate) struct Lane {
    pub(crate) ingest: Vec<Service>,
    pub(crate) dispatchers: Vec<Service>,
    pub(crate) retry_workers: Vec<Service>,
    target: Target,
}

impl Lane {
    /// Starts everything with empty tables but for these subscribers.
    pub(crate) async fn fresh(rig: &Rig, subscribers: &[Subscriber], setup: Setup) -> Result<Self> {
        rig.restart().await?;
        rig.subscribe(subscribers).await?;
        Self::start(rig, setup).await
    }

    /// Starts everything. Endpoints may be on this machine.
    pub(crate) async fn start(rig: &Rig, setup: Setup) -> Result<Self> {
        let swrve = if setup.sending {
            Some(rig.swrve().await?)
        } else {
            None
        };
        let mut settings = settings();
        settings.extend(setup.overrides);
        let (mut ingest, mut addresses) = (Vec::new(), Vec::new());
        let mut target = None;
        for _ in 0..setup.ingest.max(1) {
            let (service, to) = rig.ingest(&settings).await?;
            addresses.extend(&to.addresses);
            ingest.push(service);
            target = Some(to);
        }
        let (mut dispatchers, mut retry_workers) = (Vec::new(), Vec::new());
        for _ in 0..setup.replicas.max(1) {
            dispatchers.push(match &swrve {
                Some(swrve) => rig.dispatcher(swrve, &settings).await?,
                None => rig.reseller_dispatcher(&settings).await?,
            });
            retry_workers.push(rig.retry_worker(&settings).await?);
        }
        let target = target.expect("invariant: at least one replica was started");
        Ok(Self {
            ingest,
            dispatchers,
            retry_workers,
            target: Target { addresses, ..target },
        })
    }

    /// Where pushes go.
    pub(crate) fn pushes(&self) -> Target {
        self.target.clone()
    }

    /// Where events for `resellers` resellers go, from the one with the number `first` on, in requests of one or of
    /// `batch`.
    pub(crate) fn events(
        &self,
        first: usize,
        resellers: usize,
        batch: Option<usize>,
        gate: Option<Gate>,
    ) -> Target {
        let number =
            |count: usize| u32::try_from(count).expect("invariant: there are only so many resellers");
        Target {
            what: What::Events {
                first: number(first),
                resellers: number(resellers),
                batch,
            },
            gate,
            ..self.target.clone()
        }
    }
}

/// What every service that knows subscriptions needs in order to deliver to this machine.
pub(crate) fn settings() -> Overrides {
    overrides([
        ("POSTRIDER__RESELLER__SECRETS__KEY", SEALING_KEY),
        ("POSTRIDER__RESELLER__EGRESS__ALLOW_NETWORKS", "127.0.0.0/8"),
        ("POSTRIDER__RESELLER__EGRESS__ALLOW_HTTP", "true"),
    ])
}
