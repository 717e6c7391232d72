//! The reseller portal as a program of its own; `postrider serve reseller-portal` is the same.

use std::process::ExitCode;

use runtime::Service;

fn main() -> ExitCode {
    let listen = (
        "portal.listen",
        (|config| config.portal.listen) as fn(&config::Config) -> _,
    );
    let service = Service::listening("reseller-portal", listen, reseller_portal::run);
    runtime::main(service.without_broker())
}
