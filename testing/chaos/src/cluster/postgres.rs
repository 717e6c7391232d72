//! The private database: made for each run, durable as in production, recovering by itself after a kill.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Signal, geteuid};
use sqlx::{Connection, PgConnection};

use super::net::Net;
use super::supervisor::Program;
use super::{tool, using, wait};

const NAME: &str = "postrider";
const SYSTEM_USER: &str = "postgres";
const FOLDERS: &str = "/usr/lib/postgresql";
/// Where everybody may have a folder.
const ELSEWHERE: &str = "/var/tmp";
const BETWEEN: Duration = Duration::from_millis(50);

/// Durable as in production; sized for a machine with other things to do.
const SETTINGS: [&str; 9] = [
    "unix_socket_directories=",
    "fsync=on",
    "full_page_writes=on",
    "synchronous_commit=on",
    "shared_buffers=128MB",
    "max_connections=200",
    "jit=off",
    "timezone=UTC",
    "log_timezone=UTC",
];

#[derive(Clone)]
pub(crate) struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    log: PathBuf,
    address: SocketAddr,
    password: String,
}

impl Postgres {
    /// Makes an empty database in `folder`, or elsewhere when the server's user could not get there.
    pub(crate) async fn create(
        folder: PathBuf,
        log: PathBuf,
        host: Ipv4Addr,
        net: &Net,
    ) -> anyhow::Result<Self> {
        let postgres = Self {
            programs: newest_programs()?,
            address: (host, net.free_port(&[host])?).into(),
            password: format!("{:032x}", rand::random::<u128>()),
            folder: if geteuid().is_root() && !others_may_pass(&folder) {
                PathBuf::from(ELSEWHERE).join(format!("postrider-chaos-{:032x}", rand::random::<u128>()))
            } else {
                folder
            },
            log,
        };
        postgres.initialize().await?;
        Ok(postgres)
    }

    async fn initialize(&self) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.folder).with_context(using(&self.folder))?;
        let secret = self.folder.join("secret");
        std::fs::write(&secret, &self.password).with_context(using(&secret))?;
        if geteuid().is_root() {
            let mut give = Command::new("chown");
            give.arg("--recursive").arg(SYSTEM_USER).arg(&self.folder);
            tool::output(give).await?;
        }
        let mut initdb = self.program("initdb");
        initdb
            .arg("--pgdata")
            .arg(self.data())
            .arg("--pwfile")
            .arg(secret)
            .args(["--username", NAME, "--auth", "scram-sha-256"])
            .args(["--encoding", "UTF8", "--locale", "C"]);
        tool::output(initdb).await.map(drop)
    }

    /// Removes what lies outside of the folder of the run. The server has ended.
    pub(crate) fn clear_away(&self) -> anyhow::Result<()> {
        if self.folder.starts_with(ELSEWHERE) {
            std::fs::remove_dir_all(&self.folder).with_context(using(&self.folder))?;
        }
        Ok(())
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// `PostgreSQL` refuses to run as root.
    fn program(&self, name: &str) -> Command {
        let path = self.programs.join(name);
        if !geteuid().is_root() {
            return Command::new(path);
        }
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", SYSTEM_USER, "--regid", SYSTEM_USER, "--init-groups"])
            // A change of the user forgets who had to die with whom.
            .args(["--pdeathsig", "KILL", "--"])
            .arg(path)
            .current_dir("/");
        command
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its database, reached at `address`.
    pub(crate) fn url(&self, address: SocketAddr) -> String {
        format!("postgres://{NAME}:{}@{address}/{NAME}", self.password)
    }

    pub(crate) async fn answers(&self) -> bool {
        let maintenance = format!("postgres://{NAME}:{}@{}/postgres", self.password, self.address);
        let Ok(mut connection) = PgConnection::connect(&maintenance).await else {
            return false;
        };
        sqlx::query("SELECT 1").execute(&mut connection).await.is_ok()
    }

    pub(crate) async fn make_database(&self) -> anyhow::Result<()> {
        let maintenance = format!("postgres://{NAME}:{}@{}/postgres", self.password, self.address);
        wait::until("the database to be made", async || {
            let Ok(mut connection) = PgConnection::connect(&maintenance).await else {
                return false;
            };
            let made = sqlx::query("CREATE DATABASE postrider")
                .execute(&mut connection)
                .await;
            made.is_ok()
        })
        .await
    }
}

/// Whether every folder above lets everybody through.
fn others_may_pass(folder: &Path) -> bool {
    let mut above = folder.ancestors().skip(1);
    above.all(|folder| std::fs::metadata(folder).is_ok_and(|found| found.permissions().mode() & 0o001 != 0))
}

impl Program for Postgres {
    fn name(&self) -> String {
        "postgres".to_owned()
    }

    fn log(&self) -> PathBuf {
        self.log.clone()
    }

    fn command(&self) -> Command {
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data());
        let where_to = [
            format!("listen_addresses={}", self.address.ip()),
            format!("port={}", self.address.port()),
        ];
        for setting in where_to.iter().map(String::as_str).chain(SETTINGS) {
            command.arg("-c").arg(setting);
        }
        command
    }

    /// A fast shutdown, which does not wait for clients to leave.
    fn farewell(&self) -> Signal {
        Signal::INT
    }

    /// After a kill its children live for a moment and still use the data. What the pid file names may be another process by then.
    async fn before(&self) {
        let data = self.data();
        while process_works_in(&data) {
            tokio::time::sleep(BETWEEN).await;
        }
        // Is not there after an end in good order.
        let _ = std::fs::remove_file(data.join("postmaster.pid"));
    }
}

fn newest_programs() -> anyhow::Result<PathBuf> {
    let versions = std::fs::read_dir(FOLDERS).into_iter().flatten().flatten();
    versions
        .filter_map(|folder| folder.file_name().to_str()?.parse::<u32>().ok())
        .max()
        .map(|version| Path::new(FOLDERS).join(version.to_string()).join("bin"))
        .filter(|programs| programs.join("postgres").exists())
        .context("PostgreSQL is not installed: apt-get install postgresql")
}

fn process_works_in(folder: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok())
        .any(|place| place == folder)
}
