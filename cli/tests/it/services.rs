//! `serve` and `up`: start, readiness, the end, and what is in the way.

use sqlx::PgPool;
use testkit::{Installation, Leftover, eventually, leaves, run};

use crate::postrider::{Running, postrider, until_ready};

const ADMIN: &str = "serving /healthz, /readyz and /metrics";

/// Waits until the process says that it is ready; returns where its admin endpoints are.
async fn ready(process: &Running) -> String {
    let address = process.address_logged_with(ADMIN);
    until_ready(&address).await;
    let probe = format!("healthcheck http://{address}/readyz");
    eventually("the health check to say so", async || {
        (postrider(&probe).run().code == Some(0)).then_some(())
    })
    .await;
    address
}

async fn starts_alone_and_stops(it: &Installation, service: &str) {
    let process = postrider(&format!("serve {service}")).within(it).start();
    ready(&process).await;
    let (status, _) = process.stop().await;
    assert_eq!(status.code(), Some(0), "{service}");
}

#[testkit::test]
async fn every_service_starts_alone_becomes_ready_and_exits_0_on_sigterm(it: Installation) {
    for service in [
        "ingest-api",
        "dispatcher",
        "retry-worker",
        "reseller-portal",
        "operator-api",
    ] {
        starts_alone_and_stops(&it, service).await;
    }
}

#[testkit::test]
async fn all_services_run_in_one_process_and_a_second_one_cannot_have_its_ports(it: Installation) {
    let process = postrider("up").within(&it).start();
    let admin = ready(&process).await;
    for key in ["ADMIN", "INGEST", "PORTAL", "OPERATOR"] {
        let variable = format!("POSTRIDER__{key}__LISTEN");
        let finished = postrider("up").within(&it).env(&variable, &admin).run();
        assert_eq!(finished.code, Some(1), "{finished:?}");
        for part in [admin.as_str(), "in use", &variable] {
            assert!(finished.stderr.contains(part), "{}", finished.stderr);
        }
    }
    let (status, _) = process.stop().await;
    assert_eq!(status.code(), Some(0));
}

#[sqlx::test(migrations = false)]
async fn a_service_without_the_schema_is_alive_but_not_ready(pool: PgPool) {
    run(pool, async |it: Installation| {
        leaves(Leftover::Database);
        let process = postrider("serve dispatcher").within(&it).start();
        let address = process.address_logged_with(ADMIN);
        let probe = format!("healthcheck http://{address}/healthz");
        eventually("the process to be alive", async || {
            (postrider(&probe).run().code == Some(0)).then_some(())
        })
        .await;
        let probe = format!("healthcheck http://{address}/readyz");
        eventually("the missing schema to be named", async || {
            let finished = postrider(&probe).run();
            assert_eq!(finished.code, Some(1), "{finished:?}");
            finished.stderr.contains("postrider migrate").then_some(())
        })
        .await;
        process.stop().await;
    })
    .await;
}
