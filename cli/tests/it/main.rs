//! The `postrider` binary as its users meet it: run as a process, judged by its output and exit code.

mod configuration;
mod dead_letter_jobs;
mod dead_letters;
mod event_types;
mod events;
mod final_acts;
mod keys;
mod kit;
mod migrations;
mod on_call;
mod postrider;
#[path = "../../../libs/signing/tests/it/python.rs"]
mod python;
mod quotas;
mod receive;
mod reseller;
mod services;
mod simulator;
mod terminal;
mod traffic;
