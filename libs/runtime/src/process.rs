//! One or several services side by side, with one admin listener, from the first bind to the bounded end.
//!
//! It deliberately touches nothing process-wide (no signals, no telemetry), so that tests can run several in one process.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use config::Config;
use lifecycle::{Condition, Lifecycle, Readiness, Shutdown};
use tokio::net::TcpListener;
use tokio::task::{Id, JoinError, JoinSet};

use crate::service::Running;
use crate::{Error, Service, ServiceError};

/// How much longer than the grace period a service may take, for closing its connections.
const CLOSING: Duration = Duration::from_secs(5);

/// Services that are ready to be run: everything they listen on is bound.
pub struct Process {
    config: Arc<Config>,
    admin: TcpListener,
    admin_address: SocketAddr,
    services: Vec<(Service, Option<TcpListener>)>,
}

impl Process {
    /// Binds the admin listener and those of the services. A port of 0 takes a free one.
    pub async fn bind(config: Arc<Config>, services: Vec<Service>) -> Result<Self, Error> {
        let (admin, admin_address) = listen(config.admin.listen, "admin.listen").await?;
        tracing::info!(address = %admin_address, "serving /healthz, /readyz and /metrics");
        let mut bound = Vec::with_capacity(services.len());
        for service in services {
            let listener = match &service.listen {
                None => None,
                Some(wanted) => {
                    let (listener, address) = listen((wanted.address)(&config), wanted.key).await?;
                    tracing::info!(service = service.name, %address, "listening");
                    Some(listener)
                }
            };
            bound.push((service, listener));
        }
        Ok(Self {
            config,
            admin,
            admin_address,
            services: bound,
        })
    }

    /// Where `/healthz`, `/readyz` and `/metrics` are.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// Runs until `shutdown` or until one of the services fails, which stops the others too. The admin endpoints stay until the end,
    /// and say "stopping" meanwhile.
    pub async fn run(self, shutdown: Shutdown) -> Result<(), Error> {
        let readiness = Readiness::default();
        let process = readiness.condition("process");
        let admin_shutdown = Shutdown::new();
        let admin = tokio::spawn(telemetry::admin::serve(
            self.admin,
            readiness.clone(),
            admin_shutdown.clone(),
        ));
        let mut running = Services::default();
        let alone = self.services.len() == 1;
        for (service, listener) in self.services {
            let part = if alone {
                readiness.clone()
            } else {
                readiness.part(service.name)
            };
            // Before the services start, so that no probe takes a list that is still empty for readiness.
            for name in service.awaits {
                part.condition(name);
            }
            let lifecycle = Lifecycle {
                shutdown: shutdown.clone(),
                readiness: part,
            };
            let future = (service.start)(Arc::clone(&self.config), listener, lifecycle);
            running.spawn(service.name, future);
        }
        process.ready();
        let limit = self.config.shutdown.grace_period + CLOSING;
        let outcome = running.finish(&shutdown, &process, limit).await;
        admin_shutdown.trigger();
        match admin.await {
            Ok(served) => outcome.and(served.map_err(Error::Admin)),
            Err(_) => outcome.and(Err(Error::Panicked { service: "admin" })),
        }
    }
}

async fn listen(address: SocketAddr, key: &'static str) -> Result<(TcpListener, SocketAddr), Error> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bound.await.map_err(|source: io::Error| match source.kind() {
        io::ErrorKind::AddrInUse => Error::AddressInUse {
            address,
            key,
            variable: format!("POSTRIDER__{}", key.replace('.', "__").to_uppercase()),
        },
        _ => Error::Listen { address, key, source },
    })
}

/// How the task of a service ended.
type Ended = Result<(Id, Result<(), ServiceError>), JoinError>;

/// The services that run.
#[derive(Default)]
struct Services {
    tasks: JoinSet<Result<(), ServiceError>>,
    names: BTreeMap<Id, &'static str>,
}

impl Services {
    fn spawn(&mut self, name: &'static str, service: Running) {
        let id = self.tasks.spawn(service).id();
        self.names.insert(id, name);
    }

    /// Waits for the shutdown, or requests it when a service ends before; then for the rest to end.
    async fn finish(
        mut self,
        shutdown: &Shutdown,
        process: &Condition,
        limit: Duration,
    ) -> Result<(), Error> {
        let first = tokio::select! {
            biased;
            () = shutdown.cancelled() => Ok(()),
            ended = self.next() => self.evaluate(ended, false),
        };
        process.not_ready("stopping");
        shutdown.trigger();
        tokio::select! {
            rest = self.drain() => first.and(rest),
            () = overdue(shutdown, limit) => first.and(Err(self.overdue(limit))),
        }
    }

    async fn drain(&mut self) -> Result<(), Error> {
        let mut outcome = Ok(());
        while let Some(ended) = self.next().await {
            outcome = outcome.and(self.evaluate(Some(ended), true));
        }
        outcome
    }

    async fn next(&mut self) -> Option<Ended> {
        self.tasks.join_next_with_id().await
    }

    fn evaluate(&mut self, ended: Option<Ended>, asked: bool) -> Result<(), Error> {
        match ended {
            None => Ok(()),
            Some(Err(error)) => Err(Error::Panicked {
                service: self.forget(error.id()),
            }),
            Some(Ok((id, result))) => {
                let service = self.forget(id);
                match result {
                    Ok(()) if asked => Ok(()),
                    Ok(()) => Err(Error::EndedEarly { service }),
                    Err(source) => Err(Error::Service { service, source }),
                }
            }
        }
    }

    fn forget(&mut self, id: Id) -> &'static str {
        self.names
            .remove(&id)
            .expect("invariant: every task was given a name when it was spawned")
    }

    fn overdue(&self, limit: Duration) -> Error {
        let names: Vec<_> = self.names.values().copied().collect();
        Error::Overdue {
            services: names.join(", "),
            limit,
        }
    }
}

/// Completes when services had the time to stop: `limit` after the shutdown, or a moment after it was hurried.
async fn overdue(shutdown: &Shutdown, limit: Duration) {
    tokio::select! {
        () = tokio::time::sleep(limit) => {}
        () = async {
            shutdown.hurried().await;
            tokio::time::sleep(CLOSING).await;
        } => {}
    }
}
