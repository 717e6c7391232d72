//! Every metric of the product, in one list.
//!
//! It deliberately holds definitions only; how a sample reaches the recorder is in `metric`.

use metrics::Unit;

use crate::{Definition, Kind};

const RECEIVING: &[f64] = &[
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0,
];
const SWRVE_RESPONSE: &[f64] = &[
    0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0,
];
/// Fine around 4 ms, the least gap that Swrve allows.
const SEND_GAP: &[f64] = &[
    0.003, 0.0035, 0.0039, 0.004, 0.00401, 0.00402, 0.00405, 0.0041, 0.0042, 0.0045, 0.005, 0.01, 0.1, 1.0,
];
const BATCH_ROWS: &[f64] = &[
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 5000.0,
];

/// Makes the enum and its definitions from one list, so that neither can lack an entry.
macro_rules! catalogue {
    ($($variant:ident = $name:literal, $kind:expr, $unit:ident, [$($label:literal),*], $help:literal $(, as $specified:literal $selector:literal)*;)+) => {
        /// A metric of the product.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Metric {
            $(#[doc = $help] $variant,)+
        }

        impl Metric {
            /// Every metric, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// What does not change about the metric.
            pub const fn definition(self) -> &'static Definition {
                match self {
                    $(Self::$variant => &Definition {
                        name: $name,
                        kind: $kind,
                        unit: Unit::$unit,
                        labels: &[$($label),*],
                        help: $help,
                        specified_as: &[$(($specified, $selector)),*],
                    },)+
                }
            }
        }
    };
}

catalogue! {
    PushReceiving = "postrider_push_receiving_seconds", Kind::Histogram(RECEIVING), Seconds, [],
        "Time to receive a push: from the request to the answer.", as "receivingTime" "";
    PushReceived = "postrider_push_received_total", Kind::Counter, Count, ["kind"],
        "Pushes received; `kind` is `scheduled` (with a cron expression) or `immediate`.",
        as "scheduledPushReceived" "{kind=\"scheduled\"}", as "immediatePushReceived" "{kind=\"immediate\"}";
    PushWentPending = "postrider_push_went_pending_total", Kind::Counter, Count, [],
        "Immediate pushes that found no room in the queue and became PENDING.", as "immediatePushWentPending" "";
    PushSent = "postrider_push_sent_total", Kind::Counter, Count, [],
        "Pushes that Swrve accepted.", as "sendingSuccess" "";
    SwrveResponse = "postrider_swrve_response_seconds", Kind::Histogram(SWRVE_RESPONSE), Seconds, [],
        "Time Swrve takes to answer.", as "sendingTime" "";
    PushFailed = "postrider_push_failed_total", Kind::Counter, Count, [],
        "Pushes that became FAILED, whoever is to blame.", as "sendingFail" "";
    PushAttemptsRetryable = "postrider_push_attempts_retryable_total", Kind::Counter, Count, [],
        "Attempts that ended in an error which allows a retry.", as "sendingAttemptFailed" "";
    PushGivenUp = "postrider_push_given_up_total", Kind::Counter, Count, [],
        "Pushes that used up their attempts.", as "sendingGivenUp" "";
    PushErrors = "postrider_push_errors_total", Kind::Counter, Count, ["type"],
        "Errors while sending; `type` is `swrve`, `message_prototype_key` (no push key for platform and prototype) or `other` (our own).",
        as "swrveSendingError" "{type=\"swrve\"}",
        as "messagePrototypeKeySendingError" "{type=\"message_prototype_key\"}",
        as "otherSendingError" "{type=\"other\"}";
    StoreErrors = "postrider_store_errors_total", Kind::Counter, Count, ["operation"],
        "Database errors; `operation` is `receiving`, `attempt`, `reading_queue` or `promoting`.",
        as "notStoredExceptionWhileReceiving" "{operation=\"receiving\"}",
        as "notStoredExceptionWhileAttempt" "{operation=\"attempt\"}",
        as "notStoredExceptionReadingQueue" "{operation=\"reading_queue\"}";
    QueueMessages = "postrider_queue_messages", Kind::Gauge, Count, ["queue"],
        "Messages in a queue of the broker.", as "queueSize" "{queue=\"push.ready\"}";
    PushSendsInFlight = "postrider_push_sends_in_flight", Kind::Gauge, Count, [],
        "Sends that wait for Swrve's answer.", as "sendingThreadPoolSize" "";
    PushPoolSize = "postrider_push_pool_size", Kind::Gauge, Count, [],
        "Most sends in flight: `swrve.averageProcessingMillis / swrve.delayMillis`.";
    PushOldestDueAge = "postrider_push_oldest_due_age_seconds", Kind::Gauge, Seconds, ["status"],
        "How long the oldest push of a status has been due; 0 when none is.";
    PushSendGap = "postrider_push_send_gap_seconds", Kind::Histogram(SEND_GAP), Seconds, [],
        "Time between two send starts.";
    PushSendGapMin = "postrider_push_send_gap_min_seconds", Kind::Gauge, Seconds, [],
        "Smallest time between two send starts since this process became the sender.";
    PushLeader = "postrider_push_leader", Kind::Gauge, Count, [],
        "1 while this process is the one that sends, otherwise 0.";
    PushLeaderEpoch = "postrider_push_leader_epoch", Kind::Gauge, Count, [],
        "Epoch of the sender's lease; it grows by one at every change of the sender.";
    LeaseLosses = "postrider_lease_losses_total", Kind::Counter, Count, ["kind"],
        "Leases lost before they were given back; `kind` is `leader` or `claim`.";
    PushPromoted = "postrider_push_promoted_total", Kind::Counter, Count, ["job"],
        "Pushes put from the database into the queue, by `job`: `send_scheduled` or `send_pending`.";
    PushRescued = "postrider_push_rescued_total", Kind::Counter, Count, [],
        "Pushes found IN_MEMORY with a lease that ran out, and made PENDING.";
    PushClaimed = "postrider_push_claimed_total", Kind::Counter, Count, [],
        "Pushes claimed for sending.";
    PushDeferred = "postrider_push_deferred_total", Kind::Counter, Count, [],
        "Pushes that missed their window while they waited and went back to SCHEDULED.";
    DeadLetters = "postrider_dead_letters_total", Kind::Counter, Count, ["reason"],
        "Dead letters stored, by reason.";
    BrokerConnected = "postrider_broker_connected", Kind::Gauge, Count, [],
        "1 while there is a usable connection to the broker, otherwise 0.";
    IngestBatchRows = "postrider_ingest_batch_rows", Kind::Histogram(BATCH_ROWS), Count, [],
        "Pushes stored in one group commit.";
    IngestQueueGateOpen = "postrider_ingest_queue_gate_open", Kind::Gauge, Count, [],
        "1 while received pushes are published at once, 0 while the queue is known to be full.";
    HttpRequests = "postrider_http_requests_total", Kind::Counter, Count, ["route", "status"],
        "HTTP requests answered, by route and status code.";
    PartitionsAheadMonths = "postrider_partitions_ahead_months", Kind::Gauge, Count, [],
        "Months after the current one for which partitions exist.";
    ProcessCpuSeconds = "process_cpu_seconds_total", Kind::Counter, Seconds, [],
        "CPU time this process has used, user and system. Linux only.";
    ProcessResidentMemory = "process_resident_memory_bytes", Kind::Gauge, Bytes, [],
        "Memory of this process that is resident. Linux only.";
}
