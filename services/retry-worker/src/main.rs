//! The retry worker as a program of its own; `postrider serve retry-worker` is the same.

use std::process::ExitCode;

use runtime::Service;

fn main() -> ExitCode {
    runtime::main(Service::new("retry-worker", retry_worker::run))
}
