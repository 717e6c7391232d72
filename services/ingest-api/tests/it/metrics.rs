//! What the service counts.

use metrics_exporter_prometheus::PrometheusBuilder;
use testkit::{Installation, eventually};

use crate::outages::closed_port;
use crate::running::{Running, push};

#[testkit::test]
async fn what_is_received_is_counted_by_kind_and_fate(it: Installation) {
    // Recorders of a thread keep tests apart; all tasks of a test run on its own thread.
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let metrics = recorder.handle();
    let mut config = it.config.clone();
    config.amqp.url = config::Secret::new(format!("amqp://127.0.0.1:{}", closed_port()));
    let service = Running::start(&it, config).await;
    let mut scheduled = push();
    scheduled["cronExpression"] = "0 0 12 * * ?".into();
    for body in [&push(), &push(), &scheduled] {
        service.accepted(body).await;
    }
    assert_eq!(
        service
            .post(&serde_json::json!({}))
            .send()
            .await
            .unwrap()
            .status()
            .as_u16(),
        422
    );
    service.request("GET", "/nowhere").send().await.unwrap();
    for sample in [
        r#"postrider_push_received_total{kind="immediate"} 2"#,
        r#"postrider_push_received_total{kind="scheduled"} 1"#,
        "postrider_push_went_pending_total 2",
        "postrider_push_receiving_seconds_count 3",
        "postrider_ingest_batch_rows_sum 3",
        "postrider_ingest_queue_gate_open 0",
        r#"postrider_http_requests_total{route="/push",status="202"} 3"#,
        r#"postrider_http_requests_total{route="/push",status="422"} 1"#,
        r#"postrider_http_requests_total{route="unmatched",status="404"} 1"#,
    ] {
        eventually(&format!("{sample} in\n{}", metrics.render()), async || {
            metrics.render().lines().any(|line| line == sample).then_some(())
        })
        .await;
    }
}

#[testkit::test]
async fn pushes_that_the_full_queue_refuses_are_counted_as_gone_pending(mut it: Installation) {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let metrics = recorder.handle();
    it.config.push.queue.capacity = 10;
    let service = Running::ready(&it).await;
    let requests = (0..100).map(|_| service.post(&push()).send());
    for answer in futures::future::join_all(requests).await {
        assert_eq!(answer.unwrap().status().as_u16(), 202);
    }
    // The broker takes a burst that comes in one piece whole, however long the queue may be: it refuses what follows.
    eventually("a push to find the queue full", async || {
        let id = service.accepted(&push()).await;
        (service.look_up(id).await["status"] == "PENDING").then_some(())
    })
    .await;
    eventually("the counter to agree with the table", async || {
        let pending: i64 =
            sqlx::query_scalar("SELECT count(*) FROM push_notifications WHERE status = 'PENDING'")
                .fetch_one(&it.pool)
                .await
                .ok()?;
        let sample = format!("postrider_push_went_pending_total {pending}");
        (pending > 0 && metrics.render().lines().any(|line| line == sample)).then_some(())
    })
    .await;
}
