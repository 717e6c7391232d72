//! The operator API as a program of its own; `postrider serve operator-api` is the same.

use std::process::ExitCode;

use runtime::Service;

fn main() -> ExitCode {
    let listen = (
        "operator.listen",
        (|config| config.operator.listen) as fn(&config::Config) -> _,
    );
    runtime::main(Service::listening("operator-api", listen, operator_api::run))
}
