-- Pushes and the attempts to send them. Both are partitioned by month by range of the push's id, a version 7 UUID whose
-- first 48 bits are its creation time in milliseconds, so that a push and its attempts are dropped together.
SET LOCAL lock_timeout = '5s';

CREATE TABLE push_notifications (
    id                    uuid        NOT NULL,
    status                text        NOT NULL,
    platform              text        NOT NULL,
    message_prototype_key text,
    push_key              text        NOT NULL,
    message               text        NOT NULL,
    cron_expression       text,
    attempts              integer     NOT NULL DEFAULT 0,
    next_attempt_at       timestamptz,
    leased_until          timestamptz,
    lease_token           uuid,
    traceparent           text,
    created_at            timestamptz NOT NULL,
    updated_at            timestamptz NOT NULL DEFAULT now(),
    finished_at           timestamptz,
    PRIMARY KEY (id),
    CONSTRAINT status_is_known
        CHECK (status IN ('SCHEDULED', 'PENDING', 'IN_MEMORY', 'RETRY', 'SENT', 'FAILED', 'GIVEN_UP')),
    CONSTRAINT platform_is_known CHECK (platform IN ('IOS', 'ANDROID')),
    CONSTRAINT attempts_are_counted CHECK (attempts >= 0),
    CONSTRAINT in_memory_is_leased CHECK ((status = 'IN_MEMORY') = (leased_until IS NOT NULL)),
    CONSTRAINT only_in_memory_is_claimed CHECK (lease_token IS NULL OR status = 'IN_MEMORY'),
    CONSTRAINT a_claim_is_an_attempt CHECK (lease_token IS NULL OR attempts > 0),
    CONSTRAINT waiting_has_a_time CHECK ((status IN ('SCHEDULED', 'RETRY')) = (next_attempt_at IS NOT NULL)),
    CONSTRAINT scheduled_has_a_window CHECK (status <> 'SCHEDULED' OR cron_expression IS NOT NULL),
    CONSTRAINT terminal_has_an_end
        CHECK ((status IN ('SENT', 'FAILED', 'GIVEN_UP')) = (finished_at IS NOT NULL))
) PARTITION BY RANGE (id);

COMMENT ON TABLE push_notifications IS 'One row per accepted push; its status says where it stands.';
COMMENT ON COLUMN push_notifications.lease_token IS
    'Set while a dispatcher has claimed the push; completion must present it. NULL and IN_MEMORY: in the queue.';
COMMENT ON COLUMN push_notifications.leased_until IS
    'When IN_MEMORY is taken for lost, by the clock of the database.';

-- Each promoting job and the rescuer read the head of one partial index, so their cost does not grow with the backlog.
CREATE INDEX push_notifications_pending ON push_notifications (id) WHERE status = 'PENDING';
CREATE INDEX push_notifications_due ON push_notifications (next_attempt_at, id) WHERE status IN ('SCHEDULED', 'RETRY');
CREATE INDEX push_notifications_leased ON push_notifications (leased_until) WHERE status = 'IN_MEMORY';

CREATE TABLE send_attempts (
    id                      uuid        NOT NULL DEFAULT gen_random_uuid(),
    push_notification_id    uuid        NOT NULL,
    number                  integer     NOT NULL,
    status                  text        NOT NULL,
    started_at              timestamptz NOT NULL DEFAULT now(),
    millis                  bigint,
    error_type              text,
    swrve_error_code        bigint,
    swrve_error_message     text,
    other_error_stack_trace text,
    PRIMARY KEY (push_notification_id, number),
    CONSTRAINT number_counts_from_one CHECK (number > 0),
    CONSTRAINT status_is_known CHECK (status IN ('IN_PROCESS', 'OK', 'ERROR')),
    CONSTRAINT error_type_is_known CHECK (error_type IN ('SWRVE', 'MESSAGE_PROTOTYPE_KEY', 'OTHER')),
    CONSTRAINT an_error_has_a_type CHECK ((status = 'ERROR') = (error_type IS NOT NULL))
) PARTITION BY RANGE (push_notification_id);

COMMENT ON TABLE send_attempts IS 'One row per attempt to send a push, made when the push is claimed.';
COMMENT ON COLUMN send_attempts.millis IS 'Time from the start of the request to the end of the answer.';
