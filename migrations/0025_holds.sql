-- What Postrider holds back by itself, because what it sends to is out of order.
SET LOCAL lock_timeout = '5s';

CREATE TABLE holds (
    class       text        PRIMARY KEY,
    since       timestamptz NOT NULL DEFAULT now(),
    probes      bigint      NOT NULL DEFAULT 0,
    probed_at   timestamptz,
    last_answer text        NOT NULL,
    answered_at timestamptz,
    CONSTRAINT class_is_known CHECK (class IN ('SWRVE'))
);

COMMENT ON TABLE holds IS 'One row for each outage that is in force or being caught up with.';
COMMENT ON COLUMN holds.answered_at IS 'When a probe succeeded: since then what had waited is sent, the oldest first.';
