-- E-mails to resellers, stored with what caused them and sent when the mail server takes them.
SET LOCAL lock_timeout = '5s';

CREATE TABLE emails (
    id              uuid        PRIMARY KEY,
    kind            text        NOT NULL,
    subscription_id uuid        NOT NULL REFERENCES subscriptions (id),
    recipient       text        NOT NULL,
    data            jsonb       NOT NULL,
    occurrences     bigint      NOT NULL DEFAULT 1,
    status          text        NOT NULL DEFAULT 'PENDING',
    attempts        integer     NOT NULL DEFAULT 0,
    next_attempt_at timestamptz,
    leased_until    timestamptz,
    lease_token     uuid,
    last_error      text,
    created_at      timestamptz NOT NULL,
    finished_at     timestamptz,
    CONSTRAINT kind_is_known CHECK (kind IN ('RETRIES_EXHAUSTED', 'STATE_CHANGED', 'VERIFICATION_FAILED')),
    CONSTRAINT status_is_known CHECK (status IN ('PENDING', 'SENDING', 'SENT', 'FAILED')),
    CONSTRAINT pending_has_a_time CHECK ((status = 'PENDING') = (next_attempt_at IS NOT NULL)),
    CONSTRAINT sending_is_leased
        CHECK ((status = 'SENDING') = (leased_until IS NOT NULL) AND (status = 'SENDING') = (lease_token IS NOT NULL)),
    CONSTRAINT terminal_has_an_end CHECK ((status IN ('SENT', 'FAILED')) = (finished_at IS NOT NULL))
) WITH (fillfactor = 70);

CREATE INDEX emails_due ON emails (next_attempt_at, id) WHERE status = 'PENDING';
CREATE INDEX emails_leased ON emails (leased_until) WHERE status = 'SENDING';
CREATE INDEX emails_ended ON emails (finished_at) WHERE finished_at IS NOT NULL;
-- Exhausted retries are told of once in an hour: further ones are counted in the mail that waits.
CREATE UNIQUE INDEX emails_exhausted_waiting ON emails (subscription_id)
    WHERE kind = 'RETRIES_EXHAUSTED' AND status = 'PENDING';
CREATE INDEX emails_exhausted ON emails (subscription_id, created_at) WHERE kind = 'RETRIES_EXHAUSTED';
