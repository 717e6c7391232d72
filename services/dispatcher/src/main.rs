//! The dispatcher as a program of its own; `postrider serve dispatcher` is the same.

use std::process::ExitCode;

use runtime::Service;

fn main() -> ExitCode {
    runtime::main(Service::new("dispatcher", dispatcher::run))
}
