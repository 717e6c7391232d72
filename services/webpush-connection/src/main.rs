//! A connection node of Web Push as a program of its own; `postrider serve webpush-connection` is the same.

use std::process::ExitCode;

use runtime::Service;

fn main() -> ExitCode {
    let listen = (
        "webpush.connection.listen",
        (|config| config.webpush.connection.listen) as fn(&config::Config) -> _,
    );
    let service = Service::listening("webpush-connection", listen, webpush_connection::run);
    runtime::main(service.without_broker())
}
