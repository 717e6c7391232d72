//! What the service counts of events.

use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::json;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, eventually};

use crate::events::{event, event_with};
use crate::running::Running;

#[testkit::test]
async fn events_and_what_they_became_are_counted_once(it: Installation) {
    // Recorders of a thread keep tests apart; all tasks of a test run on its own thread.
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let metrics = recorder.handle();
    let service = Running::ready(&it).await;
    for _ in 0..2 {
        SubscriptionRow::active().make(&it.pool).await;
    }
    let named = event_with(json!({"eventId": "e-1"}));
    service.accepted_event(&named).await;
    service.accepted_event(&named).await;
    let reused = event_with(json!({"eventId": "e-1", "occurredAt": "2026-01-01T00:00:00Z"}));
    let batches = [
        vec![event(), event(), named.clone()],
        // Of a batch that is not stored nothing is counted.
        vec![event(), reused],
    ];
    for batch in &batches {
        service.post_batch(batch).send().await.unwrap();
    }
    for sample in [
        "postrider_events_accepted_total 3",
        "postrider_notifications_created_total 6",
        "postrider_event_receiving_seconds_count 3",
        "postrider_event_batch_rows_sum 7",
        "postrider_event_queue_gate_open 1",
        r#"postrider_http_requests_total{route="/events",status="202"} 2"#,
        r#"postrider_http_requests_total{route="/events/batch",status="202"} 1"#,
        r#"postrider_http_requests_total{route="/events/batch",status="422"} 1"#,
    ] {
        eventually(&format!("{sample} in\n{}", metrics.render()), async || {
            metrics.render().lines().any(|line| line == sample).then_some(())
        })
        .await;
    }
}
