//! The dispatcher as a program of its own; `postrider serve dispatcher` is the same.

use std::process::ExitCode;

use bootstrap::Service;

fn main() -> ExitCode {
    bootstrap::main(Service::new("dispatcher", dispatcher::run))
}
