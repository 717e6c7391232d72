//! The endpoint node of Web Push as a program of its own, with the variables of autopush-rs' `autoendpoint`; otherwise the same as
//! `postrider serve webpush-endpoint`.

use std::process::ExitCode;

use runtime::Service;
use runtime::connections::with_schema;

fn main() -> ExitCode {
    let listen = (
        "webpush.endpoint.listen",
        (|config| config.webpush.endpoint.listen) as fn(&config::Config) -> _,
    );
    let service = Service::listening("webpush-endpoint", listen, webpush_endpoint::run).without_broker();
    let variables = std::env::vars_os().map(|(name, value)| {
        (
            name.to_string_lossy().into_owned(),
            value.to_string_lossy().into_owned(),
        )
    });
    let sources = webpush_endpoint::sources(variables);
    runtime::exit(runtime::run("autoendpoint", &sources, vec![with_schema(service)]))
}
