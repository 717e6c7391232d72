//! Commands to nodes: over the paths of Erlang, without links, so that they work whatever is cut.

use std::process::Command;

use serde_json::Value;

use crate::cluster::supervisor::programs;
use crate::cluster::wait;

use super::Broker;
use super::files::Plan;
use super::node::environment;

/// Why a broker takes no messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alarm {
    Memory,
    Disk,
}

impl Alarm {
    /// A limit that every machine is past.
    const fn raise(self) -> &'static [&'static str] {
        match self {
            Self::Memory => &["set_vm_memory_high_watermark", "absolute", "1MB"],
            Self::Disk => &["set_disk_free_limit", "1000000GB"],
        }
    }

    /// The limit of the configuration.
    const fn clear(self) -> &'static [&'static str] {
        match self {
            Self::Memory => &["set_vm_memory_high_watermark", "absolute", "1GB"],
            Self::Disk => &["set_disk_free_limit", "50MB"],
        }
    }
}

pub(super) fn command(plan: &Plan, number: usize) -> Command {
    let mut command = Command::new(plan.programs.join("rabbitmqctl"));
    command.env_clear().env("PATH", programs());
    environment(&mut command, plan, &plan.control_folder(), number);
    command.env(
        "RABBITMQ_CTL_ERL_ARGS",
        "-kernel inet_dist_use_interface {127,0,0,1}",
    );
    command
}

impl Broker {
    /// Raises an alarm, which blocks publishers at every node; returns at which it was raised, once it is in force. `None` when no
    /// node can.
    pub(crate) async fn raise(&self, alarm: Alarm) -> anyhow::Result<Option<usize>> {
        for number in 0..self.count() {
            if self.control(number, alarm.raise()).await.is_err() {
                continue;
            }
            wait::until("the alarm", async || {
                let Ok(status) = self.status(number).await else {
                    // It has died meanwhile, and its alarm with it.
                    return true;
                };
                let alarmed = status["alarms"]
                    .as_array()
                    .is_some_and(|alarms| !alarms.is_empty());
                if !alarmed {
                    // The cure of an alarm that was raised before has put the limit right in between.
                    let _ = self.control(number, alarm.raise()).await;
                }
                alarmed
            })
            .await?;
            return Ok(Some(number));
        }
        Ok(None)
    }

    /// Puts the limit of a node right again. One that is down forgets it anyway.
    pub(crate) async fn clear(&self, number: usize, alarm: Alarm) {
        let _ = self.control(number, alarm.clear()).await;
    }

    /// Puts all limits right: an alarm's own cure may have found its node away.
    pub(crate) async fn clear_all(&self) {
        for number in 0..self.count() {
            let alarmed = self.status(number).await.is_ok_and(|status: Value| {
                status["alarms"]
                    .as_array()
                    .is_some_and(|alarms| !alarms.is_empty())
            });
            if alarmed {
                self.clear(number, Alarm::Memory).await;
                self.clear(number, Alarm::Disk).await;
            }
        }
    }
}
