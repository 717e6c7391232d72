//! The two versions, and the schema that one of them has made and the other one moves on.

use std::path::PathBuf;
use std::process::{Command, Output};

use testkit::Installation;

use crate::rig::{Fleet, Process, Service};

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Previous,
    This,
}

/// Processes of both, which share their settings, the database, the broker and the callers.
pub(crate) struct Versions {
    previous: Fleet,
    this: Fleet,
    /// What the previous version says of its services.
    services: String,
}

impl Versions {
    /// Both on an installation whose database is empty so far, and has the schema of the previous version afterwards.
    pub(crate) async fn of(it: &Installation) -> Self {
        let binary = previous();
        let mut migrate = Command::new(&binary);
        migrate
            .arg("migrate")
            .env_clear()
            .env("DATABASE_URL", it.config.database.url.expose());
        succeeds(migrate).await;
        let previous = Fleet::running(&binary, it).await;
        let services = succeeds(previous.command("serve --help")).await;
        Self {
            this: previous.of_this_version(it),
            previous,
            services: String::from_utf8_lossy(&services.stdout).into_owned(),
        }
    }

    /// Whether a version has this service.
    pub(crate) fn have(&self, version: Version, service: Service) -> bool {
        version == Version::This || self.services.contains(service.name())
    }

    /// The processes of one version.
    pub(crate) fn fleet(&self, version: Version) -> &Fleet {
        match version {
            Version::Previous => &self.previous,
            Version::This => &self.this,
        }
    }

    /// Starts a process of that version.
    pub(crate) async fn start(&self, version: Version, service: Service) -> Process {
        self.fleet(version).start(service).await
    }

    /// Brings the schema to this version, as an operator does. A lock that cannot be had in time makes it fail.
    pub(crate) async fn migrate(&self) {
        let applied = succeeds(self.this.command("migrate")).await;
        assert!(
            String::from_utf8_lossy(&applied.stdout).contains("applied "),
            "the previous version has the same schema, so that this proves too little: {applied:?}"
        );
    }
}

/// The binary of the previous version.
fn previous() -> PathBuf {
    let path = std::env::var_os("POSTRIDER_PREVIOUS");
    path.expect("POSTRIDER_PREVIOUS must name a binary of the previous version, as `make upgrade` builds it")
        .into()
}

async fn succeeds(mut command: Command) -> Output {
    let output = tokio::task::spawn_blocking(move || command.output()).await;
    let output = output.expect("it does not panic").expect("the binary can be run");
    assert!(output.status.success(), "{output:?}");
    output
}

/// SIGTERM, until it has ended well.
pub(crate) async fn stop(process: Process) {
    process.ask_to_stop();
    let ended = process.ended().await;
    assert!(ended.success(), "it stopped badly: {ended:?}");
}
