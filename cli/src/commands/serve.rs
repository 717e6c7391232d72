//! `postrider up` and `postrider serve`: the services.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use config::{Config, Sources};
use runtime::Service;

#[derive(Debug, Args)]
#[command(
    after_help = "Several replicas may run; on one machine each needs its own admin.listen, for example\n  \
                        POSTRIDER__ADMIN__LISTEN=127.0.0.1:9091 postrider serve dispatcher"
)]
pub(crate) struct ServeArgs {
    /// Which one.
    pub(crate) service: ServiceName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServiceName {
    /// Takes pushes and events in over HTTP.
    IngestApi,
    /// Sends pushes to Swrve and notifications to the endpoints of resellers.
    Dispatcher,
    /// Promotes what waits, rescues what was lost, repeats deliveries, sends mails, keeps the tables in shape.
    RetryWorker,
    /// The API of resellers: subscriptions, secrets, quotas, notifications.
    ResellerPortal,
    /// The API for the people on call: dead letters, status, pauses.
    OperatorApi,
    /// Takes what senders of Web Push send. With webpush.keys.
    WebpushEndpoint,
    /// Holds the connections of user agents of Web Push. With webpush.keys.
    WebpushConnection,
}

impl ServiceName {
    fn service(self) -> Service {
        match self {
            Self::IngestApi => Service::listening(
                "ingest-api",
                ("ingest.listen", |config| config.ingest.listen),
                ingest_api::run,
            ),
            Self::Dispatcher => Service::new("dispatcher", dispatcher::run),
            Self::RetryWorker => Service::new("retry-worker", retry_worker::run),
            Self::ResellerPortal => Service::listening(
                "reseller-portal",
                ("portal.listen", |config| config.portal.listen),
                reseller_portal::run,
            )
            .without_broker(),
            Self::OperatorApi => Service::listening(
                "operator-api",
                ("operator.listen", |config| config.operator.listen),
                operator_api::run,
            ),
            Self::WebpushEndpoint => Service::listening(
                "webpush-endpoint",
                ("webpush.endpoint.listen", |config| config.webpush.endpoint.listen),
                webpush_endpoint::run,
            )
            .without_broker(),
            Self::WebpushConnection => Service::listening(
                "webpush-connection",
                ("webpush.connection.listen", |config| {
                    config.webpush.connection.listen
                }),
                webpush_connection::run,
            )
            .without_broker(),
        }
    }

    /// Whether it belongs to an installation with this configuration: Web Push does when it has keys.
    fn is_wanted(self, config: &Config) -> bool {
        match self {
            Self::WebpushEndpoint | Self::WebpushConnection => !config.webpush.keys.is_empty(),
            _ => true,
        }
    }
}

/// All services in this process.
pub(crate) fn up(sources: &Sources) -> ExitCode {
    // What is wrong with the configuration is told by the process, which reads it again.
    let config = config::load(sources).ok();
    let services = ServiceName::value_variants()
        .iter()
        .filter(|name| config.as_ref().is_some_and(|config| name.is_wanted(config)))
        .map(|name| name.service())
        .collect();
    runtime::exit(runtime::run("postrider", sources, services))
}

/// One service.
pub(crate) fn one(sources: &Sources, name: ServiceName) -> ExitCode {
    let service = name.service();
    let name = service.name();
    runtime::exit(runtime::run(name, sources, vec![service]))
}
