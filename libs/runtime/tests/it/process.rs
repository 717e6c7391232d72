//! Starting, readiness, failing and stopping.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use config::Config;
use lifecycle::{Lifecycle, Shutdown};
use runtime::{Error, Process, Service, error_chain};

fn config() -> Config {
    Config::for_tests("postgres://localhost/none", "amqp://localhost").expect("the settings are valid")
}

/// A service that meets the given conditions and runs until it is stopped.
fn obedient(name: &'static str, conditions: &'static [&'static str]) -> Service {
    Service::new(name, move |_, lifecycle: Lifecycle| async move {
        for name in conditions {
            lifecycle.readiness.condition(name).ready();
        }
        lifecycle.shutdown.cancelled().await;
        io::Result::Ok(())
    })
}

async fn readyz(address: std::net::SocketAddr) -> (u16, serde_json::Value) {
    let response = reqwest::get(format!("http://{address}/readyz"))
        .await
        .expect("an answer");
    let status = response.status().as_u16();
    let text = response.text().await.expect("a body");
    (status, serde_json::from_str(&text).expect("JSON"))
}

async fn wait_for_status(address: std::net::SocketAddr, wanted: u16) -> serde_json::Value {
    let waiting = async {
        loop {
            let (status, report) = readyz(address).await;
            if status == wanted {
                return report;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting)
        .await
        .expect("the status comes in time")
}

#[tokio::test]
async fn readiness_covers_every_service_of_the_process() {
    lifecycle::crypto::install_default_provider();
    let all = &["database", "migrations", "broker"];
    let services = vec![obedient("one", all), obedient("two", &["database", "migrations"])];
    let process = Process::bind(Arc::new(config()), services).await.unwrap();
    let (address, shutdown) = (process.admin_address(), Shutdown::new());
    let running = tokio::spawn(process.run(shutdown.clone()));
    let report = wait_for_status(address, 503).await;
    assert_eq!(report["conditions"]["two.broker"], "starting", "{report}");
    shutdown.trigger();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_service_alone_has_conditions_without_its_name_and_says_when_it_stops() {
    lifecycle::crypto::install_default_provider();
    let (release, released) = tokio::sync::oneshot::channel::<()>();
    let service = Service::new("alone", |_, lifecycle: Lifecycle| async move {
        for name in ["database", "migrations", "broker"] {
            lifecycle.readiness.condition(name).ready();
        }
        lifecycle.shutdown.cancelled().await;
        let _ = released.await;
        io::Result::Ok(())
    });
    let process = Process::bind(Arc::new(config()), vec![service]).await.unwrap();
    let (address, shutdown) = (process.admin_address(), Shutdown::new());
    let running = tokio::spawn(process.run(shutdown.clone()));
    let report = wait_for_status(address, 200).await;
    assert!(report["conditions"]["database"].is_null(), "{report}");
    shutdown.trigger();
    let report = wait_for_status(address, 503).await;
    assert_eq!(report["conditions"]["process"], "stopping", "{report}");
    release.send(()).unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_service_that_fails_stops_the_others_and_is_named_with_its_cause() {
    let failing = Service::new("frail", |_, _: Lifecycle| async {
        Err(io::Error::other("the disk is gone"))
    });
    let process = Process::bind(Arc::new(config()), vec![obedient("other", &[]), failing])
        .await
        .unwrap();
    let error = process.run(Shutdown::new()).await.unwrap_err();
    assert_eq!(error_chain(&error), "frail failed: the disk is gone");
}

#[tokio::test]
async fn a_service_that_ends_unasked_or_panics_is_a_failure() {
    let leaving = Service::new("leaving", |_, _: Lifecycle| async { io::Result::Ok(()) });
    let process = Process::bind(Arc::new(config()), vec![leaving]).await.unwrap();
    let error = process.run(Shutdown::new()).await.unwrap_err();
    assert!(
        matches!(error, Error::EndedEarly { service: "leaving" }),
        "{error}"
    );

    async fn panics() -> io::Result<()> {
        panic!("on purpose")
    }
    let panicking = Service::new("panicking", |_, _: Lifecycle| panics());
    let process = Process::bind(Arc::new(config()), vec![panicking]).await.unwrap();
    let error = process.run(Shutdown::new()).await.unwrap_err();
    assert!(
        matches!(error, Error::Panicked { service: "panicking" }),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_that_does_not_stop_is_left_after_the_grace_period_and_a_little() {
    let stubborn = Service::new("stubborn", |_, _: Lifecycle| async {
        std::future::pending::<io::Result<()>>().await
    });
    let mut config = config();
    config.shutdown.grace_period = Duration::from_secs(3_600);
    let process = Process::bind(Arc::new(config), vec![stubborn]).await.unwrap();
    let shutdown = Shutdown::new();
    shutdown.trigger();
    let error = process.run(shutdown).await.unwrap_err();
    assert!(
        error_chain(&error).starts_with("stubborn did not stop within 3605"),
        "{error}"
    );
}

#[tokio::test]
async fn an_address_in_use_is_named_with_its_key_and_the_way_out() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config();
    config.ingest.listen = taken.local_addr().unwrap();
    let service = Service::listening(
        "ingest-api",
        ("ingest.listen", |config| config.ingest.listen),
        |_, _, _| async { io::Result::Ok(()) },
    );
    let error = Process::bind(Arc::new(config), vec![service])
        .await
        .err()
        .unwrap();
    let text = error_chain(&error);
    for part in [
        &taken.local_addr().unwrap().to_string(),
        "(ingest.listen)",
        "in use",
        "POSTRIDER__INGEST__LISTEN",
    ] {
        assert!(text.contains(part), "{text}");
    }
}
