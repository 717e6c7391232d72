//! The reseller lane, from `POST /events` to the endpoints of resellers: how much, how fast, how fair, how exact.

mod floors;
mod latency;
mod neighbours;
mod quota;
mod stored;
mod throughput;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;

use crate::args::Args;
use crate::load::{Gate, Target, What};
use crate::receiver::Receiver;
use crate::report::Section;
use crate::rig::{Overrides, Rig, SEALING_KEY, Service, Subscriber, overrides};

/// How long what is under way at the end of a load may take to arrive.
const STRAGGLERS: Duration = Duration::from_secs(60);

pub(crate) async fn measure(args: &Args, rig: &Rig) -> Result<Section> {
    let mut section = Section::new("reseller");
    let receiver = Receiver::start()?;
    let floors = floors::measure(args, rig, &receiver, &mut section).await?;
    throughput::measure(args, rig, &receiver, &floors, &mut section).await?;
    latency::measure(args, rig, &receiver, &mut section).await?;
    neighbours::measure(args, rig, &receiver, &mut section).await?;
    quota::measure(rig, &receiver, &mut section).await?;
    section.note(
        "the receiver is a thread of the load generator: it reads each delivery, notes it and answers 200 at once, without \
         verifying the signature. Everything shares the machine.",
    );
    Ok(section)
}

/// The services of the lane, all running.
struct Lane {
    ingest: Service,
    dispatchers: Vec<Service>,
    retry_workers: Vec<Service>,
    address: SocketAddr,
    target: Target,
}

impl Lane {
    /// Empties everything, subscribes, and starts ingest-api and `replicas` of each of the other two.
    async fn start(rig: &Rig, subscribers: &[Subscriber], replicas: usize, more: Overrides) -> Result<Self> {
        rig.stop_all().await;
        rig.empty().await?;
        rig.subscribe(subscribers).await?;
        let mut settings = overrides([
            ("POSTRIDER__RESELLER__SECRETS__KEY", SEALING_KEY),
            ("POSTRIDER__RESELLER__EGRESS__ALLOW_NETWORKS", "127.0.0.0/8"),
            ("POSTRIDER__RESELLER__EGRESS__ALLOW_HTTP", "true"),
        ]);
        settings.extend(more);
        let (ingest, target) = rig.ingest(&settings).await?;
        let (mut dispatchers, mut retry_workers) = (Vec::new(), Vec::new());
        for _ in 0..replicas {
            dispatchers.push(rig.courier(&settings).await?);
            retry_workers.push(rig.retry_worker(&settings).await?);
        }
        Ok(Self {
            ingest,
            dispatchers,
            retry_workers,
            address: target.address,
            target,
        })
    }

    /// Where events for the first `resellers` resellers go, in requests of one or of `batch`.
    fn events(&self, resellers: usize, batch: Option<usize>, gate: Option<Gate>) -> Target {
        Target {
            address: self.address,
            what: What::Events {
                resellers: u32::try_from(resellers).unwrap_or(u32::MAX),
                batch,
            },
            gate,
            ..self.target.clone()
        }
    }

    async fn expect_alive(&self, rig: &Rig) -> Result<()> {
        let others = self.dispatchers.iter().chain(&self.retry_workers);
        for service in others.chain([&self.ingest]) {
            rig.expect_alive(&service.process).await?;
        }
        Ok(())
    }
}

/// `count` subscriptions that answer, without limits.
fn answering(receiver: &Receiver, count: usize) -> Vec<Subscriber> {
    let subscriber = |number| Subscriber {
        url: receiver.url(number),
        daily_quota: None,
    };
    (0..count).map(subscriber).collect()
}
