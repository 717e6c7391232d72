//! Servers that a test starts by itself, since it has to stop and to configure them. They end with the test.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use sqlx::{Connection as _, PgConnection};
use store::{Settings, Store};
use tempfile::TempDir;
use testkit::eventually;

/// Who runs servers where the test is root, as which they do not run.
const USER: &str = "postgres";
const NAME: &str = "postrider";
const PASSWORD: &str = "of-a-test";

/// A store whose connections are found by their name, `own_servers`.
pub(crate) fn store_at(url: String) -> Store {
    Store::open(&Settings {
        url,
        max_connections: 4,
        lease_connections: 1,
        acquire_timeout: std::time::Duration::from_secs(5),
        application_name: "own_servers".to_owned(),
        line_terms: store::webhook::LineTerms::default(),
    })
    .unwrap()
}

/// A process that ends with the value, or when the test is killed.
pub(crate) struct Server {
    process: Child,
    /// What ends it at once.
    end: Signal,
    pub(crate) address: SocketAddr,
    /// Removed after the end of the process.
    _folder: TempDir,
}

impl Server {
    pub(crate) fn start(mut command: Command, end: Signal, address: SocketAddr, folder: TempDir) -> Self {
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        Self {
            process: command.spawn().unwrap(),
            end,
            address,
            _folder: folder,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.process), self.end);
        let _ = self.process.wait();
    }
}

/// A program that is run as [`USER`] where the test is root, and dies with the test.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    if geteuid().is_root() {
        command.args(["--reuid", USER, "--regid", USER, "--init-groups"]);
    }
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(program)
        .current_dir("/")
        .stdin(Stdio::null());
    command
}

/// A folder that [`command`] may write to.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    give(folder.path());
    folder
}

/// Lets [`command`] read a file or folder that the test has made.
pub(crate) fn give(path: &Path) {
    if geteuid().is_root() {
        run(Command::new("chown").arg(USER).arg(path));
    }
}

pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

pub(crate) async fn primary() -> Server {
    let folder = folder();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, PASSWORD).unwrap();
    give(&secret);
    let mut initdb = postgres_command("initdb");
    initdb
        .args([
            "--username",
            NAME,
            "--auth",
            "scram-sha-256",
            "--encoding",
            "UTF8",
        ])
        .args(["--locale", "C", "--no-sync", "--pwfile"])
        .arg(secret)
        .arg("--pgdata")
        .arg(data(&folder));
    run(&mut initdb);
    start_postgres(folder).await
}

pub(crate) async fn standby_of(primary: &Server) -> Server {
    let folder = folder();
    let mut base_backup = postgres_command("pg_basebackup");
    base_backup
        .args([
            "--write-recovery-conf",
            "--checkpoint",
            "fast",
            "--no-sync",
            "--dbname",
        ])
        .arg(url(&[primary]))
        .arg("--pgdata")
        .arg(data(&folder));
    run(&mut base_backup);
    start_postgres(folder).await
}

async fn start_postgres(folder: TempDir) -> Server {
    let address = free_address();
    let mut postgres = postgres_command("postgres");
    postgres
        .arg("-D")
        .arg(data(&folder))
        .args([
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "unix_socket_directories=",
        ])
        .args(["-c", "fsync=off", "-p", &address.port().to_string()]);
    // Unlike after SIGKILL, it clears away what it has in shared memory.
    let server = Server::start(postgres, Signal::QUIT, address, folder);
    connection_to(&server).await.close().await.unwrap();
    server
}

/// The URL with `servers` as its hosts.
pub(crate) fn url(servers: &[&Server]) -> String {
    let hosts: Vec<String> = servers.iter().map(|server| server.address.to_string()).collect();
    format!("postgres://{NAME}:{PASSWORD}@{}/postgres", hosts.join(","))
}

/// A connection of a superuser.
pub(crate) async fn connection_to(server: &Server) -> PgConnection {
    let url = url(&[server]);
    eventually("the server to answer", async || {
        PgConnection::connect(&url).await.ok()
    })
    .await
}

fn data(folder: &TempDir) -> PathBuf {
    folder.path().join("data")
}

/// A program of the newest `PostgreSQL` that is installed.
fn postgres_command(program: &str) -> Command {
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("apt-get install postgresql");
    let newest = versions
        .filter_map(|version| version.unwrap().file_name().to_str()?.parse::<u32>().ok())
        .max();
    let newest = newest.expect("apt-get install postgresql").to_string();
    command(
        &Path::new("/usr/lib/postgresql")
            .join(newest)
            .join("bin")
            .join(program),
    )
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}
