//! What a configuration is when only the two servers are given.

use std::time::Duration;

use config::{Config, LogFormat};

use crate::{AMQP_URL, DATABASE_URL, complete};

#[test]
fn defaults_need_only_the_two_servers() {
    let config = config::load(&complete()).unwrap();

    assert_eq!(config.database.url.expose(), DATABASE_URL);
    assert_eq!(config.amqp.url.expose(), AMQP_URL);
    assert_eq!(config.swrve.url.expose(), "http://127.0.0.1:8090");
    assert_eq!(config.swrve.delay, Duration::from_millis(4));
    assert_eq!(config.push.queue.capacity, 10_000);
    assert_eq!(config.push.retry.delay, Duration::from_secs(60));
    assert_eq!(config.push.retry.max_attempts, 5);
    assert_eq!(config.push.idempotency.retention, Duration::from_secs(24 * 3600));
    assert_eq!(config.push.time_zone, chrono_tz::Tz::UTC);
    assert_eq!(config.push.job.send_pending.portion_size, 249);
    assert_eq!(config.operator.listen.to_string(), "127.0.0.1:8082");
    assert_eq!(config.operator.request_timeout, Duration::from_secs(10));
    // The largest bulk action by identifier: 10,000 of them, each in quotation marks and with a comma.
    assert!(config.operator.max_body_bytes > 10_000 * 39);
    assert_eq!(config.telemetry.log_format, LogFormat::Human);
    assert_eq!(config.telemetry.otlp_endpoint, None);
    assert!(!config.telemetry.otlp_logs && !config.telemetry.otlp_metrics);
    assert!(config.swrve.message_prototype_push_keys.is_empty());
}

#[test]
fn pool_and_drain_follow_from_the_pace() {
    let mut config = config::load(&complete()).unwrap();
    assert_eq!(config.pool_size(), 1000);
    assert_eq!(config.queue_drain(), Duration::from_secs(40));

    config.swrve.average_processing = Duration::from_secs(2);
    assert_eq!(config.pool_size(), 500);
}

#[test]
fn test_configuration_takes_free_ports() {
    let config = Config::for_tests(DATABASE_URL, AMQP_URL).unwrap();

    assert_eq!(config.ingest.listen.port(), 0);
    assert_eq!(config.operator.listen.port(), 0);
    assert_eq!(config.admin.listen.port(), 0);
}
