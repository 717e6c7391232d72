//! The connection node under the name and with the variables (`AUTOCONNECT__…`) of autopush, for those who change over.

use std::process::ExitCode;

use runtime::{BAD_CONFIGURATION, Service};

#[expect(
    clippy::print_stderr,
    reason = "there is no log before the configuration is read"
)]
fn main() -> ExitCode {
    let listen = (
        "webpush.connection.listen",
        (|config| config.webpush.connection.listen) as fn(&config::Config) -> _,
    );
    let service = Service::listening("autoconnect", listen, webpush_connection::run).without_broker();
    match webpush_connection::sources(std::env::vars()) {
        Ok(sources) => runtime::exit(runtime::run("autoconnect", &sources, vec![service])),
        Err(unusable) => {
            eprintln!("error: {unusable}");
            BAD_CONFIGURATION.into()
        }
    }
}
