//! The connection node under the name and with the variables (`AUTOCONNECT__…`) of autopush, for those who change over.

use std::process::ExitCode;

use runtime::connections::with_schema;
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
    // One that is not Unicode is another program's.
    let variables = std::env::vars_os().map(|(name, value)| {
        (
            name.to_string_lossy().into_owned(),
            value.to_string_lossy().into_owned(),
        )
    });
    match webpush_connection::sources(variables) {
        Ok(sources) => runtime::exit(runtime::run("autoconnect", &sources, vec![with_schema(service)])),
        Err(unusable) => {
            eprintln!("error: {unusable}");
            BAD_CONFIGURATION.into()
        }
    }
}
