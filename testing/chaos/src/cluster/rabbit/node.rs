//! One node of the broker as a process.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use crate::cluster::supervisor::Program;

use super::files::{Plan, erlang};

pub(super) struct Node {
    pub(super) plan: Arc<Plan>,
    pub(super) number: usize,
}

impl Program for Node {
    fn name(&self) -> String {
        format!("rabbit-{}", self.number)
    }

    fn log(&self) -> PathBuf {
        self.plan.logs.join(format!("{}.log", self.name()))
    }

    fn command(&self) -> Command {
        let plan = &self.plan;
        let folder = plan.node_folder(self.number);
        // The plain start script: the one of the system would switch to the system's user and folders.
        let mut command = Command::new(plan.programs.join("rabbitmq-server"));
        environment(&mut command, plan, &folder, self.number);
        let interface = format!(
            "-kernel inet_dist_use_interface {}",
            erlang(plan.hosts[self.number])
        );
        command
            .current_dir(&folder)
            // Makes the start script become the broker instead of staying as its parent.
            .env("RUNNING_UNDER_SYSTEMD", "true")
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", interface)
            .env("RABBITMQ_DIST_PORT", plan.peer_ports[self.number].to_string())
            .env("RABBITMQ_CONFIG_FILE", folder.join("rabbitmq.conf"))
            .env("RABBITMQ_CONFIG_FILES", folder.join("none/*.conf"))
            .env("RABBITMQ_ADVANCED_CONFIG_FILE", folder.join("advanced.config"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("enabled_plugins"))
            .env("RABBITMQ_GENERATED_CONFIG_DIR", folder.join("generated"))
            .env("RABBITMQ_SCHEMA_DIR", folder.join("schema"))
            .env("RABBITMQ_MNESIA_BASE", folder.join("mnesia"))
            .env("RABBITMQ_LOG_BASE", &folder)
            .env("RABBITMQ_LOGS", "-");
        command
    }
}

/// What a node and the commands to it have in common.
pub(super) fn environment(command: &mut Command, plan: &Plan, home: &std::path::Path, number: usize) {
    command
        .env("HOME", home)
        .env("LANG", "C.UTF-8")
        .env("ERL_EPMD_PORT", plan.names_port.to_string())
        .env("ERL_INETRC", home.join("inetrc"))
        .env("ERL_CRASH_DUMP", home.join("erl_crash.dump"))
        .env("RABBITMQ_CONF_ENV_FILE", home.join("none"))
        .env("RABBITMQ_NODENAME", plan.name(number))
        .env("RABBITMQ_USE_LONGNAME", "false");
}
