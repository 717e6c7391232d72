//! The ingest API as a program of its own; `postrider serve ingest-api` is the same.

use std::process::ExitCode;

use runtime::Service;

fn main() -> ExitCode {
    let listen = (
        "ingest.listen",
        (|config| config.ingest.listen) as fn(&config::Config) -> _,
    );
    runtime::main(Service::listening("ingest-api", listen, ingest_api::run))
}
