//! The `postrider` binary as its users meet it: run as a process, judged by its output and exit code.

mod configuration;
mod keys;
mod migrations;
mod postrider;
mod services;
mod simulator;
mod traffic;
