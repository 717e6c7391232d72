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

/// Fine below the 40 ms within which 99 of 100 notifications should arrive; wide above, for those that had to wait.
const DELIVERY_LAG: &[f64] = &[
    0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
    300.0, 3600.0, 86400.0,
];
/// From a send that found everything idle to one that needed all of its attempts.
const PUSH_DELIVERY: &[f64] = &[
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0,
    86400.0,
];
const DELIVERY_RESPONSE: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0,
];
const PAYLOAD_BYTES: &[f64] = &[
    128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131072.0, 1048576.0,
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
    SwrveAnswers = "postrider_swrve_answers_total", Kind::Counter, Count, ["status"],
        "Answers of Swrve by HTTP status; `2xx` for all that accept, `none` when there was no answer: DNS, connection, TLS or timeout.";
    PushDelivery = "postrider_push_delivery_seconds", Kind::Histogram(PUSH_DELIVERY), Seconds, [],
        "Time from accepting an immediate push to Swrve's acceptance of it, further attempts included.";
    PushFailed = "postrider_push_failed_total", Kind::Counter, Count, [],
        "Pushes that became FAILED, whatever the cause.", as "sendingFail" "";
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
    QueueCapacity = "postrider_queue_capacity", Kind::Gauge, Count, ["queue"],
        "Most messages that a queue of the broker takes, of those that have a limit.";
    QueueConsumers = "postrider_queue_consumers", Kind::Gauge, Count, ["queue"],
        "Consumers of a queue of the broker.";
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
        "Epoch of the sender's lease; it grows by one with every term of a sender: at a change, and when the lane goes on after a pause or a hold.";
    PushLeaderTakeovers = "postrider_push_leader_takeovers_total", Kind::Counter, Count, [],
        "Terms of this process as the sender that began with a lease that the sender before had not given back: it died or lost the database.";
    PushFailingSince = "postrider_push_failing_since_timestamp_seconds", Kind::Gauge, Seconds, [],
        "Since when Swrve has failed every attempt of the process that sends, as Unix time; 0 when its last answer was that it works, NaN while nothing was heard of it.";
    LeaseLosses = "postrider_lease_losses_total", Kind::Counter, Count, ["kind"],
        "Leases lost before they were given back; `kind` is `leader` or `claim`.";
    PushPromoted = "postrider_push_promoted_total", Kind::Counter, Count, ["job"],
        "Pushes put from the database into the queue, by `job`: `send_scheduled` or `send_pending`.";
    PushRescued = "postrider_push_rescued_total", Kind::Counter, Count, [],
        "Pushes found IN_MEMORY with a lease that ran out, and made PENDING.";
    PushClaimed = "postrider_push_claimed_total", Kind::Counter, Count, [],
        "Pushes claimed for sending.";
    PushClaimsInFlight = "postrider_push_claims_in_flight", Kind::Gauge, Count, [],
        "Pushes that are claimed and whose outcome is not recorded yet.";
    PushDeferred = "postrider_push_deferred_total", Kind::Counter, Count, [],
        "Pushes that missed their window while they waited, in the queue or in the database, and wait for its next opening.";
    EventReceiving = "postrider_event_receiving_seconds", Kind::Histogram(RECEIVING), Seconds, [],
        "Time to receive an event or a batch of them: from the request to the answer.";
    EventsAccepted = "postrider_events_accepted_total", Kind::Counter, Count, [],
        "Events stored; one that came again is not counted.";
    EventBatchRows = "postrider_event_batch_rows", Kind::Histogram(BATCH_ROWS), Count, [],
        "Events stored in one group commit.";
    EventQueueGateOpen = "postrider_event_queue_gate_open", Kind::Gauge, Count, [],
        "1 while the notifications of received events are published at once, 0 while their queue is known to be full.";
    NotificationsCreated = "postrider_notifications_created_total", Kind::Counter, Count, [],
        "Notifications made of events, one for each subscription that an event matches.";
    NotificationsClaimed = "postrider_notifications_claimed_total", Kind::Counter, Count, [],
        "Notifications claimed for an attempt.";
    NotificationsDelivered = "postrider_notifications_delivered_total", Kind::Counter, Count, [],
        "Notifications that their endpoint accepted.";
    NotificationsFailed = "postrider_notifications_failed_total", Kind::Counter, Count, ["reason"],
        "Notifications that became FAILED; `reason` is `client_error` (4xx), `gone` (410), `redirect` (3xx) or `other`.";
    NotificationsRetried = "postrider_notifications_retried_total", Kind::Counter, Count, [],
        "Attempts that failed and are followed by another one.";
    NotificationsGivenUp = "postrider_notifications_given_up_total", Kind::Counter, Count, [],
        "Notifications that used up their attempts, waited for too long, or whose subscription was deactivated or deleted meanwhile; not those that had been delivered and were to be sent again.";
    NotificationsDeferred = "postrider_notifications_deferred_total", Kind::Counter, Count, ["reason"],
        "Notifications that went back to wait when they were to be claimed; `reason` is `quota` or `rate` (in line) or `paused`.";
    NotificationsSidelined = "postrider_notifications_sidelined_total", Kind::Counter, Count, [],
        "Notifications that went from the queue back into the database because their subscription had its share.";
    NotificationsPromoted = "postrider_notifications_promoted_total", Kind::Counter, Count, ["queue"],
        "Notifications put from the database into a queue.";
    NotificationsRescued = "postrider_notifications_rescued_total", Kind::Counter, Count, [],
        "Notifications found IN_MEMORY with a lease that ran out, and made due again.";
    NotificationsReplayed = "postrider_notifications_replayed_total", Kind::Counter, Count, [],
        "Notifications made or sent again by replays.";
    NotificationsOldestDueAge = "postrider_notifications_oldest_due_age_seconds", Kind::Gauge, Seconds, ["status"],
        "How long the oldest notification of a status has been due, a pending one since it was made; those of subscriptions that get nothing now, as paused ones, are left out; 0 when none is.";
    DeliveryLag = "postrider_delivery_lag_seconds", Kind::Histogram(DELIVERY_LAG), Seconds, [],
        "Time from storing an event to the start of a notification's first attempt, but for what is sent again or replayed.";
    DeliveryResponse = "postrider_delivery_response_seconds", Kind::Histogram(DELIVERY_RESPONSE), Seconds, ["lane"],
        "Time an attempt takes, answered or not; `lane` is `first` or `retry`.";
    DeliveryPayload = "postrider_delivery_payload_bytes", Kind::Histogram(PAYLOAD_BYTES), Bytes, [],
        "Size of the bodies sent, once for each attempt.";
    DeliveryErrors = "postrider_delivery_errors_total", Kind::Counter, Count, ["type"],
        "Attempts that failed; `type` is `http` (an answer that is not 2xx), `timeout`, `dns`, `tls`, `connect`, `protocol`, `egress` (an address that must not be dialled) or `other` (our own).";
    OwnFaults = "postrider_own_faults_total", Kind::Counter, Count, ["lane"],
        "Pushes (`push`) and notifications (`first`, `retry`) that could not be tried for want of a descriptor, a port, memory, a route or a resolver of our own. They are handed back, and no attempt is used.";
    DeliveryClientErrors = "postrider_delivery_client_errors_total", Kind::Counter, Count, ["status"],
        "Answers of endpoints with a 4xx status, by status code.";
    DeliveriesInFlight = "postrider_deliveries_in_flight", Kind::Gauge, Count, ["lane"],
        "Attempts that wait for their answer; `lane` is `first` or `retry`.";
    DeliverySlots = "postrider_delivery_slots", Kind::Gauge, Count, ["lane"],
        "Most attempts in flight in this process: `reseller.delivery.maxInFlight` or `reseller.retry.maxInFlight`; `lane` is `first` or `retry`.";
    Subscriptions = "postrider_subscriptions", Kind::Gauge, Count, ["state"],
        "Subscriptions by state: `PENDING_VERIFICATION`, `ACTIVE`, `DEGRADED` or `DEACTIVATED`.";
    SubscriptionsFailing = "postrider_subscriptions_failing", Kind::Gauge, Count, [],
        "ACTIVE and DEGRADED subscriptions whose last attempt was a failure that came within the last hour.";
    SecretsStale = "postrider_signing_secrets_stale", Kind::Gauge, Count, [],
        "Valid signing secrets that were sealed with another key than the current one and cannot be sealed again: most often their key is not among `reseller.secrets.previousKeys`.";
    Paused = "postrider_paused", Kind::Gauge, Count, ["scope"],
        "Pauses by operators that are in force; `scope` is `push_lane`, `reseller_lane`, `subscription` or `reseller`.";
    Held = "postrider_held", Kind::Gauge, Count, ["class"],
        "1 while something is held because what it is sent to is out of order, and 0.5 while what waited for Swrve is sent; `class` is `swrve` for the push lane, and `connect`, `dns`, `timeout` or `tls` for the class of failures in which most endpoints fail.";
    PushProbes = "postrider_push_probes_total", Kind::Counter, Count, ["outcome"],
        "Pushes that were sent to find out whether Swrve works again; `outcome` is `answered` or `failed`.";
    PushAttemptsSpared = "postrider_push_attempts_spared_total", Kind::Counter, Count, [],
        "Attempts that failed while Swrve was out of order, and do not count.";
    DeliveryProbes = "postrider_delivery_probes_total", Kind::Counter, Count, ["outcome"],
        "Notifications that were sent to find out whether an endpoint answers again while a class of failures is held; `outcome` is `answered` or `failed`.";
    DeliveryAttemptsSpared = "postrider_delivery_attempts_spared_total", Kind::Counter, Count, ["class"],
        "Attempts to deliver that failed in a class that is held, and do not count; `class` is `connect`, `dns`, `timeout` or `tls`.";
    EmailsSent = "postrider_emails_sent_total", Kind::Counter, Count, [],
        "E-mails that the mail server took.";
    EmailsFailed = "postrider_emails_failed_total", Kind::Counter, Count, [],
        "E-mails that will not be sent any more.";
    EmailsWaiting = "postrider_emails_waiting", Kind::Gauge, Count, [],
        "E-mails that are still to be sent.";
    EmailsOldestDueAge = "postrider_emails_oldest_due_age_seconds", Kind::Gauge, Seconds, [],
        "How long the oldest e-mail that waits has been due; 0 when none is.";
    BreakGlassVisits = "postrider_break_glass_visits_total", Kind::Counter, Count, [],
        "Visits to the console that began with a key although people sign in with a provider.";
    CspViolations = "postrider_web_csp_violations_total", Kind::Counter, Count, [],
        "What pages of the console and the dashboard wanted beyond their policy, as browsers report it; 0 is expected.";
    StatusLooks = "postrider_status_looks_total", Kind::Counter, Count, [],
        "How often the whole system was looked at, for `GET /status` and for pages, which share a look a second while they are open; and every half minute by each `operator-api`.";
    DeadLetters = "postrider_dead_letters_total", Kind::Counter, Count, ["reason"],
        "Dead letters stored, by reason.";
    DeadLettersReplayed = "postrider_dead_letters_replayed_total", Kind::Counter, Count, [],
        "Dead letters that were resolved by sending again what they are about.";
    DeadLettersDiscarded = "postrider_dead_letters_discarded_total", Kind::Counter, Count, [],
        "Dead letters that were put aside.";
    DeadLettersOpen = "postrider_dead_letters_open", Kind::Gauge, Count, ["lane"],
        "Dead letters that have been neither replayed nor discarded; `lane` is `push` or `reseller`.";
    BrokerConnected = "postrider_broker_connected", Kind::Gauge, Count, [],
        "1 while there is a usable connection to the broker, otherwise 0.";
    BrokerBlocked = "postrider_broker_blocked", Kind::Gauge, Count, [],
        "1 while the broker takes nothing from us because it is short of memory or disk, otherwise 0.";
    DatabaseConnections = "postrider_database_connections", Kind::Gauge, Count, ["service", "state"],
        "Connections of a service's pool to the database; `state` is `busy` or `idle`.";
    DatabaseConnectionsMax = "postrider_database_connections_max", Kind::Gauge, Count, ["service"],
        "Most connections of a service's pool: `database.maxConnections`.";
    Ready = "postrider_ready", Kind::Gauge, Count, ["condition"],
        "1 while a condition of `/readyz` holds, otherwise 0.";
    JobLastSuccess = "postrider_job_last_success_timestamp_seconds", Kind::Gauge, Seconds, ["name"],
        "When this process last executed a periodic job well, as Unix time.";
    JobFailures = "postrider_job_failures_total", Kind::Counter, Count, ["name"],
        "Executions of periodic jobs that failed or took too long.";
    IngestBatchRows = "postrider_ingest_batch_rows", Kind::Histogram(BATCH_ROWS), Count, [],
        "Pushes stored in one group commit.";
    IngestQueueGateOpen = "postrider_ingest_queue_gate_open", Kind::Gauge, Count, [],
        "1 while received pushes are published at once, 0 while the queue is known to be full.";
    HttpRequests = "postrider_http_requests_total", Kind::Counter, Count, ["route", "status"],
        "HTTP requests answered, by route and status code.";
    HttpConnectionsRefused = "postrider_http_connections_refused_total", Kind::Counter, Count, ["bound"],
        "Connections closed at once because there were too many; `bound` is `all` or `peer`.";
    WebpushMessages = "postrider_webpush_messages_total", Kind::Counter, Count, ["outcome"],
        "Messages of Web Push answered with 201; `outcome` is `direct` (with the client's node), `stored` or `dropped` (no TTL and not connected).";
    WebpushReceiving = "postrider_webpush_receiving_seconds", Kind::Histogram(RECEIVING), Seconds, [],
        "Time to receive a message of Web Push: from the request to the answer 201.";
    WebpushRefused = "postrider_webpush_refused_total", Kind::Counter, Count, ["reason"],
        "Requests that webpush-endpoint refused, by reason.";
    WebpushNodeAnswers = "postrider_webpush_node_answers_total", Kind::Counter, Count, ["request", "answer"],
        "Answers of connection nodes to webpush-endpoint; `request` is `push` or `notif`, `answer` is `taken`, `busy`, `absent`, `refused`, `silent` or `failed`.";
    WebpushBatchRows = "postrider_webpush_batch_rows", Kind::Histogram(BATCH_ROWS), Count, [],
        "Messages of Web Push stored in one group commit.";
    PartitionsAheadMonths = "postrider_partitions_ahead_months", Kind::Gauge, Count, [],
        "Months after the current one for which partitions exist.";
    WebpushConnections = "postrider_webpush_connections", Kind::Gauge, Count, [],
        "User agents that are connected to this node.";
    WebpushConnectionsOpened = "postrider_webpush_connections_opened_total", Kind::Counter, Count, [],
        "Connections of user agents that have begun.";
    WebpushConnectionsClosed = "postrider_webpush_connections_closed_total", Kind::Counter, Count, ["reason"],
        "Connections of user agents that have ended; `reason` is `client`, `protocol`, `stalled`, or what the node closed it for: `hello_timeout`, `no_hello`, `second_hello`, `malformed`, `not_text`, `ping_too_soon`, `pong_timeout`, `replaced`, `reset`, `too_many_registrations`, `too_many_commands`, `storage`, `month_over` or `going_away`.";
    WebpushDirect = "postrider_webpush_direct_total", Kind::Counter, Count, ["outcome"],
        "Messages that endpoint nodes handed to this node; `outcome` is `acked`, or what has the endpoint node store it: `late` (not acknowledged in time), `full` (too many wait) or `away` (not connected here).";
    WebpushStoredSent = "postrider_webpush_stored_sent_total", Kind::Counter, Count, [],
        "Messages read from storage to be sent to their user agents.";
    WebpushAcks = "postrider_webpush_acks_total", Kind::Counter, Count, ["code"],
        "Messages that user agents acknowledged; `code` is `100` (delivered), `101` (could not be decrypted) or `102` (not delivered).";
    WebpushNacks = "postrider_webpush_nacks_total", Kind::Counter, Count, ["code"],
        "Messages that user agents could do nothing with; `code` is `301` to `303`, or `0`.";
    WebpushRegistrations = "postrider_webpush_registrations_total", Kind::Counter, Count, ["outcome"],
        "Channels that user agents wanted to register; `outcome` is `registered`, `bad_key`, `full` (too many channels) or `too_many` (from one address in a minute).";
    WebpushClients = "postrider_webpush_clients", Kind::Gauge, Count, ["month"],
        "User agents that are stored, by the month that they read: `present`, `previous`, `oldest` (the next to be dropped) or `coming`. Estimated above 10,000.";
    WebpushStoredMessages = "postrider_webpush_stored_messages", Kind::Gauge, Count, ["month"],
        "Messages of Web Push that are stored, expired ones included, by month as `postrider_webpush_clients`. Estimated above 10,000.";
    WebpushMoves = "postrider_webpush_moves_total", Kind::Counter, Count, [],
        "User agents that were moved to the present month.";
    TelemetryLost = "postrider_telemetry_lost_total", Kind::Counter, Count, ["signal"],
        "What the OpenTelemetry collector was not given because it was away, refused it, or was too slow; `signal` is `traces` (spans), `logs` (lines) or `metrics` (data points, whose sums come with the next ones).";
    ProcessCpuSeconds = "process_cpu_seconds_total", Kind::Counter, Seconds, [],
        "CPU time this process has used, user and system. Linux only.";
    ProcessResidentMemory = "process_resident_memory_bytes", Kind::Gauge, Bytes, [],
        "Memory of this process that is resident. Linux only.";
    ProcessStartTime = "process_start_time_seconds", Kind::Gauge, Seconds, [],
        "When this process was started, as Unix time. Linux only.";
    ProcessOpenFiles = "process_open_fds", Kind::Gauge, Count, [],
        "File descriptors that this process has open, sockets included. Linux only.";
    ProcessMaxFiles = "process_max_fds", Kind::Gauge, Count, [],
        "Most file descriptors that this process may have open. Linux only.";
    ProcessNetworkReceived = "process_network_receive_bytes_total", Kind::Counter, Bytes, [],
        "Bytes of IP packets received in this process's network namespace: its own in a container, the machine's without one. Linux only.";
    ProcessNetworkSent = "process_network_transmit_bytes_total", Kind::Counter, Bytes, [],
        "Bytes of IP packets sent from this process's network namespace: its own in a container, the machine's without one. Linux only.";
}
