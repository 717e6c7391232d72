//! Each fault: that it does what it says, and what is left of it when it is healed.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chaos::ground::{End, Fault, Ground, Replica, Service, Struck};
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

async fn strike(ground: &Ground, fault: Fault) {
    let struck = ground.inject(&fault).await.expect("tools work");
    assert_eq!(struck, Struck::Yes, "{fault:?}");
}

async fn heal(ground: &Ground) {
    ground.heal_all().await.expect("all is well again");
}

/// SIGKILL: another process is ready after it.
pub(crate) async fn a_killed_service_starts_again(ground: &Ground) {
    let before = ground.pid(INGEST).expect("it runs");
    strike(ground, Fault::Kill { replica: INGEST }).await;
    heal_after_its_end(ground, INGEST, before).await;
    let door = ground.ingest()[0];
    let answer = eventually("the door to lead to the new process", async || {
        get(door, "/nowhere").await
    })
    .await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
}

/// SIGTERM: it ends by itself.
pub(crate) async fn a_service_that_stops_gracefully_starts_again(ground: &Ground) {
    let before = ground.pid(WORKER).expect("it runs");
    strike(ground, Fault::StopGracefully { replica: WORKER }).await;
    heal_after_its_end(ground, WORKER, before).await;
}

async fn heal_after_its_end(ground: &Ground, replica: Replica, before: u32) {
    eventually("its end", async || {
        (ground.pid(replica) != Some(before)).then_some(())
    })
    .await;
    eventually("its next start", async || ground.pid(replica)).await;
    heal(ground).await;
    assert_ne!(ground.pid(replica), Some(before));
    assert!(is_ready(ground.admin(replica)).await);
}

fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let (_, rest) = stat.rsplit_once(") ").expect("a name in brackets");
    rest.chars().next().expect("a state")
}

/// SIGSTOP, as the kernel tells.
pub(crate) async fn a_frozen_service_stands_still(ground: &Ground) {
    let pid = ground.pid(DISPATCHER).expect("it runs");
    let fault = Fault::Freeze {
        replica: DISPATCHER,
        lasts: LONG,
    };
    strike(ground, fault.clone()).await;
    strike(ground, fault).await;
    eventually("it to stand still", async || (state(pid) == 'T').then_some(())).await;
    heal(ground).await;
    assert_ne!(state(pid), 'T');
    assert_eq!(ground.pid(DISPATCHER), Some(pid));
}

/// Waits until a replica writes lines into its log whose time is so many seconds off.
async fn is_off_by(ground: &Ground, replica: Replica, seconds: i64) {
    eventually("its clock to be so far off", async || {
        ((next_time(ground, replica).await - seconds).abs() <= 600).then_some(())
    })
    .await;
}

/// How many seconds the next line of its log is off. It tells of the connections that it loses and finds.
async fn next_time(ground: &Ground, replica: Replica) -> i64 {
    let log = ground.log(replica);
    let before = std::fs::metadata(&log).expect("a log").len();
    let from = End::Replica(replica);
    strike(
        ground,
        Fault::ResetConnections {
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

pub(crate) async fn a_clock_jumps_both_ways(ground: &Ground) {
    for hours in [1, -2] {
        let by_millis = hours * 3_600_000;
        let fault = Fault::ClockStep {
            replica: OPERATOR,
            by_millis,
        };
        if ground.inject(&fault).await.expect("tools work") == Struck::NotApplicable {
            say("libfaketime is not installed: clocks stay true");
            return;
        }
        is_off_by(ground, OPERATOR, hours * 3600).await;
        is_off_by(ground, INGEST, 0).await;
    }
    heal(ground).await;
    is_off_by(ground, OPERATOR, 0).await;
}

async fn not_ready(ground: &Ground, replica: Replica) {
    eventually("it not to be ready", async || {
        (!is_ready(ground.admin(replica)).await).then_some(())
    })
    .await;
}

pub(crate) async fn links_are_cut_silenced_and_slowed(ground: &Ground) {
    let (here, door) = (End::Replica(INGEST), ground.ingest()[0]);
    strike(
        ground,
        Fault::Cut {
            from: here,
            to: End::Broker,
            lasts: LONG,
        },
    )
    .await;
    strike(
        ground,
        Fault::Blackhole {
            from: here,
            to: End::Postgres,
            lasts: LONG,
        },
    )
    .await;
    not_ready(ground, INGEST).await;
    assert!(
        is_ready(ground.admin(WORKER)).await,
        "another replica is struck, too"
    );
    heal(ground).await;

    let lasts = LONG;
    strike(
        ground,
        Fault::Cut {
            from: End::Clients,
            to: here,
            lasts,
        },
    )
    .await;
    assert_eq!(get(door, "/nowhere").await, None);
    heal(ground).await;
    eventually("the door to be open", async || get(door, "/nowhere").await).await;

    let (delay, jitter) = (Duration::from_millis(100), Duration::from_millis(10));
    strike(
        ground,
        Fault::Latency {
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
    heal(ground).await;

    strike(
        ground,
        Fault::ResetConnections {
            from: here,
            to: End::Postgres,
        },
    )
    .await;
    heal(ground).await;
}

async fn answers(address: SocketAddr) -> bool {
    tokio::net::TcpStream::connect(address).await.is_ok()
}

fn node(ground: &Ground, number: usize) -> SocketAddr {
    let url = &ground.amqp_urls()[number];
    let (_, rest) = url.rsplit_once('@').expect("credentials");
    let location = rest.split('/').next().expect("a location");
    location.parse().expect("an address")
}

pub(crate) async fn a_lost_node_of_the_broker_is_followed_by_another(ground: &Ground) {
    let leader = eventually("push.ready to be led", async || {
        ground.queue_leader("push.ready").await
    })
    .await;
    strike(ground, Fault::KillBrokerLeader { lasts: LONG }).await;
    eventually("the node to be dead", async || {
        (!answers(node(ground, leader)).await).then_some(())
    })
    .await;
    let next = eventually("another leader", async || {
        let next = ground.queue_leader("push.ready").await?;
        (next != leader).then_some(next)
    })
    .await;
    // Services that were connected there are somewhere else now, with that node still down.
    for replica in [INGEST, DISPATCHER, WORKER] {
        eventually("the services to follow", async || {
            is_ready(ground.admin(replica)).await.then_some(())
        })
        .await;
    }
    assert!(!answers(node(ground, leader)).await, "it was started too early");
    heal(ground).await;
    assert!(answers(node(ground, leader)).await && answers(node(ground, next)).await);
}

pub(crate) async fn a_partitioned_node_pauses(ground: &Ground) {
    strike(ground, Fault::PartitionBrokerNode { node: 1, lasts: LONG }).await;
    // The minority takes no clients any more.
    eventually("it to pause", async || {
        (!answers(node(ground, 1)).await).then_some(())
    })
    .await;
    eventually("the majority to go on", async || {
        (answers(node(ground, 0)).await && answers(node(ground, 2)).await).then_some(())
    })
    .await;
    heal(ground).await;
    assert!(answers(node(ground, 1)).await);
}

/// Whether a confirmed publish gets its answer soon.
async fn takes_messages(ground: &Ground, number: usize) -> bool {
    let publish = async {
        let connection =
            Connection::connect(&ground.amqp_urls()[number], ConnectionProperties::default()).await?;
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

pub(crate) async fn alarms_block_publishers(ground: &Ground) {
    eventually("a confirm", async || {
        takes_messages(ground, 2).await.then_some(())
    })
    .await;
    for fault in [
        Fault::MemoryAlarm { lasts: LONG },
        Fault::DiskAlarm { lasts: LONG },
    ] {
        strike(ground, fault).await;
        // At whichever node it was raised, all of them block.
        eventually("publishers to be blocked", async || {
            (!takes_messages(ground, 2).await).then_some(())
        })
        .await;
        heal(ground).await;
        eventually("a confirm", async || {
            takes_messages(ground, 2).await.then_some(())
        })
        .await;
    }
}

pub(crate) async fn a_killed_database_recovers(ground: &Ground) {
    let mut connection = PgConnection::connect(ground.postgres_url())
        .await
        .expect("it answers");
    let kept = sqlx::raw_sql("CREATE TABLE kept AS SELECT 1 AS kept");
    kept.execute(&mut connection).await.expect("a table");
    strike(ground, Fault::KillPostgres { lasts: LONG }).await;
    eventually("the database to be dead", async || {
        PgConnection::connect(ground.postgres_url())
            .await
            .is_err()
            .then_some(())
    })
    .await;
    not_ready(ground, INGEST).await;
    heal(ground).await;
    let mut connection = PgConnection::connect(ground.postgres_url())
        .await
        .expect("it answers");
    let kept: i32 = sqlx::query_scalar("SELECT kept FROM kept")
        .fetch_one(&mut connection)
        .await
        .expect("it is there");
    assert_eq!(kept, 1);
}

pub(crate) async fn what_is_not_there_is_not_struck(ground: &Ground) {
    let absent = Service::Dispatcher.replica(9);
    for fault in [
        Fault::Kill { replica: absent },
        Fault::Freeze {
            replica: absent,
            lasts: LONG,
        },
        Fault::ClockStep {
            replica: absent,
            by_millis: 1,
        },
        Fault::KillBrokerNode { node: 9, lasts: LONG },
        Fault::PartitionBrokerNode { node: 9, lasts: LONG },
        Fault::Cut {
            from: End::Postgres,
            to: End::Clients,
            lasts: LONG,
        },
    ] {
        assert_eq!(
            ground.inject(&fault).await.expect("tools work"),
            Struck::NotApplicable,
            "{fault:?}"
        );
    }
    let depths = ground.queue_depths().await.expect("every node answers");
    assert!(
        depths.iter().any(|(queue, _)| queue == "push.ready"),
        "{depths:?}"
    );
}
