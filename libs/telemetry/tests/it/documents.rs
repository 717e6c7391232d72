//! The documentation holds what the code does.

const GUIDE: &str = include_str!("../../../../docs/telemetry.md");

/// Every metric that the push service's specification names.
const SPECIFIED: [&str; 17] = [
    "receivingTime",
    "scheduledPushReceived",
    "immediatePushReceived",
    "immediatePushWentPending",
    "sendingSuccess",
    "sendingTime",
    "sendingFail",
    "sendingAttemptFailed",
    "sendingGivenUp",
    "swrveSendingError",
    "messagePrototypeKeySendingError",
    "otherSendingError",
    "notStoredExceptionWhileAttempt",
    "queueSize",
    "sendingThreadPoolSize",
    "notStoredExceptionWhileReceiving",
    "notStoredExceptionReadingQueue",
];

#[test]
fn guide_holds_every_metric() {
    let reference = telemetry::reference();
    assert!(
        GUIDE.contains(&reference),
        "docs/telemetry.md must hold these tables:\n{reference}"
    );
}

#[test]
fn every_specified_metric_exists_once() {
    let mut mapped: Vec<_> = telemetry::Metric::ALL
        .iter()
        .flat_map(|metric| metric.definition().specified_as)
        .map(|(name, _)| *name)
        .collect();
    let mut specified = SPECIFIED.to_vec();
    mapped.sort_unstable();
    specified.sort_unstable();
    assert_eq!(mapped, specified);
}
