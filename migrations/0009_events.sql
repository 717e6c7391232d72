-- Events, the notifications that they became, and the attempts to deliver those. All three are partitioned by month by
-- range of id; a notification's id begins with the time of its event, so that the three are dropped together.
SET LOCAL lock_timeout = '5s';

CREATE TABLE events (
    id          uuid        NOT NULL,
    event_id    text        NOT NULL,
    reseller_id text        NOT NULL,
    type        text        NOT NULL,
    body        text        NOT NULL,
    occurred_at timestamptz NOT NULL,
    created_at  timestamptz NOT NULL,
    traceparent text,
    test_of     uuid,
    PRIMARY KEY (id),
    CONSTRAINT reseller_is_given CHECK (reseller_id <> '')
) PARTITION BY RANGE (id);

COMMENT ON COLUMN events.event_id IS 'What receivers know the event by: the caller''s own id, else the id.';
COMMENT ON COLUMN events.body IS 'The bytes of the request body, the same for every attempt and every subscription.';
COMMENT ON COLUMN events.test_of IS 'The one subscription that a test event is for.';

-- The condition is always true. It keeps the index from look-ups by id alone, which do not state it: while a partition is
-- empty all its indexes look alike to the planner, and a cached plan would later read all of this one for a single row.
CREATE INDEX events_reseller ON events (reseller_id, id) WHERE reseller_id <> '';

CREATE TABLE notifications (
    id              uuid        NOT NULL,
    event           uuid        NOT NULL,
    subscription_id uuid        NOT NULL,
    reseller_id     text        NOT NULL,
    event_type      text        NOT NULL,
    status          text        NOT NULL,
    reason          text,
    attempts        integer     NOT NULL DEFAULT 0,
    resent_after    integer     NOT NULL DEFAULT 0,
    resent_at       timestamptz,
    next_attempt_at timestamptz,
    charged_on      date,
    slot_at         timestamptz,
    leased_until    timestamptz,
    lease_token     uuid,
    payload_bytes   integer     NOT NULL,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    finished_at     timestamptz,
    PRIMARY KEY (id),
    CONSTRAINT status_is_known
        CHECK (status IN ('SCHEDULED', 'PENDING', 'IN_MEMORY', 'RETRY', 'SENT', 'FAILED', 'GIVEN_UP')),
    CONSTRAINT attempts_are_counted CHECK (attempts >= 0 AND resent_after BETWEEN 0 AND attempts),
    CONSTRAINT in_memory_is_leased CHECK ((status = 'IN_MEMORY') = (leased_until IS NOT NULL)),
    CONSTRAINT only_in_memory_is_claimed CHECK (lease_token IS NULL OR status = 'IN_MEMORY'),
    CONSTRAINT a_claim_is_an_attempt CHECK (lease_token IS NULL OR attempts > 0),
    CONSTRAINT reseller_is_given CHECK (reseller_id <> ''),
    CONSTRAINT waiting_has_a_time CHECK ((status IN ('SCHEDULED', 'RETRY')) = (next_attempt_at IS NOT NULL)),
    CONSTRAINT pending_is_new CHECK (status <> 'PENDING' OR attempts = 0),
    CONSTRAINT scheduled_has_a_reason CHECK (status <> 'SCHEDULED' OR reason IS NOT NULL),
    CONSTRAINT terminal_has_an_end
        CHECK ((status IN ('SENT', 'FAILED', 'GIVEN_UP')) = (finished_at IS NOT NULL))
) PARTITION BY RANGE (id);

COMMENT ON COLUMN notifications.id IS
    'notification_id(event, subscription_id): whoever fans an event out, and however often, makes the same row.';
COMMENT ON COLUMN notifications.reason IS 'Why it waits or has ended, for people and for what comes next.';
COMMENT ON COLUMN notifications.resent_after IS 'Attempts before somebody asked to send it again; retries count from there.';
COMMENT ON COLUMN notifications.resent_at IS 'When that was; what waits is not too old while this is young.';
COMMENT ON COLUMN notifications.charged_on IS 'The day whose quota it has a place in.';
COMMENT ON COLUMN notifications.slot_at IS 'Its place in the requests per second.';

CREATE INDEX notifications_pending ON notifications (subscription_id, id) WHERE status = 'PENDING';
CREATE INDEX notifications_leased ON notifications (leased_until) WHERE status = 'IN_MEMORY';
CREATE INDEX notifications_due ON notifications (next_attempt_at, id) WHERE status = 'SCHEDULED';
CREATE INDEX notifications_scheduled ON notifications (subscription_id, next_attempt_at, id) WHERE status = 'SCHEDULED';
CREATE INDEX notifications_retry ON notifications (subscription_id, next_attempt_at, id) WHERE status = 'RETRY';
-- As above.
CREATE INDEX notifications_subscription ON notifications (subscription_id, id) WHERE reseller_id <> '';

CREATE TABLE delivery_attempts (
    notification_id uuid        NOT NULL,
    number          integer     NOT NULL,
    status          text        NOT NULL,
    started_at      timestamptz NOT NULL,
    millis          bigint,
    url             text        NOT NULL,
    response_status integer,
    response_body   text,
    error_type      text,
    error           text,
    fingerprint     text,
    PRIMARY KEY (notification_id, number),
    CONSTRAINT number_counts_from_one CHECK (number > 0),
    CONSTRAINT status_is_known CHECK (status IN ('IN_PROCESS', 'OK', 'ERROR')),
    CONSTRAINT error_type_is_known
        CHECK (error_type IN ('HTTP', 'TIMEOUT', 'DNS', 'TLS', 'CONNECT', 'PROTOCOL', 'EGRESS', 'OTHER')),
    CONSTRAINT an_error_has_a_type CHECK ((status = 'ERROR') = (error_type IS NOT NULL))
) PARTITION BY RANGE (notification_id);

COMMENT ON COLUMN delivery_attempts.started_at IS 'Also the timestamp that was signed, cut to the second.';
COMMENT ON COLUMN delivery_attempts.response_body IS 'The first bytes of the answer.';

-- Subscriptions that had more in a queue than their share. What else they have waiting is left to whoever sidelined
-- that, for a moment.
CREATE TABLE subscription_sidelines (
    subscription_id uuid        NOT NULL REFERENCES subscriptions (id),
    lane            text        NOT NULL,
    until           timestamptz NOT NULL,
    PRIMARY KEY (subscription_id, lane),
    CONSTRAINT lane_is_known CHECK (lane IN ('first', 'retry'))
) WITH (fillfactor = 50);

-- The same in every process: the event's time, version 8, and a hash of the two.
CREATE FUNCTION notification_id(event uuid, subscription uuid) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN encode(
        substring(uuid_send(event) FROM 1 FOR 6)
        || set_byte(set_byte(
               substring(sha256(uuid_send(event) || uuid_send(subscription)) FROM 1 FOR 10),
               0, 128 | (get_byte(sha256(uuid_send(event) || uuid_send(subscription)), 0) & 15)),
               2, 128 | (get_byte(sha256(uuid_send(event) || uuid_send(subscription)), 2) & 63)),
        'hex')::uuid;

-- Which event a caller's own event id, or its Idempotency-Key, stands for. Not partitioned: unique across months.
CREATE TABLE event_keys (
    scope      text        NOT NULL,
    key        text        NOT NULL,
    event      uuid        NOT NULL,
    request    bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (scope, key)
);

COMMENT ON COLUMN event_keys.scope IS
    'reseller/<id> for an eventId, key/<API key>/<position> for an Idempotency-Key.';
COMMENT ON COLUMN event_keys.request IS 'SHA-256 over the request: a key that comes with another one is refused.';

CREATE INDEX event_keys_age ON event_keys (created_at);

-- Events that a subscription missed, sent again from a time on.
CREATE TABLE replays (
    id              uuid        PRIMARY KEY,
    subscription_id uuid        NOT NULL REFERENCES subscriptions (id),
    reseller_id     text        NOT NULL,
    status          text        NOT NULL DEFAULT 'RUNNING',
    since           timestamptz NOT NULL,
    until           timestamptz NOT NULL,
    per_second      integer     NOT NULL,
    cursor          uuid,
    examined        bigint      NOT NULL DEFAULT 0,
    replayed        bigint      NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    finished_at     timestamptz,
    CONSTRAINT status_is_known CHECK (status IN ('RUNNING', 'COMPLETED', 'CANCELLED')),
    CONSTRAINT an_end_has_a_time CHECK ((status = 'RUNNING') = (finished_at IS NULL)),
    CONSTRAINT time_goes_on CHECK (since < until)
) WITH (fillfactor = 50);

CREATE UNIQUE INDEX replays_running ON replays (subscription_id) WHERE status = 'RUNNING';
CREATE INDEX replays_reseller ON replays (reseller_id, id);

-- What the reseller sees of its deliveries in numbers; derived from the attempts, kept longer than they are.
CREATE TABLE delivery_statistics (
    subscription_id uuid        NOT NULL,
    hour            timestamptz NOT NULL,
    attempts        bigint      NOT NULL,
    delivered       bigint      NOT NULL,
    failed          bigint      NOT NULL,
    retried         bigint      NOT NULL,
    payload_bytes   bigint      NOT NULL,
    latencies       bigint[]    NOT NULL,
    statuses        jsonb       NOT NULL,
    PRIMARY KEY (subscription_id, hour)
) WITH (fillfactor = 50);

COMMENT ON COLUMN delivery_statistics.latencies IS
    'Attempts by duration: bucket i counts those of less than 2^(i/4) milliseconds that bucket i - 1 does not.';
COMMENT ON COLUMN delivery_statistics.statuses IS 'Answers by status code.';
