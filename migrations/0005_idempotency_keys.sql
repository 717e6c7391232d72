-- Remembers which push answered a caller's Idempotency-Key. Not partitioned: the key must be unique across months.
SET LOCAL lock_timeout = '5s';

CREATE TABLE idempotency_keys (
    owner      uuid        NOT NULL,
    key        text        NOT NULL,
    push_id    uuid        NOT NULL,
    request    bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (owner, key)
);

COMMENT ON COLUMN idempotency_keys.owner IS 'The API key that presented it; callers cannot meet each other''s keys.';
COMMENT ON COLUMN idempotency_keys.request IS 'SHA-256 over the request body: a key that comes with another is refused.';

CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
