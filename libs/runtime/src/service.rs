//! A service as a process sees it: a name, perhaps a listener, and something to run.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use config::Config;
use lifecycle::Lifecycle;
use tokio::net::TcpListener;

/// Whatever a service failed with.
pub type ServiceError = Box<dyn std::error::Error + Send + Sync>;

pub(crate) type Running = Pin<Box<dyn Future<Output = Result<(), ServiceError>> + Send>>;

type Start = Box<dyn FnOnce(Arc<Config>, Option<TcpListener>, Lifecycle) -> Running + Send>;

/// The conditions that a service reports.
const AWAITED: [&str; 3] = ["database", "migrations", "broker"];
/// Those of a service without a broker.
const AWAITED_WITHOUT_BROKER: [&str; 2] = ["database", "migrations"];

/// A service that a process can run. It runs until its lifecycle's shutdown, and bounds the time it needs to stop by itself.
pub struct Service {
    pub(crate) name: &'static str,
    pub(crate) listen: Option<Listen>,
    pub(crate) awaits: &'static [&'static str],
    pub(crate) start: Start,
}

/// Where a service listens.
pub(crate) struct Listen {
    pub(crate) key: &'static str,
    pub(crate) address: fn(&Config) -> SocketAddr,
}

impl Service {
    /// A service that listens at no address.
    pub fn new<R, F, E>(name: &'static str, run: R) -> Self
    where
        R: FnOnce(Arc<Config>, Lifecycle) -> F + Send + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<ServiceError>,
    {
        Self {
            name,
            listen: None,
            awaits: &AWAITED,
            start: Box::new(move |config, _, lifecycle| {
                let running = run(config, lifecycle);
                Box::pin(async move { running.await.map_err(Into::into) })
            }),
        }
    }

    /// A service with a listener, at the address which `address` finds under `key` of the configuration.
    pub fn listening<R, F, E>(
        name: &'static str,
        (key, address): (&'static str, fn(&Config) -> SocketAddr),
        run: R,
    ) -> Self
    where
        R: FnOnce(Arc<Config>, TcpListener, Lifecycle) -> F + Send + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<ServiceError>,
    {
        Self {
            name,
            listen: Some(Listen { key, address }),
            awaits: &AWAITED,
            start: Box::new(move |config, listener, lifecycle| {
                let listener = listener.expect("invariant: a process binds what a service listens on");
                let running = run(config, listener, lifecycle);
                Box::pin(async move { running.await.map_err(Into::into) })
            }),
        }
    }

    /// The same for a service that needs no broker, and so is ready without one.
    pub fn without_broker(self) -> Self {
        Self {
            awaits: &AWAITED_WITHOUT_BROKER,
            ..self
        }
    }

    /// Its name, as in logs and on the command line.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
