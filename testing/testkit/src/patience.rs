//! Limits for tests on a machine that does a hundred other things as well.
//!
//! The limits of production tell something that is away from something that is slow. Everything that a test uses is
//! there, unless the test takes it away, and then it breaks off at once: so what is only slow is waited for, and no test
//! is about how fast the machine is. A test about a limit sets its own.

use std::time::Duration;

use config::Config;

/// Longest time for a request to a service of ours, and for the broker to confirm a message.
const REQUEST: Duration = Duration::from_secs(60);
/// Longest wait for a connection to the database.
const CONNECTION: Duration = Duration::from_secs(30);
/// Longest wait for an answer of Swrve, of an endpoint, of a mail server. Claims hold a little longer than that, and a
/// test may have to wait for one to run out.
const ANSWER: Duration = Duration::from_secs(20);

/// The same for services that run as processes: variables of their environment.
pub const PATIENT: [(&str, &str); 9] = [
    ("POSTRIDER__INGEST__REQUEST_TIMEOUT_MILLIS", "60000"),
    ("POSTRIDER__PORTAL__REQUEST_TIMEOUT_MILLIS", "60000"),
    ("POSTRIDER__OPERATOR__REQUEST_TIMEOUT_MILLIS", "60000"),
    ("POSTRIDER__AMQP__CONFIRM_TIMEOUT_MILLIS", "60000"),
    ("POSTRIDER__DATABASE__ACQUIRE_TIMEOUT_MILLIS", "30000"),
    ("POSTRIDER__SWRVE__TIMEOUT_MILLIS", "20000"),
    ("POSTRIDER__RESELLER__DELIVERY__TIMEOUT_MILLIS", "20000"),
    ("POSTRIDER__RESELLER__DELIVERY__MAX_TIMEOUT_MILLIS", "20000"),
    ("POSTRIDER__MAIL__TIMEOUT_MILLIS", "20000"),
];

/// Sets these limits in a configuration.
pub(crate) fn be_patient(config: &mut Config) {
    config.ingest.request_timeout = REQUEST;
    config.portal.request_timeout = REQUEST;
    config.operator.request_timeout = REQUEST;
    config.amqp.confirm_timeout = REQUEST;
    config.database.acquire_timeout = CONNECTION;
    config.swrve.timeout = ANSWER;
    config.reseller.delivery.timeout = ANSWER;
    config.mail.timeout = ANSWER;
}
