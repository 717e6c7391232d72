//! The `postrider` binary as its users meet it: run as a process, judged by its output and exit code.

mod configuration;
mod event_types;
mod events;
mod keys;
mod migrations;
mod postrider;
#[path = "../../../libs/signing/tests/it/python.rs"]
mod python;
mod quotas;
mod receive;
mod reseller;
mod services;
mod simulator;
mod traffic;
