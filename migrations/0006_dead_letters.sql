-- What will not be delivered without somebody's help, kept with the reason.
SET LOCAL lock_timeout = '5s';

CREATE TABLE dead_letters (
    id          uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    lane        text        NOT NULL,
    reason      text        NOT NULL,
    fingerprint text        NOT NULL,
    push_id     uuid,
    attempts    integer,
    error_type  text,
    detail      text        NOT NULL,
    message     jsonb,
    created_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT lane_is_known CHECK (lane IN ('push')),
    CONSTRAINT reason_is_known CHECK (reason IN ('FAILED', 'GIVEN_UP', 'REJECTED', 'MALFORMED')),
    CONSTRAINT a_failure_names_its_push CHECK (reason NOT IN ('FAILED', 'GIVEN_UP') OR push_id IS NOT NULL)
);

COMMENT ON COLUMN dead_letters.reason IS
    'FAILED, GIVEN_UP: the push ended so. REJECTED: the broker gave its message up. MALFORMED: not a message of ours.';
COMMENT ON COLUMN dead_letters.fingerprint IS 'Failures of one kind share it.';
COMMENT ON COLUMN dead_letters.message IS 'What the broker handed back: body, headers, queue, count.';

CREATE INDEX dead_letters_newest ON dead_letters (created_at DESC, id);
CREATE INDEX dead_letters_push ON dead_letters (push_id) WHERE push_id IS NOT NULL;
CREATE INDEX dead_letters_fingerprint ON dead_letters (fingerprint, created_at);
