//! Each fault: that it does what it says, and what is left of it when it is healed.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chaos::cluster::{Cluster, ClusterFault, End, Injected, Replica, Service};
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{Connection, ConnectionProperties};
use sqlx::{Connection as _, PgConnection};
use testkit::eventually;

use crate::rig::{get, is_ready, say};

/// Longer than any test: what ends before has been healed.
const LONG: Duration = Duration::from_secs(3600);
const INGEST: Replica = Service::IngestApi.replica(0);
const DISPATCHER: Replica = Service::Dispatcher.replica(0);
const WORKER: Replica = Service::RetryWorker.replica(0);
const OPERATOR: Replica = Service::OperatorApi.replica(0);

async fn inject(cluster: &Cluster, fault: ClusterFault) {
    let injected = cluster.inject(&fault).await.expect("tools work");
    assert_eq!(injected, Injected::Yes, "{fault:?}");
}

async fn heal(cluster: &Cluster) {
    cluster.heal_all().await.expect("all is well again");
}

/// SIGKILL: another process is ready after it.
pub(crate) async fn a_killed_service_starts_again(cluster: &Cluster) {
    let before = cluster.pid(INGEST).expect("it runs");
    inject(cluster, ClusterFault::Kill { replica: INGEST }).await;
    heal_after_its_end(cluster, INGEST, before).await;
    let door = cluster.ingest()[0];
    let answer = eventually("the door to lead to the new process", async || {
        get(door, "/nowhere").await
    })
    .await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
}

/// SIGTERM: it ends by itself.
pub(crate) async fn a_service_that_stops_gracefully_starts_again(cluster: &Cluster) {
    let before = cluster.pid(WORKER).expect("it runs");
    inject(cluster, ClusterFault::StopGracefully { replica: WORKER }).await;
    heal_after_its_end(cluster, WORKER, before).await;
}

async fn heal_after_its_end(cluster: &Cluster, replica: Replica, before: u32) {
    eventually("its end", async || {
        (cluster.pid(replica) != Some(before)).then_some(())
    })
    .await;
    eventually("its next start", async || cluster.pid(replica)).await;
    heal(cluster).await;
    assert_ne!(cluster.pid(replica), Some(before));
    assert!(is_ready(cluster.admin(replica)).await);
}

fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let (_, rest) = stat.rsplit_once(") ").expect("a name in brackets");
    rest.chars().next().expect("a state")
}

/// SIGSTOP, as the kernel tells.
pub(crate) async fn a_frozen_service_stands_still(cluster: &Cluster) {
    let pid = cluster.pid(DISPATCHER).expect("it runs");
    let fault = ClusterFault::Freeze {
        replica: DISPATCHER,
        lasts: LONG,
    };
    inject(cluster, fault.clone()).await;
    inject(cluster, fault).await;
    eventually("it to stand still", async || (state(pid) == 'T').then_some(())).await;
    heal(cluster).await;
    assert_ne!(state(pid), 'T');
    assert_eq!(cluster.pid(DISPATCHER), Some(pid));
}

/// Waits until a replica writes lines into its log whose time is so many seconds off.
async fn is_off_by(cluster: &Cluster, replica: Replica, seconds: i64) {
    eventually("its clock to be so far off", async || {
        ((next_time(cluster, replica).await - seconds).abs() <= 600).then_some(())
    })
    .await;
}

/// How many seconds the next line of its log is off. It tells of the connections that it loses and finds.
async fn next_time(cluster: &Cluster, replica: Replica) -> i64 {
    let log = cluster.log(replica);
    let before = std::fs::metadata(&log).expect("a log").len();
    let from = End::Replica(replica);
    inject(
        cluster,
        ClusterFault::ResetConnections {
            from,
            to: End::Broker,
        },
    )
    .await;
    eventually("a line of the log", async || {
        let text = std::fs::read(&log).expect("a log");
        let said = String::from_utf8_lossy(text.get(before as usize..)?).into_owned();
        let line: serde_json::Value = serde_json::from_str(said.lines().next()?).ok()?;
        let time = chrono::DateTime::parse_from_rfc3339(line["timestamp"].as_str()?).ok()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a date");
        Some(time.timestamp() - now.as_secs() as i64)
    })
    .await
}

pub(crate) async fn a_clock_jumps_both_ways(cluster: &Cluster) {
    for hours in [1, -2] {
        let by_millis = hours * 3_600_000;
        let fault = ClusterFault::ClockStep {
            replica: OPERATOR,
            by_millis,
        };
        if cluster.inject(&fault).await.expect("tools work") == Injected::NotApplicable {
            say("libfaketime is not installed: clocks stay true");
            return;
        }
        is_off_by(cluster, OPERATOR, hours * 3600).await;
        is_off_by(cluster, INGEST, 0).await;
    }
    heal(cluster).await;
    is_off_by(cluster, OPERATOR, 0).await;
}

async fn not_ready(cluster: &Cluster, replica: Replica) {
    eventually("it not to be ready", async || {
        (!is_ready(cluster.admin(replica)).await).then_some(())
    })
    .await;
}

pub(crate) async fn links_are_cut_silenced_and_slowed(cluster: &Cluster) {
    let (here, door) = (End::Replica(INGEST), cluster.ingest()[0]);
    inject(
        cluster,
        ClusterFault::Cut {
            from: here,
            to: End::Broker,
            lasts: LONG,
        },
    )
    .await;
    inject(
        cluster,
        ClusterFault::Blackhole {
            from: here,
            to: End::Postgres,
            lasts: LONG,
        },
    )
    .await;
    not_ready(cluster, INGEST).await;
    assert!(
        is_ready(cluster.admin(WORKER)).await,
        "another replica is hit, too"
    );
    heal(cluster).await;

    let lasts = LONG;
    inject(
        cluster,
        ClusterFault::Cut {
            from: End::Clients,
            to: here,
            lasts,
        },
    )
    .await;
    assert_eq!(get(door, "/nowhere").await, None);
    heal(cluster).await;
    eventually("the door to be open", async || get(door, "/nowhere").await).await;

    let (delay, jitter) = (Duration::from_millis(100), Duration::from_millis(10));
    inject(
        cluster,
        ClusterFault::Latency {
            from: End::Clients,
            to: here,
            delay,
            jitter,
            lasts,
        },
    )
    .await;
    let asked = Instant::now();
    assert!(get(door, "/nowhere").await.is_some());
    assert!(asked.elapsed() >= 2 * delay, "{:?}", asked.elapsed());
    heal(cluster).await;

    inject(
        cluster,
        ClusterFault::ResetConnections {
            from: here,
            to: End::Postgres,
        },
    )
    .await;
    heal(cluster).await;
}

async fn answers(address: SocketAddr) -> bool {
    tokio::net::TcpStream::connect(address).await.is_ok()
}

fn node(cluster: &Cluster, number: usize) -> SocketAddr {
    let url = &cluster.amqp_urls()[number];
    let (_, rest) = url.rsplit_once('@').expect("credentials");
    let location = rest.split('/').next().expect("a location");
    location.parse().expect("an address")
}

pub(crate) async fn a_lost_node_of_the_broker_is_followed_by_another(cluster: &Cluster) {
    let leader = eventually("push.ready to be led", async || {
        cluster.queue_leader("push.ready").await
    })
    .await;
    inject(cluster, ClusterFault::KillBrokerLeader { lasts: LONG }).await;
    eventually("the node to be dead", async || {
        (!answers(node(cluster, leader)).await).then_some(())
    })
    .await;
    let next = eventually("another leader", async || {
        let next = cluster.queue_leader("push.ready").await?;
        (next != leader).then_some(next)
    })
    .await;
    // Services that were connected there are somewhere else now, with that node still down.
    for replica in [INGEST, DISPATCHER, WORKER] {
        eventually("the services to follow", async || {
            is_ready(cluster.admin(replica)).await.then_some(())
        })
        .await;
    }
    assert!(!answers(node(cluster, leader)).await, "it was started too early");
    heal(cluster).await;
    assert!(answers(node(cluster, leader)).await && answers(node(cluster, next)).await);
}

pub(crate) async fn a_partitioned_node_pauses(cluster: &Cluster) {
    inject(
        cluster,
        ClusterFault::PartitionBrokerNode { node: 1, lasts: LONG },
    )
    .await;
    // The minority takes no clients any more.
    eventually("it to pause", async || {
        (!answers(node(cluster, 1)).await).then_some(())
    })
    .await;
    eventually("the majority to go on", async || {
        (answers(node(cluster, 0)).await && answers(node(cluster, 2)).await).then_some(())
    })
    .await;
    heal(cluster).await;
    assert!(answers(node(cluster, 1)).await);
}

/// Whether a confirmed publish gets its answer soon.
async fn takes_messages(cluster: &Cluster, number: usize) -> bool {
    let publish = async {
        let connection =
            Connection::connect(&cluster.amqp_urls()[number], ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let confirm = channel
            .basic_publish(
                "".into(),
                "nowhere".into(),
                BasicPublishOptions::default(),
                b"?",
                Default::default(),
            )
            .await?;
        confirm.await
    };
    tokio::time::timeout(Duration::from_secs(10), publish)
        .await
        .is_ok_and(|answer| answer.is_ok())
}

pub(crate) async fn alarms_block_publishers(cluster: &Cluster) {
    eventually("a confirm", async || {
        takes_messages(cluster, 2).await.then_some(())
    })
    .await;
    for fault in [
        ClusterFault::MemoryAlarm { lasts: LONG },
        ClusterFault::DiskAlarm { lasts: LONG },
    ] {
        inject(cluster, fault).await;
        // At whichever node it was raised, all of them block.
        eventually("publishers to be blocked", async || {
            (!takes_messages(cluster, 2).await).then_some(())
        })
        .await;
        heal(cluster).await;
        eventually("a confirm", async || {
            takes_messages(cluster, 2).await.then_some(())
        })
        .await;
    }
}

pub(crate) async fn a_killed_database_recovers(cluster: &Cluster) {
    let mut connection = PgConnection::connect(cluster.postgres_url())
        .await
        .expect("it answers");
    let kept = sqlx::raw_sql("CREATE TABLE kept AS SELECT 1 AS kept");
    kept.execute(&mut connection).await.expect("a table");
    inject(cluster, ClusterFault::KillPostgres { lasts: LONG }).await;
    eventually("the database to be dead", async || {
        PgConnection::connect(cluster.postgres_url())
            .await
            .is_err()
            .then_some(())
    })
    .await;
    not_ready(cluster, INGEST).await;
    heal(cluster).await;
    let mut connection = PgConnection::connect(cluster.postgres_url())
        .await
        .expect("it answers");
    let kept: i32 = sqlx::query_scalar("SELECT kept FROM kept")
        .fetch_one(&mut connection)
        .await
        .expect("it is there");
    assert_eq!(kept, 1);
}

pub(crate) async fn nothing_is_injected_into_what_is_not_there(cluster: &Cluster) {
    let absent = Service::Dispatcher.replica(9);
    for fault in [
        ClusterFault::Kill { replica: absent },
        ClusterFault::Freeze {
            replica: absent,
            lasts: LONG,
        },
        ClusterFault::ClockStep {
            replica: absent,
            by_millis: 1,
        },
        ClusterFault::KillBrokerNode { node: 9, lasts: LONG },
        ClusterFault::PartitionBrokerNode { node: 9, lasts: LONG },
        ClusterFault::Cut {
            from: End::Postgres,
            to: End::Clients,
            lasts: LONG,
        },
    ] {
        assert_eq!(
            cluster.inject(&fault).await.expect("tools work"),
            Injected::NotApplicable,
            "{fault:?}"
        );
    }
    let depths = cluster.queue_depths().await.expect("every node answers");
    assert!(
        depths.iter().any(|(queue, _)| queue == "push.ready"),
        "{depths:?}"
    );
}
